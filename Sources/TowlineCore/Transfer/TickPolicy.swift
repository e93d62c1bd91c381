/// How often a transfer looks at itself while nothing happens to it: for its rate, its stalls, its checkpoints.
package enum TickPolicy {
    /// A transfer begins to look at itself after one to two of these: most small files are done before.
    package static let grace = Duration.milliseconds(50)

    /// One that is a single request until then, from far away or late: nobody needs to know more of it sooner.
    package static let patience = Duration.milliseconds(500)

    /// With so much to come it begins at once: how many connections pay off shows from the first bytes on.
    static let long: Int64 = 8 << 20

    /// Ten times a second while a hundred run at most; with more, all of them together a thousand times a second, each at
    /// least once. What a transfer waits for by the clock wakes it by itself.
    ///
    /// - Parameters:
    ///   - endsSoon: several connections are about to be done; then four times as often, where few run.
    ///   - isHashedFast: what comes fast is hashed meanwhile; then ten times as often: with each look more of it may be.
    package static func interval(running: Int, endsSoon: Bool = false, isHashedFast: Bool = false) -> Duration {
        if isHashedFast, running <= 100 { return .milliseconds(10) }
        if endsSoon, running <= 100 { return .milliseconds(25) }
        return .milliseconds(min(max(running, 100), 1000))
    }

    /// So many seconds before it is done a download looks often.
    package static let end = 0.3
}
