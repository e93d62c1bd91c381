/// The number of downloads that a host serves at the same time, learned from refusals and from missing responses.
struct HostCrowd {
    /// The number of consecutive responses after which one more download is tried.
    private static let steady = 32
    /// The least number of refusals that counts. A single one may be chance.
    private static let chance = 2

    /// The number of downloads that may have connections of their own; `nil`: no limit is known.
    private(set) var limit: Int?
    /// The number of responses since the process began.
    private(set) var answers = 0
    private var recent = (answers: 0, refusals: 0)
    private var row = 0

    /// A Boolean value that indicates whether the host has refused no download.
    var isEmpty: Bool { limit == nil && recent.refusals == 0 }

    /// Notes a response of the host.
    mutating func answered() {
        answers += 1
        recent.answers += 1
        row += 1
        guard let limit, row >= Self.steady else { return }
        row = 0
        self.limit = limit + 1
    }

    /// Notes that the host refused one of `count` downloads at a time, for example with 503 or a reset. If at least
    /// half of its responses are refusals, the limit is halved.
    mutating func refused(among count: Int) {
        row = 0
        guard count > 1 else { return }
        recent.refusals += 1
        guard recent.refusals >= Self.chance, recent.refusals >= recent.answers else { return }
        limit = max(1, min(limit ?? count, count) / 2)
        recent = (0, 0)
    }

    /// Notes that the host left one of `count` downloads waiting while it responded to others.
    mutating func kept(among count: Int) {
        row = 0
        limit = max(1, min(limit ?? count, count - 1))
        recent = (0, 0)
    }
}
