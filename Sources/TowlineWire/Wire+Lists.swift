extension Wire {
    /// A page of the list of downloads.
    package struct Page: Hashable, Sendable, Codable {
        /// Downloads on this page.
        package var downloads: [Download]
        /// Cursor of the next page; absent on the last page.
        package var next: String?
        /// Totals of the whole list.
        package var totals: Totals

        /// Creates a value.
        package init(downloads: [Download], next: String?, totals: Totals) {
            self.downloads = downloads
            self.next = next
            self.totals = totals
        }
    }

    /// Totals of the list.
    package struct Totals: Hashable, Sendable, Codable {
        /// Number of downloads by stored state.
        package var counts: [String: Int]
        /// Bytes downloaded so far.
        package var heldBytes: Int64
        /// Sum of the known complete lengths.
        package var completeLength: Int64
        /// Total rate in bytes per second.
        package var rate: Int64
        /// Number of active downloads.
        package var running: Int
        /// Total rate limit in bytes per second; `nil` if there is no limit.
        package var rateLimit: Int64?

        /// Creates a value.
        package init(
            counts: [String: Int], heldBytes: Int64, completeLength: Int64, rate: Int64, running: Int,
            rateLimit: Int64? = nil
        ) {
            self.counts = counts
            self.heldBytes = heldBytes
            self.completeLength = completeLength
            self.rate = rate
            self.running = running
            self.rateLimit = rateLimit
        }
    }

    /// The downloads that were added or found.
    package struct Added: Hashable, Sendable, Codable {
        /// Downloads, in the order of the request.
        package var downloads: [Download]

        /// Creates a value.
        package init(downloads: [Download]) { self.downloads = downloads }
    }

    /// An entry of a timeline.
    package struct Note: Hashable, Sendable, Codable {
        /// ID of the download; in events only.
        package var id: String?
        /// Number, ascending; 0 in events.
        package var number: Int64
        /// Time of the entry.
        package var time: Int64
        /// Stable name of the kind of entry, for programs.
        package var kind: String
        /// Message.
        package var message: String

        /// Creates a value.
        package init(id: String? = nil, number: Int64, time: Int64, kind: String, message: String) {
            self.id = id
            self.number = number
            self.time = time
            self.kind = kind
            self.message = message
        }
    }

    /// The downloaded byte ranges and the active attempts. Ranges are half open, `[first, end]`.
    package struct Segments: Hashable, Sendable, Codable {
        /// A segment that a connection downloads.
        package struct Attempt: Hashable, Sendable, Codable {
            /// Number of the connection; 1 for the oldest request.
            package var connection: Int
            /// Offset of the first byte of the segment.
            package var from: Int64
            /// End of the segment (exclusive).
            package var to: Int64
            /// Offset of the next byte to write.
            package var position: Int64
            /// Bytes per second; absent while unknown.
            package var rate: Int64?

            /// Creates a value.
            package init(connection: Int, from: Int64, to: Int64, position: Int64, rate: Int64?) {
                self.connection = connection
                self.from = from
                self.to = to
                self.position = position
                self.rate = rate
            }
        }

        /// Complete length; absent while unknown.
        package var completeLength: Int64?
        /// Downloaded ranges, ascending. Close ranges are merged if there are more than `maximum`.
        package var written: [[Int64]]
        /// Active attempts.
        package var attempts: [Attempt]
        /// Maximum number of ranges.
        package static let maximum = 2000

        /// Creates a value.
        package init(completeLength: Int64?, written: [[Int64]], attempts: [Attempt]) {
            self.completeLength = completeLength
            self.written = written
            self.attempts = attempts
        }
    }

    /// The timeline of a download.
    package struct Timeline: Hashable, Sendable, Codable {
        /// Entries, oldest first.
        package var notes: [Note]

        /// Creates a value.
        package init(notes: [Note]) { self.notes = notes }
    }

    /// The state of all hosts in use.
    package struct Hosts: Hashable, Sendable, Codable {
        /// Hosts, sorted by name.
        package var hosts: [Host]

        /// Creates a value.
        package init(hosts: [Host]) { self.hosts = hosts }
    }

    /// The state of a host.
    package struct Host: Hashable, Sendable, Codable {
        /// `scheme://host:port`.
        package var host: String
        /// Number of active downloads from this host.
        package var running: Int
        /// Connection limit learned from the host's responses, if any.
        package var ceiling: Int?
        /// Time before which the host must not be contacted (Retry-After).
        package var notBefore: Int64?

        /// Creates a value.
        package init(host: String, running: Int, ceiling: Int?, notBefore: Int64?) {
            self.host = host
            self.running = running
            self.ceiling = ceiling
            self.notBefore = notBefore
        }
    }

    /// A problem of the list of downloads that was found or repaired, in events.
    package struct Notice: Hashable, Sendable, Codable {
        /// The message for the user.
        package var message: String

        /// Creates a value.
        package init(message: String) { self.message = message }
    }

    /// The ID of a download, in events.
    package struct Name: Hashable, Sendable, Codable {
        /// ID of the download.
        package var id: String

        /// Creates a value.
        package init(id: String) { self.id = id }
    }
}
