import CTowline
import Glibc
internal import TowlineCore

/// The kernel's receive buffer of a connection whose body a rate limit delays. Its size follows `ReceiveWindow`.
struct ReceiveBuffer {
    private let socket: Int32
    /// The size in bytes; `nil` while the system chooses the size.
    private var size: Int64?
    /// The time of the next change. A change shows in the number of unread bytes after a round trip.
    private var next: MonotonicTime?

    init(_ socket: Int32) { self.socket = socket }

    /// Changes the size for a limit of `rate` bytes per second, unless it was changed a moment ago.
    mutating func fit(to rate: Int64) {
        let now = MonotonicTime.now
        if let next, now < next { return }
        var state = towline_receive_buffer()
        guard towline_read_receive_buffer(socket, &state) == 0 else { return next = .never }
        let roundTrip = Duration.microseconds(state.round_trip)
        next = now.advanced(by: roundTrip * 2 + .milliseconds(100))
        let window = ReceiveWindow(rate: rate, roundTrip: roundTrip, largest: Self.largest)
        let wanted = window.size(from: size, unread: state.unread)
        guard wanted != size else { return }
        size = wanted
        _ = towline_set_receive_buffer(socket, Int32(clamping: wanted ?? 0))
    }

    /// Lets the system choose the size of a connection's receive buffer again.
    static func release(_ socket: Int32) { _ = towline_set_receive_buffer(socket, 0) }

    /// The largest size in bytes that the system grants: twice `net.core.rmem_max`, whose usual value applies if the
    /// file is not visible, as in a container.
    private static let largest: Int64 = {
        let usual: Int64 = 212_992
        guard let file = fopen("/proc/sys/net/core/rmem_max", "re") else { return 2 * usual }
        defer { fclose(file) }
        var digits = [CChar](repeating: 0, count: 32)
        guard fgets(&digits, 32, file) != nil else { return 2 * usual }
        return 2 * min(max(Int64(atoll(digits)), 1 << 12), Int64(Int32.max) / 4)
    }()
}
