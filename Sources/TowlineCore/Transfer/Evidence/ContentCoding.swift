/// The content coding, such as gzip, of a download's bytes in the part file. Ranges of coded bytes cannot be joined, so
/// it decides whether the download can be resumed.
struct ContentCoding: Sendable {
    /// The Content-Encoding of the bytes in the part file; `nil` if they are the bytes of the file itself.
    var name: String?
    /// The Content-Encoding of the response that the bytes came from, if it only labels the type of the stored file, as
    /// for `src.tar.gz`.
    var label = CodingLabel.unknown
}
