/// A file under the final name, which an update replaces if the server has another version (RFC 9110 §13.1).
package struct ExistingFile: Hashable, Sendable {
    /// Its length in bytes.
    package let length: Int64
    /// Its modification time.
    package let modified: HTTPDate
    /// The validators that the server sent for it; `nil`: another program created or changed the file.
    package let version: PublishedVersion?

    /// The condition of a request: the server sends the file only if it has another version.
    package struct Condition: Hashable, Sendable {
        /// `If-None-Match`.
        package let entityTag: EntityTag?
        /// `If-Modified-Since`.
        package let lastModified: HTTPDate?

        /// Makes one.
        package init(entityTag: EntityTag?, lastModified: HTTPDate?) {
            self.entityTag = entityTag
            self.lastModified = lastModified
        }

        /// Returns whether a 304 names another version than that of the condition.
        func isContradicted(by answer: Representation) -> Bool {
            if let entityTag, let theirs = answer.entityTag { return !entityTag.matchesWeakly(theirs) }
            guard let lastModified, let theirs = answer.lastModified else { return false }
            return lastModified != theirs
        }
    }

    /// Makes one. `modified` is in seconds since 1970.
    package init(length: Int64, modified: Int64, version: PublishedVersion?) {
        self.length = length
        self.modified = HTTPDate(secondsSince1970: modified)
        self.version = version
    }

    /// The condition for a request to a URL; `nil` if the file did not come from there, or without a validator.
    ///
    /// A 304 does not tell a length. So a file that another program created gets none: it may be incomplete.
    package func condition(at url: HTTPURL) -> Condition? {
        guard let version, version.location == PublishedVersion.location(url.withoutSecrets) else { return nil }
        let tag = version.entityTag.flatMap { $0.isWellFormed ? $0 : nil }
        guard tag != nil || version.isDated else { return nil }
        return Condition(entityTag: tag, lastModified: version.isDated ? modified : nil)
    }

    /// Returns whether the file is what the server at a URL offers.
    package func isCurrent(_ offered: Representation, at url: HTTPURL) -> Bool {
        let isFromThere = version?.location == PublishedVersion.location(url.withoutSecrets)
        guard offered.completeLength.map({ $0 == length }) ?? isFromThere else { return false }
        if let mine = version?.entityTag, let theirs = offered.entityTag {
            guard mine.matchesWeakly(theirs) else { return false }
            if mine.isWellFormed, isFromThere { return true }
            // Another URL may use the tag for another file, and a malformed tag may be a constant, such as `null`: the
            // dates count as well.
            if mine.isWellFormed, offered.lastModified == nil || version?.isDated == false { return true }
        }
        guard let date = offered.lastModified else { return false }
        guard let version else { return date <= modified }
        return version.isDated && date == modified
    }
}

/// The validators that a server sent for the bytes of a published file. The file's mark contains them.
package struct PublishedVersion: Hashable, Sendable {
    /// The entity tag.
    package var entityTag: EntityTag?
    /// A digest of the URL that answered (see ``location(_:)``): a validator is valid for one URL.
    package let location: UInt32
    /// The file's modification time is `Last-Modified`.
    package var isDated = false

    /// Makes one.
    package init(entityTag: EntityTag?, location: UInt32, isDated: Bool = false) {
        self.entityTag = entityTag
        self.location = location
        self.isDated = isDated
    }

    /// Makes one for a file that came from a URL, which is without secrets.
    package init(of representation: Representation, from url: String) {
        self.init(entityTag: representation.entityTag, location: Self.location(url))
    }

    /// Returns the digest (CRC-32C) of a URL without secrets. The file may be handed on, and the URL is private.
    package static func location(_ url: String) -> UInt32 { CRC32C.checksum(url.utf8) }
}
