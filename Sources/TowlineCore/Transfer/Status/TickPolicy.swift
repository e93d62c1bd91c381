/// The interval of ticks: timer events with which a transfer checks its rate, stalled connections and syncs to disk
/// while no other event occurs.
package enum TickPolicy {
    /// The delay of a transfer's first tick (timer event), and the interval of the shared timer that starts it. The
    /// tick comes after one to two of these intervals. Most small files are complete by then.
    package static let grace = Duration.milliseconds(50)

    /// The time without an event after which a transfer that is a single request so far (`SmallFilePolicy`) gets a
    /// state machine and regular timer events (ticks): the server is far away or slow, and its details are not needed
    /// sooner.
    package static let patience = Duration.milliseconds(500)

    /// The minimum number of missing bytes for timer events (ticks) to start with the response, without the first delay
    /// (`grace`): the first bytes already show how many connections pay off.
    static let long: Int64 = 8 << 20

    /// Returns the interval between two ticks (timer events) of a transfer: 100 ms for up to a hundred transfers; for
    /// more, 1 ms per transfer, but at most a second.
    ///
    /// - Parameters:
    ///   - running: the number of transfers of the process that run.
    ///   - endsSoon: `true` if several connections are about to finish: four times as many ticks, if few transfers run.
    ///   - isHashedFast: `true` if fast bytes are hashed as they arrive: ten times as many ticks, because each tick
    ///     allows more hashing.
    package static func interval(running: Int, endsSoon: Bool = false, isHashedFast: Bool = false) -> Duration {
        if isHashedFast, running <= 100 { return .milliseconds(10) }
        if endsSoon, running <= 100 { return .milliseconds(25) }
        return .milliseconds(min(max(running, 100), 1000))
    }

    /// The remaining time in seconds of a download below which its timer events (ticks) are frequent.
    package static let end = 0.3
}

/// Functions that decide, from the state of a transfer (`TransferStateMachine`), how soon it needs its next timer event
/// (tick).
extension TickPolicy {
    /// Returns the interval of the timer events (ticks) of a transfer. `running`: the number of transfers of the
    /// process that run.
    package static func interval(running: Int, for machine: TransferStateMachine) -> Duration {
        let interval = interval(running: running, endsSoon: endsSoon(machine), isHashedFast: isHashedFast(machine))
        return awaitsHeads(machine) ? max(interval, slow) : interval
    }

    /// The interval of the timer events (ticks) of a transfer whose server takes long to send a response head. The end
    /// of the wait is an event of its own.
    static let slow = Duration.seconds(1)

    /// Returns whether every running request has waited for its response head for 2 s, so that there is no rate to
    /// measure.
    private static func awaitsHeads(_ machine: TransferStateMachine) -> Bool {
        machine.phase == .running && machine.work.liveCount > 0
            && machine.work.attempts.allSatisfy { !$0.isAccepted && machine.now - $0.startedAt >= .seconds(2) }
    }

    /// Returns whether a download with several connections will soon be done. Its timer events (ticks) must then be
    /// frequent: a connection that stalls now delays the whole file.
    package static func endsSoon(_ machine: TransferStateMachine) -> Bool {
        guard machine.phase == .running, machine.evidence.isConfirmed, !machine.work.isSingle,
            let length = machine.work.ledger.completeLength,
            let rate = machine.work.pace.estimator.rate
        else { return false }
        return Double(length - machine.work.ledger.written.count) < rate * end
    }

    /// Returns whether so many bytes are missing that the regular calls of the state machine (ticks), which measure
    /// rates and find stalled connections, should start immediately.
    package static func isLong(_ machine: TransferStateMachine) -> Bool {
        guard machine.phase == .running, machine.evidence.isConfirmed, !machine.work.isSingle,
            let length = machine.work.ledger.completeLength
        else {
            return false
        }
        return length - machine.work.ledger.written.count >= long
    }

    /// Returns the time at which a transfer needs a timer event (tick) before the next regular one, for example at the
    /// end of a wait; `nil` if the regular one suffices.
    package static func wakeAt(_ machine: TransferStateMachine) -> Duration? {
        guard machine.phase == .running else { return nil }
        guard machine.work.liveCount > 0 else {
            return machine.sources.nextTry(canUseMirrors: machine.mirrorRung != nil)
        }
        // A time that is over needs no event: without bytes to measure, it would stay the same forever.
        return [machine.work.budget.wakeAt, machine.work.firstLookAt].compactMap(\.self).filter { $0 > machine.now }
            .min()
    }

    /// The rate in bytes per second above which the bytes between two regular timer events (ticks) take so long to hash
    /// that the events must be more frequent.
    private static let fast = 100e6

    /// Returns whether arriving bytes are hashed and their rate is high or unknown. Timer events (ticks) must
    /// then be frequent, because each allows some hashing; bytes that they leave over are hashed at the end.
    package static func isHashedFast(_ machine: TransferStateMachine) -> Bool {
        machine.phase == .running && !machine.evidence.checksums.isEmpty && machine.work.liveCount > 0
            && machine.work.pace.estimator.rate ?? .infinity > Self.fast
    }
}
