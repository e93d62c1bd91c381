import CTowline
import Glibc
internal import TowlineCore

/// The rest of a response body whose beginning libcurl delivered. The kernel moves the rest from the connection into a
/// pipe, from where the receiver takes it (docs/internals/splicing.md). Used only by `Splicing`, on one engine thread.
///
/// A paused libcurl may still read from the socket. Before the first move, and after each call of libcurl, the kernel
/// is therefore asked how many bytes were read. If the number differs from the number delivered, no further bytes of
/// the body are accepted.
final class SplicedBody {
    /// The result of `receive`, which moves bytes from the socket into the pipe.
    enum Step {
        /// Some bytes of the body were moved into the pipe, and the receiver can take them.
        case moved
        /// No bytes of the body are available yet: wait for the socket.
        case nothing
        /// The server closed the connection before the end of the body.
        case closed
        /// Bytes arrive too fast to get consistent numbers from the kernel, so none was moved; the socket is ready
        /// again immediately.
        case unproven
        /// The number of bytes read from the socket differs from the number delivered: TLS, a proxy, an earlier
        /// response or libcurl took some. The body must not continue.
        case disturbed
        /// The system call that moves the bytes failed with this `errno`.
        case failed(Int32)
    }

    /// The descriptor of the connection that the body comes from.
    let socket: Int32
    /// The number of bytes of the body that the kernel must still move from the socket.
    var rest: Int64 { end - taken }
    /// The number of bytes in the pipe that the receiver has not taken.
    var waiting = 0
    private let ends: (read: Int32, write: Int32)
    /// The number of bytes of the response, head and body, that were read from the socket so far.
    private var taken: Int64
    /// The value of `taken` at the end of the body: the body is complete once it is reached.
    private let end: Int64
    /// The number of libcurl's calls when the kernel last confirmed `taken`, the number of bytes read from the socket;
    /// `nil` before the first check. After a further call, the kernel is asked again.
    private var provenAt: Int?

    /// The descriptor of the pipe's read end, which the receiver reads from.
    var pipe: Int32 { ends.read }

    /// The capacity of the pipe in bytes, enough for a read whose bytes come in small packets.
    private static let room = 1 << 20

    /// Creates a pipe for the rest of a body.
    ///
    /// - Parameters:
    ///   - rest: the number of bytes of the body that are still to come.
    ///   - passed: the number of bytes of the response, head and body, that libcurl delivered.
    /// - Returns: `nil` if the system refuses a pipe.
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

    /// Moves the available bytes, at most `count`, into the pipe, which must be empty.
    ///
    /// - Parameter callCount: the number of calls of libcurl so far (`ConnectionPool.callCount`).
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
