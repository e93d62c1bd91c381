/// One representation of a resource: its bytes and its validators.
package struct Version: Sendable, Hashable {
    /// The form of the entity tag.
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

    /// The source of the `Date` field of a response.
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
    /// The time of the last modification in seconds since 1970; `nil` omits the field.
    package var lastModified: Int64?
    /// The `Date` field.
    package var date: Date

    /// Creates a version. The default entity tag is strong and consists of the seed and the length.
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

    /// Returns a copy with other bytes, by default with the entity tag of the new seed and length.
    package func replaced(seed: UInt64, length: Int64? = nil, etag: EntityTag? = nil) -> Version {
        Version(
            seed: seed, length: length ?? self.length, etag: etag, lastModified: lastModified.map { $0 + 3600 },
            date: date)
    }

    /// Returns the value of the `Date` field at `now`, in seconds since 1970; `nil` omits the field.
    package func dateField(now: Int64) -> String? {
        switch date {
        case .now: HTTPDateText.format(now)
        case .fixed(let seconds): HTTPDateText.format(seconds)
        case .absent: nil
        }
    }

    /// The value of the `Last-Modified` field; `nil` omits the field.
    package var lastModifiedField: String? { lastModified.map(HTTPDateText.format) }
}
