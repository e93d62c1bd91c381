/// Creates the timers of the Swift runtime before the process runs out of file descriptors.
///
/// On Linux the runtime creates a descriptor for each clock at the first sleep, and ends the process if that fails
/// (libdispatch). If descriptors are scarce, connections must not have taken the last one before.
package enum TimerReserve {
    /// Sleeps once with each clock of the Swift runtime, so that the runtime creates its timers now. Call before the
    /// first connection; the sleep is long enough even on a busy machine.
    package static func fill() async {
        async let continuous: Void? = try? Task.sleep(for: .milliseconds(20), clock: .continuous)
        async let suspending: Void? = try? Task.sleep(for: .milliseconds(20), clock: .suspending)
        _ = await (continuous, suspending)
    }
}
