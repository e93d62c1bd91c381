extension Wire {
    /// A page of the list.
    package struct Page: Hashable, Sendable, Codable {
        /// The downloads.
        package var downloads: [Download]
        /// Where the next page begins; absent at the end.
        package var next: String?
        /// Sums over the whole list.
        package var totals: Totals

        /// Makes one.
        package init(downloads: [Download], next: String?, totals: Totals) {
            self.downloads = downloads
            self.next = next
            self.totals = totals
        }
    }

    /// Sums over the list.
    package struct Totals: Hashable, Sendable, Codable {
        /// How many downloads there are in each kept state.
        package var counts: [String: Int]
        /// Bytes that are there.
        package var heldBytes: Int64
        /// Bytes in all, of those whose length is known.
        package var completeLength: Int64
        /// Bytes per second, of all together.
        package var rate: Int64
        /// How many run now.
        package var running: Int
        /// The limit of all together, in bytes per second; `nil`: none.
        package var rateLimit: Int64?

        /// Makes one.
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

    /// The downloads that were added.
    package struct Added: Hashable, Sendable, Codable {
        /// In the order they were asked for.
        package var downloads: [Download]

        /// Makes one.
        package init(downloads: [Download]) { self.downloads = downloads }
    }

    /// An entry of a timeline.
    package struct Note: Hashable, Sendable, Codable {
        /// The download it is of; only in events.
        package var id: String?
        /// Its number, ascending; 0 in events.
        package var number: Int64
        /// When.
        package var time: Int64
        /// A stable name for programs.
        package var kind: String
        /// One sentence.
        package var message: String

        /// Makes one.
        package init(id: String? = nil, number: Int64, time: Int64, kind: String, message: String) {
            self.id = id
            self.number = number
            self.time = time
            self.kind = kind
            self.message = message
        }
    }

    /// Which bytes are there, and which are on their way. Ranges are half open, `[first, end]`.
    package struct Segments: Hashable, Sendable, Codable {
        /// A segment that a connection is bringing.
        package struct Attempt: Hashable, Sendable, Codable {
            /// 1 for the connection whose request began first.
            package var connection: Int
            /// Its first byte.
            package var from: Int64
            /// Where it ends.
            package var to: Int64
            /// The next byte it writes.
            package var position: Int64
            /// Bytes per second; absent while unknown.
            package var rate: Int64?

            /// Makes one.
            package init(connection: Int, from: Int64, to: Int64, position: Int64, rate: Int64?) {
                self.connection = connection
                self.from = from
                self.to = to
                self.position = position
                self.rate = rate
            }
        }

        /// Size of the whole; absent while unknown.
        package var completeLength: Int64?
        /// What is there, ascending; finer ones are merged beyond `maximum`.
        package var written: [[Int64]]
        /// What is on its way.
        package var attempts: [Attempt]
        /// Most ranges that are told.
        package static let maximum = 2000

        /// Makes one.
        package init(completeLength: Int64?, written: [[Int64]], attempts: [Attempt]) {
            self.completeLength = completeLength
            self.written = written
            self.attempts = attempts
        }
    }

    /// What happened to a download.
    package struct Timeline: Hashable, Sendable, Codable {
        /// Oldest first.
        package var notes: [Note]

        /// Makes one.
        package init(notes: [Note]) { self.notes = notes }
    }

    /// What is known of the hosts that are in use.
    package struct Hosts: Hashable, Sendable, Codable {
        /// In the order of their names.
        package var hosts: [Host]

        /// Makes one.
        package init(hosts: [Host]) { self.hosts = hosts }
    }

    /// What is known of a host.
    package struct Host: Hashable, Sendable, Codable {
        /// `scheme://host:port`.
        package var host: String
        /// How many downloads of it run.
        package var running: Int
        /// The connections it allows, where that was learned.
        package var ceiling: Int?
        /// Until when it wants to be left alone.
        package var notBefore: Int64?

        /// Makes one.
        package init(host: String, running: Int, ceiling: Int?, notBefore: Int64?) {
            self.host = host
            self.running = running
            self.ceiling = ceiling
            self.notBefore = notBefore
        }
    }

    /// A name alone, in events.
    package struct Name: Hashable, Sendable, Codable {
        /// The download's.
        package var id: String

        /// Makes one.
        package init(id: String) { self.id = id }
    }

    /// Which bytes are there, and which are on their way. Ranges are half open.
    package struct SegmentMap: Hashable, Sendable, Codable {
        /// Size of the whole.
        package var completeLength: Int64?
        /// Ranges that are there, `[from, to]`.
        package var written: [[Int64]]
        /// What is on its way.
        package var attempts: [Attempt]

        /// Makes one.
        package init(completeLength: Int64?, written: [[Int64]], attempts: [Attempt]) {
            self.completeLength = completeLength
            self.written = written
            self.attempts = attempts
        }
    }

    /// A segment that an attempt is at.
    package struct Attempt: Hashable, Sendable, Codable {
        /// Its number, from 1.
        package var connection: Int
        /// Where its segment begins.
        package var from: Int64
        /// Where its segment ends.
        package var to: Int64
        /// Where the next byte goes.
        package var position: Int64
        /// Bytes per second.
        package var rate: Int64?

        /// Makes one.
        package init(connection: Int, from: Int64, to: Int64, position: Int64, rate: Int64?) {
            self.connection = connection
            self.from = from
            self.to = to
            self.position = position
            self.rate = rate
        }
    }
}
