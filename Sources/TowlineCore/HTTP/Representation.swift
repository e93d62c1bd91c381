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

    /// Makes one.
    package init(
        completeLength: Int64? = nil, entityTag: EntityTag? = nil, lastModified: HTTPDate? = nil, date: HTTPDate? = nil
    ) {
        self.completeLength = completeLength
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
    }
}
