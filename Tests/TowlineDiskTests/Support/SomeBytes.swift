import Synchronization
import TowlineEngine

/// Bytes in memory, until they are released.
final class SomeBytes: BufferedBody {
    private let bytes: Mutex<[UInt8]>

    init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes) }

    var held: [UInt8] { bytes.withLock { $0 } }

    func release() { bytes.withLock { $0 = [] } }

    func hold(_ bytes: [UInt8]) { self.bytes.withLock { $0 = bytes } }
}
