import CCurl
import Testing
import TowlineCore

@testable import TowlineCurl

@Suite struct RequestFieldsTests {
    /// libcurl adds its own `Accept: */*` if the list has no such field.
    @Test(arguments: [
        ([("Accept", "*/*")], ["Accept: */*"]), ([("Accept", "*/*"), ("A", "b")], ["A: b"]),
        ([("accept", "*/*"), ("A", "b")], ["A: b"]), ([("A", "b")], ["Accept:", "A: b"]),
        ([("Accept", "*/*"), ("Accept", "text/html")], ["Accept: */*", "Accept: text/html"]),
        ([("Accept", "*/*"), ("accept", "")], ["Accept: */*", "accept;"]),
        ([("Accept", "*/*"), ("Accept", "*/*"), ("A", "b")], ["Accept: */*", "Accept: */*", "A: b"]),
    ])
    func acceptIsSentAsItIs(_ fields: [(String, String)], _ expected: [String]) {
        let list = RequestFields.list(HTTPFields(fields))
        defer { curl_slist_free_all(list) }
        var (found, next): ([String], _) = ([], list)
        while let item = next?.pointee {
            found.append(String(cString: item.data))
            next = item.next
        }
        #expect(found == expected)
    }
}
