/// How many downloads a host serves at the same time, learned from refusals and from answers that do not come.
struct HostCrowd {
    /// After this many answers in a row, one more download is tried.
    private static let steady = 32
    /// Refusals that say nothing yet.
    private static let chance = 2

    /// Downloads that may have connections of their own; `nil`: no limit is known.
    private(set) var limit: Int?
    /// Answers since the process began.
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

    /// The host left one of `count` downloads waiting while it answered others.
    mutating func kept(among count: Int) {
        row = 0
        limit = max(1, min(limit ?? count, count - 1))
        recent = (0, 0)
    }
}
