/// The content coding of the written bytes.
struct ContentCoding: Sendable {
    /// The Content-Encoding of the bytes; `nil` if the server sends the file as it is.
    var name: String?
    /// The Content-Encoding with which the written bytes came, if it only labels the type of the stored file.
    var label = CodingLabel.unknown
}
