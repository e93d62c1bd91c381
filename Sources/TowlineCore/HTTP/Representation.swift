/// The metadata of the file in a response ("representation", RFC 9110 §3.2, §8). The metadata of two responses are
/// compared before their bytes are joined.
package struct Representation: Hashable, Sendable {
    /// The complete length of the file in bytes; `nil` if unknown.
    package var completeLength: Int64?
    /// The entity tag (`ETag`); `nil` if absent.
    package var entityTag: EntityTag?
    /// The date in `Last-Modified`; `nil` if absent or unreadable.
    package var lastModified: HTTPDate?
    /// The `Date` of the response with `lastModified`; it decides whether `lastModified` is a strong validator.
    package var date: HTTPDate?
    /// The media type without parameters, lower case; distinguishes a login page from the file. `nil` if absent.
    package var mediaType: String?

    /// Creates the metadata of the file in a response.
    package init(
        completeLength: Int64? = nil, entityTag: EntityTag? = nil, lastModified: HTTPDate? = nil,
        date: HTTPDate? = nil, mediaType: String? = nil
    ) {
        self.completeLength = completeLength
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
        self.mediaType = mediaType
    }

    /// The validator that the `ETag` or `Last-Modified` of the response gives, and its strength. An equal strong
    /// validator proves that another response has the same bytes.
    package var validator: Validator {
        if let entityTag, entityTag.isWellFormed {
            return entityTag.isWeak ? .weak : .strong(entityTag.fieldValue)
        }
        // A malformed tag is not an entity tag: a date may then be the strong validator (RFC 9110 §13.1.5).
        guard let lastModified else { return entityTag == nil ? .none : .weak }
        // RFC 9110 §8.8.2.2: strong if the response is at least one second later than Last-Modified by the origin's
        // clock. A Date that is missing, or before Last-Modified, proves nothing.
        guard let date, date.secondsSince1970 > lastModified.secondsSince1970 else { return .weak }
        return .strong(lastModified.fieldValue)
    }

    /// The field value of the strong validator, an entity tag or a date, for the request field `If-Range`; `nil`
    /// without a strong validator.
    package var strongValidator: String? {
        if case .strong(let value) = validator { return value }
        return nil
    }

    static let tagChanged =
        "the server has a different version of the file (its ETag is different),"
        + " so its bytes cannot be joined with those downloaded so far"

    /// Returns the reason why `other`, from a later response, is another version of the file: its entity tag, date or
    /// complete length differs. `nil` without such a contradiction.
    ///
    /// A field that one of the two lacks is not a contradiction. `repeatsValidator` checks whether the equal fields are
    /// a sufficient proof.
    package func contradiction(with other: Representation) -> String? {
        if let mine = completeLength, let theirs = other.completeLength, mine != theirs {
            return "the server has a different version of the file (its length is \(theirs) bytes, expected \(mine)),"
                + " so its bytes cannot be joined with those downloaded so far"
        }
        if let mine = entityTag, let theirs = other.entityTag {
            guard mine.matchesWeakly(theirs) else { return Self.tagChanged }
            // A malformed tag may be a constant, such as `null`: the dates count as well.
            guard !mine.isWellFormed || !theirs.isWellFormed else { return nil }
        }
        if (entityTag == nil) == (other.entityTag == nil), let mine = lastModified, let theirs = other.lastModified,
            mine != theirs
        {
            return "the server has a different version of the file (its Last-Modified date is \(theirs.fieldValue),"
                + " expected \(mine.fieldValue)), so its bytes cannot be joined with those downloaded so far"
        }
        return nil
    }

    /// Returns whether `other`, from another response, has the same strong validator as this metadata or, with
    /// `weakly`, the same weak validator.
    package func repeatsValidator(of other: Representation, weakly: Bool) -> Bool {
        if let mine = entityTag, let theirs = other.entityTag {
            if weakly { return mine.matchesWeakly(theirs) }
            // If both tags are malformed, the dates are the strong validators.
            guard mine == theirs, !mine.isWellFormed else { return mine.matchesStrongly(theirs) }
        }
        guard (entityTag == nil) == (other.entityTag == nil), let mine = lastModified, mine == other.lastModified else {
            return false
        }
        if weakly { return true }
        // The Date of a later response does not make a date strong that was weak in the first response.
        if case .strong = other.validator { return true }
        return false
    }
}

/// The validator of a file, a value that changes with its bytes and can be sent in `If-Range`, and its strength (RFC
/// 9110 §8.8.1, §13.1.5).
package enum Validator: Hashable, Sendable {
    /// The field value, byte for byte: an ETag without `W/`, or a date that counts as strong.
    case strong(String)
    /// A weak validator: an unchanged value is a hint, not a proof. Never sent in `If-Range`.
    case weak
    /// The response has no validator, so that nothing identifies the version of the file.
    case none
}
