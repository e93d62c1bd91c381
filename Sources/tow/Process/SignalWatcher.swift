import Glibc
import Synchronization

/// Turns the first SIGINT, SIGTERM or SIGHUP into a call, and the second, or `grace` without an end, into leaving at
/// once. Leaving at once loses nothing that is written: that is what the journal is for.
final class SignalWatcher: Sendable {
    private let first = Mutex<Int32?>(nil)
    /// So many microseconds after the first one, signals belong to it.
    private static let echo: UInt32 = 100_000

    /// The signal that asked to stop, if one did.
    var received: Int32? { first.withLock { $0 } }

    /// Blocks the signals in this thread and those that it starts; call before there are any others.
    ///
    /// A signal that was ignored when the process began stays ignored: `nohup`, and `&` in a script, mean it.
    static func block() {
        var set = signals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// - Parameters:
    ///   - grace: seconds to wait for an orderly end.
    ///   - onStop: called once, from a thread of its own.
    func watch(grace: Int, onStop: @escaping @Sendable () -> Void) {
        PlatformThread { [self] in
            var set = Self.signals()
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0 else { return }
            first.withLock { $0 = number }
            onStop()
            // timeout(1) signals the process and then its group: the second signal of those is nobody's impatience.
            usleep(Self.echo)
            var echoes = timespec()
            while sigtimedwait(&set, nil, &echoes) > 0 || errno == EINTR {}
            var limit = timespec(tv_sec: grace, tv_nsec: 0)
            while sigtimedwait(&set, nil, &limit) == -1 && errno == EINTR {}
            _exit(Self.exitStatus(for: number))
        }?.detach()
    }

    /// What the exit status of an interrupted run is: SIGHUP counts as SIGTERM.
    static func exitStatus(for signal: Int32) -> Int32 { signal == SIGINT ? 130 : 143 }

    /// Those that ask to stop and were not ignored when the process began.
    static func signals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) { sigaddset(&set, number) }
        return set
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
