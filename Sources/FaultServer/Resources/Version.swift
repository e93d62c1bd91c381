/// One representation of a resource: what its bytes are, and what its validators say of them.
package struct Version: Sendable, Hashable {
    /// How the entity tag is given.
    package enum EntityTag: Sendable, Hashable {
        /// `"text"`.
        case strong(String)
        /// `W/"text"`.
        case weak(String)
        /// No `ETag` field.
        case absent

        /// The field's value; `nil` for ``absent``.
        package var field: String? {
            switch self {
            case .strong(let text): "\"\(text)\""
            case .weak(let text): "W/\"\(text)\""
            case .absent: nil
            }
        }
    }

    /// How the `Date` field of a response is given.
    package enum Date: Sendable, Hashable {
        /// The server's clock.
        case now
        /// Always this time, in seconds since 1970.
        case fixed(Int64)
        /// No `Date` field.
        case absent
    }

    /// The seed of the bytes.
    package var seed: UInt64
    /// The complete length, in bytes.
    package var length: Int64
    /// The entity tag.
    package var etag: EntityTag
    /// When it was last changed, in seconds since 1970; `nil` leaves the field out.
    package var lastModified: Int64?
    /// The `Date` field.
    package var date: Date

    /// A version. Without an entity tag given it is strong and made of the seed and the length.
    package init(
        seed: UInt64 = 1, length: Int64, etag: EntityTag? = nil, lastModified: Int64? = 1_700_000_000,
        date: Date = .now
    ) {
        self.seed = seed
        self.length = length
        self.etag = etag ?? .strong("\(seed)-\(length)")
        self.lastModified = lastModified
        self.date = date
    }

    /// The bytes.
    package var content: FaultContent { FaultContent(seed: seed) }

    /// A copy with other bytes, and by default with the entity tag that goes with them.
    package func replaced(seed: UInt64, length: Int64? = nil, etag: EntityTag? = nil) -> Version {
        Version(
            seed: seed, length: length ?? self.length, etag: etag, lastModified: lastModified.map { $0 + 3600 },
            date: date)
    }

    /// The value of the `Date` field at `now`; `nil` leaves it out.
    package func dateField(now: Int64) -> String? {
        switch date {
        case .now: HTTPDateText.format(now)
        case .fixed(let seconds): HTTPDateText.format(seconds)
        case .absent: nil
        }
    }

    /// The value of the `Last-Modified` field; `nil` leaves it out.
    package var lastModifiedField: String? { lastModified.map(HTTPDateText.format) }
}
