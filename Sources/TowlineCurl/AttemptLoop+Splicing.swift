import Glibc
internal import TowlineCore
internal import TowlineEngine

/// Response bodies that the kernel moves from the socket through a pipe (splice(2)), without copies in this process.
extension AttemptLoop {
    /// The maximum number of consecutive reads of one body, so that the loop serves other attempts too.
    private static let mostReadings = 8

    /// Takes over the rest of a body from the paused libcurl, so that the kernel moves it. If some unread bytes are not
    /// in the socket but in libcurl, resumes libcurl instead.
    func splice(_ attempt: Attempt) {
        let wanted = attempt.receiver.wanted
        guard wanted > 0 else { return end(attempt, .stopped) }
        guard let socket = attempt.socket, let rest = attempt.rest,
            let body = SplicedBody(socket: socket, rest: rest, passed: attempt.passed)
        else { return decline(attempt, again: true) }
        let first = body.receive(upTo: wanted, callCount: attempt.pool.callCount)
        switch first {
        case .moved, .nothing, .closed: break
        case .unproven: return decline(attempt, again: true)
        // Some systems do not support splice(2); then no byte was taken.
        case .disturbed, .failed: return decline(attempt, again: false)
        }
        attempt.spliced = body
        spliced[socket] = attempt
        guard watch.want(.read, of: socket, tag: attempt.pool.tag) else { return endUnwatched(attempt) }
        if take(first, of: body, for: attempt) { read(body, for: attempt) }
    }

    private func decline(_ attempt: Attempt, again: Bool) {
        attempt.withdraw(again: again)
        unpause(attempt)
    }

    private func endUnwatched(_ attempt: Attempt) {
        let reason = "this machine cannot wait for data of the connection: the system call epoll_ctl(2) failed"
        end(attempt, .failed(TransportFailure(.local, reason)))
    }

    /// Moves bytes from the socket of a body into its pipe and passes them to the receiver. Called when the socket is
    /// ready.
    func read(_ body: SplicedBody, for attempt: Attempt) {
        for _ in 0..<Self.mostReadings {
            let wanted = attempt.receiver.wanted
            // The segment became shorter: no more bytes of this response are needed.
            guard wanted > 0 else { return end(attempt, .stopped) }
            guard take(body.receive(upTo: wanted, callCount: attempt.pool.callCount), of: body, for: attempt) else {
                return
            }
        }
    }

    /// Acts on the result of a read from the socket: passes the bytes to the receiver, or ends the attempt.
    ///
    /// - Returns: `true` if the caller can read more now.
    private func take(_ step: SplicedBody.Step, of body: SplicedBody, for attempt: Attempt) -> Bool {
        switch step {
        case .moved: return handOver(body, to: attempt)
        case .nothing, .unproven:
            if !attempt.rests() { end(attempt, .stopped) }
        case .disturbed:
            let reason =
                "Towline closed the connection: it and the operating system counted different numbers of received bytes"
            cut(attempt, reason)
        case .closed: cut(attempt, "the connection to the server closed before the whole response was received")
        case .failed(let number):
            cut(attempt, "cannot read from the connection to the server: \(String(cString: strerror(number)))")
        }
        return false
    }

    private func cut(_ attempt: Attempt, _ reason: String) {
        end(attempt, .failed(TransportFailure(.bodyCut, reason)))
    }

    /// Continues, after a pause, a body that the kernel moves through a pipe.
    func resume(_ body: SplicedBody, for attempt: Attempt) {
        guard body.waiting == 0 || handOver(body, to: attempt) else { return }
        guard watch.want(.read, of: body.socket, tag: attempt.pool.tag) else { return endUnwatched(attempt) }
        read(body, for: attempt)
    }

    /// Passes the bytes in the pipe to the receiver, and obeys its answer.
    ///
    /// - Returns: `true` if the receiver consumed the bytes and the body has not ended.
    private func handOver(_ body: SplicedBody, to attempt: Attempt) -> Bool {
        switch attempt.receiver.receivedBody(in: body.pipe, count: body.waiting) {
        case .consumed:
            body.waiting = 0
            guard body.rest == 0 else { return true }
            end(attempt, .complete(attempt.framing))
        case .pause: pause(attempt, body, nil)
        case .pauseFor(let delay): pause(attempt, body, delay)
        case .stop: end(attempt, .stopped)
        }
        return false
    }

    private func pause(_ attempt: Attempt, _ body: SplicedBody, _ delay: Duration?) {
        watch.dismiss(body.socket)
        attempt.wait(for: delay)
    }
}
