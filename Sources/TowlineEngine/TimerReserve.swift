/// Timers that are there before descriptors run out.
///
/// On Linux the runtime makes a descriptor for each clock when somebody first sleeps by it, and ends the process where
/// that fails (libdispatch). Where descriptors are few, connections must not have taken the last one before.
package enum TimerReserve {
    /// Sleeps for an instant by each clock. Call before the first connection; a second call costs next to nothing.
    package static func fill() async {
        try? await Task.sleep(for: .nanoseconds(1), clock: .continuous)
        try? await Task.sleep(for: .nanoseconds(1), clock: .suspending)
    }
}
