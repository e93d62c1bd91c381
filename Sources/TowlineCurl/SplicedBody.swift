import CTowline
import Glibc
internal import TowlineCore

/// The rest of a body that libcurl has begun with, moved by the kernel from its connection into a pipe, and from there by
/// whoever it is for (`SplicePolicy`, splice(2)). libcurl rests, and hears of the connection again when it is to close it.
///
/// What libcurl promises of a pause is that nothing is delivered, not that nothing is read. So the kernel is asked, before
/// anything is moved and whenever libcurl was called since: what was taken from the socket is what was handed over, or nothing
/// more of it is believed.
///
/// Confined to its engine thread.
final class SplicedBody {
    /// What a reading led to.
    enum Step {
        /// Some bytes are in the pipe.
        case moved
        /// Nothing is there yet.
        case nothing
        /// The connection was closed before the body's end.
        case closed
        /// Somebody else has taken bytes from the socket.
        case disturbed
        /// The system's error.
        case failed(Int32)
    }

    let socket: Int32
    /// So many bytes of the body are still to come from the socket.
    private(set) var rest: Int64
    /// So many are in the pipe.
    var waiting = 0
    private let ends: (read: Int32, write: Int32)
    /// So many bytes of the response were taken from the socket, its head among them.
    private var taken: Int64
    /// How often libcurl had been called when that was last seen to be all.
    private var provenAt: Int

    /// What receivers read from.
    var pipe: Int32 { ends.read }

    /// Room for a reading whose bytes come in small packets.
    private static let room = 1 << 20

    /// Whether so many bytes are all that were ever taken from a socket; they are not where TLS or a proxy had some, or an
    /// earlier response, or where libcurl holds some. `nil`: it cannot be told at this moment.
    static func proven(socket: Int32, passed: Int64) -> Bool? {
        let taken = towline_taken(socket)
        return taken == Int64(-EAGAIN) ? nil : taken == passed
    }

    /// - Parameters:
    ///   - rest: so many bytes of the body are to come.
    ///   - passed: so many bytes of the response were handed over, as is `proven`.
    ///   - callCount: how often libcurl had been called then.
    /// - Returns: `nil` if there is no pipe to be had.
    init?(socket: Int32, rest: Int64, passed: Int64, callCount: Int) {
        var numbers: (Int32, Int32) = (-1, -1)
        let code = withUnsafeMutableBytes(of: &numbers) {
            towline_pipe($0.baseAddress?.assumingMemoryBound(to: Int32.self), Int32(Self.room))
        }
        guard code == 0 else { return nil }
        self.socket = socket
        self.rest = rest
        taken = passed
        provenAt = callCount
        ends = (numbers.0, numbers.1)
    }

    deinit {
        close(ends.read)
        close(ends.write)
    }

    /// Moves what is there, up to that many bytes, into the pipe, which is empty.
    func receive(upTo count: Int64, callCount: Int) -> Step {
        if callCount != provenAt {
            // The socket is ready again at once.
            guard let isProven = Self.proven(socket: socket, passed: taken) else { return .nothing }
            guard isProven else { return .disturbed }
            provenAt = callCount
        }
        while true {
            let moved = towline_receive(socket, ends.write, Int(min(count, rest, SplicePolicy.most)))
            switch moved {
            case 0: return .closed
            case Int64(-EAGAIN): return .nothing
            case Int64(-EINTR): continue
            case ..<0: return .failed(Int32(-moved))
            default:
                rest -= moved
                taken += moved
                waiting = Int(moved)
                return .moved
            }
        }
    }
}
