/// An existing file under the final name of a download. An update replaces it if the server has another version (RFC
/// 9110 §13.1).
package struct ExistingFile: Hashable, Sendable {
    /// The length of the existing file in bytes.
    package let length: Int64
    /// The modification time of the existing file.
    package let modified: HTTPDate
    /// The validators that the server sent for the existing file; `nil` if another program created or changed it.
    package let version: PublishedVersion?
    /// The kind that the first bytes of the existing file suggest; `nil` if they are unknown.
    package var kind: ContentKind?

    /// The condition of a request for a file that already exists: the server sends the file only if it has another
    /// version.
    package struct Condition: Hashable, Sendable {
        /// The entity tag to send as `If-None-Match`; `nil` omits the field.
        package let entityTag: EntityTag?
        /// The date to send as `If-Modified-Since`; `nil` omits the field.
        package let lastModified: HTTPDate?

        /// Returns whether a 304 (Not Modified) response contains other validators than the request, so that it does
        /// not prove that the existing file is current.
        func isContradicted(by answer: Representation) -> Bool {
            if let entityTag, let theirs = answer.entityTag { return !entityTag.matchesWeakly(theirs) }
            guard let lastModified, let theirs = answer.lastModified else { return false }
            return lastModified != theirs
        }
    }

    /// Creates a description of an existing file. `modified` is in seconds since 1970; `version` is `nil` if another
    /// program created or changed the file.
    package init(length: Int64, modified: Int64, version: PublishedVersion?) {
        self.length = length
        self.modified = HTTPDate(secondsSince1970: modified)
        self.version = version
    }

    /// Returns the condition for a request to a URL; `nil` if the file came from another URL or without a validator, so
    /// that the request has no condition.
    ///
    /// A 304 response contains no length. A file that another program created has no condition: it may be incomplete.
    package func condition(at url: HTTPURL) -> Condition? {
        guard let version, version.location == PublishedVersion.location(url.withoutSecrets) else { return nil }
        let tag = version.entityTag.flatMap { $0.isWellFormed ? $0 : nil }
        guard tag != nil || version.isDated else { return nil }
        return Condition(entityTag: tag, lastModified: version.isDated ? modified : nil)
    }

    /// Returns whether the file is the version that the server offers at a URL, so that no download is needed.
    package func isCurrent(_ offered: Representation, at url: HTTPURL) -> Bool {
        let isFromThere = version?.location == PublishedVersion.location(url.withoutSecrets)
        guard offered.completeLength.map({ $0 == length }) ?? isFromThere else { return false }
        if let mine = version?.entityTag, let theirs = offered.entityTag {
            guard mine.matchesWeakly(theirs) else { return false }
            if mine.isWellFormed, isFromThere { return true }
            // Another URL may use the tag for another file, and a malformed tag may be a constant, such as `null`: the
            // dates must agree too.
            if mine.isWellFormed, offered.lastModified == nil || version?.isDated == false { return true }
        }
        guard let date = offered.lastModified else { return false }
        guard let version else { return date <= modified }
        return version.isDated && date == modified
    }
}

/// The validators that a server sent for the bytes of a published file. They are stored with the file and identify its
/// version in a later update.
package struct PublishedVersion: Hashable, Sendable {
    /// The entity tag (`ETag`) of the published file; `nil` if the server sent none.
    package var entityTag: EntityTag?
    /// A digest of the URL that responded (see ``location(_:)``): a validator is valid for one URL.
    package let location: UInt32
    /// `true` if the file's modification time is the `Last-Modified` of the response, so that an update may send it as
    /// `If-Modified-Since`.
    package var isDated = false

    /// Creates a version from the validators that were stored with the file.
    package init(entityTag: EntityTag?, location: UInt32, isDated: Bool = false) {
        self.entityTag = entityTag
        self.location = location
        self.isDated = isDated
    }

    /// Creates a version from the metadata in a response. `url` is the URL of the response, without secrets.
    package init(of representation: Representation, from url: String) {
        self.init(entityTag: representation.entityTag, location: Self.location(url))
    }

    /// Returns the digest (CRC-32C) of a URL without secrets. The digest is stored instead of the URL, because the URL
    /// is private and the file may be passed to others.
    package static func location(_ url: String) -> UInt32 { CRC32C.checksum(url.utf8) }
}
