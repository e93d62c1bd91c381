/// The number of downloads that a host serves at the same time, learned from refusals (such as 503) and from responses
/// that do not come.
struct HostCrowd {
    /// The number of consecutive responses of the host after which `limit` is raised by one download.
    private static let steady = 32
    /// The minimum number of refusals by the host, such as 503, that lowers `limit`. A single refusal may be chance.
    private static let chance = 2

    /// The maximum number of simultaneous downloads with connections of their own that the host serves; `nil`: no limit
    /// is known.
    private(set) var limit: Int?
    /// The number of responses of the host since the process began, without temporary errors.
    private(set) var answers = 0
    /// The numbers of responses and of refusals (such as 503) since `limit` was last lowered.
    private var recent = (answers: 0, refusals: 0)
    /// The number of consecutive responses since the last refusal or the last change of `limit`.
    private var row = 0

    /// `true` if the host has no known limit and no recent refusal, so that nothing about its downloads need be
    /// remembered.
    var isEmpty: Bool { limit == nil && recent.refusals == 0 }

    /// Records a response of the host, which raises a known limit after `steady` (32) responses in a row.
    mutating func answered() {
        answers += 1
        recent.answers += 1
        row += 1
        guard let limit, row >= Self.steady else { return }
        row = 0
        self.limit = limit + 1
    }

    /// Records that the host refused one of `count` simultaneous downloads, for example with 503 or a reset. If there
    /// were at least as many recent refusals as responses, halves the limit of simultaneous downloads.
    mutating func refused(among count: Int) {
        row = 0
        guard count > 1 else { return }
        recent.refusals += 1
        guard recent.refusals >= Self.chance, recent.refusals >= recent.answers else { return }
        limit = max(1, min(limit ?? count, count) / 2)
        recent = (0, 0)
    }

    /// Records that the host left one of `count` simultaneous downloads waiting while it responded to others. The limit
    /// of simultaneous downloads is then at most `count - 1`.
    mutating func kept(among count: Int) {
        row = 0
        limit = max(1, min(limit ?? count, count - 1))
        recent = (0, 0)
    }
}
