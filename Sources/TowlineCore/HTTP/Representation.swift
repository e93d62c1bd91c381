/// What a response says of the representation it carries (RFC 9110 §3.2, §8).
package struct Representation: Hashable, Sendable {
    /// The size of the whole, where it is known.
    package var completeLength: Int64?
    /// The entity tag.
    package var entityTag: EntityTag?
    /// `Last-Modified`.
    package var lastModified: HTTPDate?
    /// `Date` of the response that gave `lastModified`: it decides whether that counts as strong.
    package var date: HTTPDate?
    /// The media type without parameters, lower case; tells a login page from the file.
    package var mediaType: String?

    /// Makes one.
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

    /// What these fields prove when bytes of two responses are to be joined.
    package var validator: Validator {
        if let entityTag, entityTag.isWellFormed {
            return entityTag.isWeak ? .weak : .strong(entityTag.fieldValue)
        }
        // A malformed tag is no entity tag: beside it a date may be the strong validator (RFC 9110 §13.1.5).
        guard let lastModified else { return entityTag == nil ? .none : .weak }
        // RFC 9110 §8.8.2.2: strong if the origin's clock had moved on by at least a second when it answered.
        // A Date that is missing, or before Last-Modified, proves nothing.
        guard let date, date.secondsSince1970 > lastModified.secondsSince1970 else { return .weak }
        return .strong(lastModified.fieldValue)
    }

    /// What the server vouches for every byte by: an entity tag or a date; `nil` if it does not.
    package var strongValidator: String? {
        if case .strong(let value) = validator { return value }
        return nil
    }

    static let tagChanged =
        "the server has a different version of the file (its ETag is different),"
        + " so its bytes cannot be joined with those downloaded so far"

    /// Whether `other` contradicts what is known: another entity tag, date or complete length.
    ///
    /// A field that one of the two does not give is no contradiction; whether it is enough proof is `sharesProof`.
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

    /// Whether `other` repeats the validator: the same strong one, or, with `weakly`, the same weak one.
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
        // A later response's own Date does not make a date strong that was weak when the first bytes came.
        if case .strong = other.validator { return true }
        return false
    }
}

/// What may be sent in `If-Range` and what it proves (RFC 9110 §8.8.1, §13.1.5).
package enum Validator: Hashable, Sendable {
    /// An ETag without `W/`, or a date that counts as strong; the field value, byte for byte.
    case strong(String)
    /// Unchanged is a hint, no proof; never sent in `If-Range`.
    case weak
    /// Nothing at all.
    case none
}
