/// Decides whether an unfinished download, found under the destination name, is a download of the requested file and
/// may be resumed.
package enum ContinuationPolicy {
    /// Returns whether two URLs are taken for the same file. An entity tag is valid for one URL only (RFC 9110 §8.8.3):
    /// two files with the same length and date may have the same tag. A server may have moved: the same path on another
    /// host counts as the same file if the bytes compared at the resume point agree. Another path is another file
    /// unless `isVouchedFor` is true.
    ///
    /// - Parameters:
    ///   - source: the URL of the unfinished download, without secrets.
    ///   - url: the URL that is requested now.
    ///   - isVouchedFor: `true` if a checksum will verify the file, or the caller states that it is the same.
    package static func isSame(_ source: String, as url: HTTPURL, isVouchedFor: Bool) -> Bool {
        isVouchedFor || source == url.withoutSecrets || (try? HTTPURL(parsing: source))?.path == url.path
    }

    /// Returns whether the bytes of an unfinished download whose URL may be that of another file (`LinkRelation`) may be
    /// compared with a response: it repeats the length and the strong validator, or nothing in it shows another file.
    ///
    /// - Parameters:
    ///   - known: the metadata of the unfinished download.
    ///   - offered: the metadata in the response.
    package static func mayContinue(_ known: Representation, with offered: Representation) -> Bool {
        guard let length = known.completeLength, length == offered.completeLength else { return false }
        // Without a strong validator, the transfer compares bytes before it joins any.
        guard case .strong = known.validator else { return known.contradiction(with: offered) == nil }
        return offered.repeatsValidator(of: known, weakly: false)
    }
}
