import CCurl
internal import TowlineCore
internal import TowlineEngine

/// A request's fields, checked, in libcurl's form. What it points to lives as long as it does.
final class FieldList {
    /// What it was made of.
    let fields: HTTPFields
    /// For `CURLOPT_HTTPHEADER`.
    let pointer: UnsafeMutablePointer<curl_slist>

    /// Throws where a field could break out of its place (`RequestFields.check`), and if memory ran out.
    init(_ fields: HTTPFields) throws(TransportFailure) {
        try RequestFields.check(fields)
        guard let pointer = RequestFields.list(fields) else { throw TransportFailure(.local, FailureTable.outOfMemory) }
        self.fields = fields
        self.pointer = pointer
    }

    deinit { curl_slist_free_all(pointer) }
}
