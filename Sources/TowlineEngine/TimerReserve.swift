/// Timers that are there before descriptors run out.
///
/// On Linux the runtime makes a descriptor for each clock when somebody first sleeps by it, and ends the process where
/// that fails (libdispatch). Where descriptors are few, connections must not have taken the last one before.
package enum TimerReserve {
    /// Sleeps by each clock, so long that it is not over before the timer is made, on a busy machine either. Call before
    /// the first connection.
    package static func fill() async {
        async let continuous: Void? = try? Task.sleep(for: .milliseconds(20), clock: .continuous)
        async let suspending: Void? = try? Task.sleep(for: .milliseconds(20), clock: .suspending)
        _ = await (continuous, suspending)
    }
}
