import Synchronization

/// Limits the memory of all request bodies that are being received at the same time.
final class BodyBudget: Sendable {
    static let shared = BodyBudget(limit: 16 << 20)

    private let limit: Int
    private let used = Mutex(0)

    /// - Parameter limit: the maximum number of bytes.
    init(limit: Int) { self.limit = limit }

    /// Takes bytes from the budget. Returns false, and takes nothing, if fewer bytes are left.
    func take(_ count: Int) -> Bool {
        used.withLock { used in
            guard count <= limit - used else { return false }
            used += count
            return true
        }
    }

    func giveBack(_ count: Int) { used.withLock { $0 -= count } }
}
