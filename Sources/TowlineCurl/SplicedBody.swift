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
        /// More comes at this moment than lets anybody tell; the socket is ready again at once.
        case unproven
        /// What was taken from the socket is not what was handed over: TLS or a proxy had some of it, or an earlier response,
        /// or libcurl has.
        case disturbed
        /// The system's error.
        case failed(Int32)
    }

    let socket: Int32
    /// So many bytes of the body are still to come from the socket.
    var rest: Int64 { end - taken }
    /// So many are in the pipe.
    var waiting = 0
    private let ends: (read: Int32, write: Int32)
    /// So many bytes of the response were taken from the socket, its head among them.
    private var taken: Int64
    /// What that is at the body's end.
    private let end: Int64
    /// How often libcurl had been called when `taken` was last seen to be all.
    private var provenAt: Int?

    /// What receivers read from.
    var pipe: Int32 { ends.read }

    /// Room for a reading whose bytes come in small packets.
    private static let room = 1 << 20

    /// - Parameters:
    ///   - rest: so many bytes of the body are to come.
    ///   - passed: so many bytes of the response were handed over.
    /// - Returns: `nil` if there is no pipe to be had.
    init?(socket: Int32, rest: Int64, passed: Int64) {
        var numbers: (Int32, Int32) = (-1, -1)
        let code = withUnsafeMutableBytes(of: &numbers) {
            towline_pipe($0.baseAddress?.assumingMemoryBound(to: Int32.self), Int32(Self.room))
        }
        guard code == 0 else { return nil }
        self.socket = socket
        taken = passed
        end = passed + rest
        ends = (numbers.0, numbers.1)
    }

    deinit {
        close(ends.read)
        close(ends.write)
    }

    /// Moves what is there, up to that many bytes, into the pipe, which is empty.
    ///
    /// - Parameter callCount: how often libcurl was called.
    func receive(upTo count: Int64, callCount: Int) -> Step {
        if callCount != provenAt {
            let all = towline_taken(socket)
            guard all != Int64(-EAGAIN) else { return .unproven }
            guard all == taken else { return .disturbed }
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
                taken += moved
                waiting = Int(moved)
                return .moved
            }
        }
    }
}
