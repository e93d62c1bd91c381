internal import TowlineCore
internal import TowlineEngine

/// The functions of the event loop for response bodies that the kernel moves from the socket through a pipe
/// (`Splicing`).
extension AttemptLoop {
    /// Makes the kernel move the rest of a body that libcurl is paused for. If the kernel cannot, libcurl resumes.
    func splice(_ attempt: Attempt) {
        let socket = attempt.connection.socket
        guard attempt.body?.splicing?.begin(on: socket, callCount: attempt.pool.callCount) == true else {
            return unpause(attempt)
        }
        if let socket { ownSockets[socket] = attempt }
        resumeSplicing(attempt)
    }

    /// Watches the socket of a body that the kernel moves through a pipe (splices), and moves the bytes that are
    /// available.
    func resumeSplicing(_ attempt: Attempt) {
        guard let socket = attempt.splicedSocket else { return }
        guard watch.want(.read, of: socket, tag: attempt.pool.tag) else {
            let reason = "this machine cannot wait for data of the connection: the system call epoll_ctl(2) failed"
            return end(attempt, .failed(TransportFailure(.local, reason)))
        }
        moveSpliced(attempt)
    }

    /// Moves the available bytes of a body from the socket through the pipe to the receiver. Called when the socket is
    /// ready.
    func moveSpliced(_ attempt: Attempt) {
        guard let splicing = attempt.body?.splicing, let socket = splicing.socket else { return }
        if attempt.connection.receiveBuffer != nil { attempt.fitReceiveBuffer() }
        switch splicing.move(callCount: attempt.pool.callCount) {
        case .wait: break
        case .pause(let delay):
            watch.dismiss(socket)
            attempt.wait(for: delay)
        case .end(let end): self.end(attempt, end)
        }
    }
}
