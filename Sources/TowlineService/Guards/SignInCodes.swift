internal import Foundation
import Synchronization
import TowlineWire

/// The codes of sign-in links. A code signs in once and only for a limited time, so that a link in the history of a
/// browser is worth nothing. The codes end with the process.
package final class SignInCodes: Sendable {
    /// Validity of a code in seconds.
    package static let lifetime: Int64 = 60 * 60
    /// Maximum number of codes. A new code ends the oldest one.
    static let maximumCount = 100

    /// The codes and the times of their ends in milliseconds since 1970, oldest first.
    private let codes = Mutex<[Wire.SignInCode]>([])
    private let now: @Sendable () -> Date

    /// - Parameter now: the clock.
    init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

    /// Returns a new code.
    package func make() -> Wire.SignInCode {
        let time = now()
        let code = Wire.SignInCode(
            code: Secret.random(), expiresAt: time.addingTimeInterval(Double(Self.lifetime)).milliseconds)
        codes.withLock { codes in
            codes.removeAll { $0.expiresAt <= time.milliseconds }
            codes.removeFirst(max(0, codes.count + 1 - Self.maximumCount))
            codes.append(code)
        }
        return code
    }

    /// Returns true if a code is valid. The code then ends.
    func use(_ text: String) -> Bool {
        let time = now().milliseconds
        return codes.withLock { codes in
            // Not in constant time: a code has 256 random bits and is valid once.
            guard let index = codes.firstIndex(where: { $0.code == text }) else { return false }
            return codes.remove(at: index).expiresAt > time
        }
    }
}
