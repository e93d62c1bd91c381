/// Whether what is unfinished under a name is the download that is asked for.
package enum ContinuationPolicy {
    /// What a tag says counts for one URL alone (RFC 9110 §8.8.3): two files of one length and one date may have the same. A
    /// server may have moved, so the same path elsewhere is taken for the same file, if the bytes that are compared agree;
    /// another path is another file unless somebody vouches for it.
    ///
    /// - Parameters:
    ///   - source: the URL it was begun from, without secrets.
    ///   - url: the URL that is asked now.
    ///   - isVouchedFor: a checksum will tell, or whoever asks says that it is the same.
    package static func isSame(_ source: String, as url: HTTPURL, isVouchedFor: Bool) -> Bool {
        isVouchedFor || source == url.withoutSecrets || (try? HTTPURL(parsing: source))?.path == url.path
    }
}
