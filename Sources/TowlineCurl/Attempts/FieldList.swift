import CCurl
internal import TowlineCore
internal import TowlineEngine

/// The checked header fields of a request as a linked list of libcurl. The list is freed with the object.
final class FieldList {
    let fields: HTTPFields
    /// The header fields as libcurl's list, for the option `CURLOPT_HTTPHEADER`.
    let pointer: UnsafeMutablePointer<curl_slist>

    /// Creates libcurl's list of the given fields. Throws `local` if a field could corrupt the request
    /// (`RequestFields.check`), or if memory ran out.
    init(_ fields: HTTPFields) throws(TransportFailure) {
        try RequestFields.check(fields)
        guard let pointer = RequestFields.list(fields) else { throw TransportFailure(.local, FailureTable.outOfMemory) }
        self.fields = fields
        self.pointer = pointer
    }

    deinit { curl_slist_free_all(pointer) }
}

/// The header field lists of the last requests, for reuse. Small files of one host send the same list; redirected files
/// alternate between two lists.
struct RecentFieldLists {
    private var lists: [FieldList] = []
    private static let maximum = 4

    /// Returns the list of the given fields, reused or new. Throws `local` if a field could corrupt the request
    /// (`RequestFields.check`), or if memory ran out.
    mutating func list(_ fields: HTTPFields) throws(TransportFailure) -> FieldList {
        if let list = lists.first(where: { $0.fields.isSameOnWire(as: fields) }) { return list }
        let list = try FieldList(fields)
        if lists.count == Self.maximum { lists.removeFirst() }
        lists.append(list)
        return list
    }
}
