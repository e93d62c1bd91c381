internal import Foundation
import Synchronization
internal import Towline

/// The sessions of browsers that are signed in on the web page. A session is 256 random bits, which the browser sends
/// as a cookie.
///
/// The file `sessions` in the state directory keeps them while the service does not run. Its first line is the access
/// token, because sessions end when the token changes, and the random end of the cookie's name. Each other line is a
/// session and the time of its end, oldest first.
final class SessionList: Sendable {
    private struct Session: Sendable {
        /// A later session has a larger number.
        let number: Int
        /// Seconds since 1970.
        let end: Int64
    }

    /// Name of the file in the state directory.
    static let fileName = "sessions"
    /// Time from sign-in to the end of a session, in seconds.
    static let lifetime: Int64 = 30 * 24 * 60 * 60
    /// Maximum number of sessions. A new session ends the oldest one.
    static let maximumCount = 100
    private static let maximumFile = 32 << 10
    private static let nameLength = 8

    /// Name of the session cookie. Cookies ignore ports (RFC 6265 §8.5): with one name for all services, a sign-in at
    /// one service of a host would end the session at another.
    var cookieName: String { "towline-" + name }

    /// The random end of the cookie's name.
    private let name: String
    private let token: AccessToken
    private let sessions: Mutex<[String: Session]>
    /// Locked while the file is written, so that the newest list is written last.
    private let file: Mutex<PrivateFile>

    /// Reads the sessions of a state directory. A file that belongs to another token is removed.
    ///
    /// - Throws: `diskPermission` if the file cannot be read or removed, or if other users can read it.
    init(in directory: URL, for token: AccessToken) throws(TowlineError) {
        let file = PrivateFile(
            path: directory.appendingPathComponent(Self.fileName, isDirectory: false).path, title: "sessions file",
            advice: "Remove the file and restart towd; all browsers must then sign in again")
        var known: (name: String, sessions: [String: Session])?
        // No session belongs to a replaced token, and others may have read this file too.
        if token.notice != nil {
            try file.remove()
        } else if let text = try file.text(limit: Self.maximumFile) {
            known = Self.parse(text, token)
            if known == nil { try file.remove() }
        }
        self.token = token
        name = known?.name ?? String(Secret.random().prefix(Self.nameLength))
        sessions = Mutex(known?.sessions ?? [:])
        self.file = Mutex(file)
    }

    /// Returns the end of the cookie's name and the sessions of a file that have not ended, or `nil` if the file does
    /// not begin with the token.
    private static func parse(_ text: String, _ token: AccessToken) -> (name: String, sessions: [String: Session])? {
        let lines = text.split(separator: "\n")
        let head = lines.first?.split(separator: " ") ?? []
        guard head.count == 2, token.isEqual(to: head[0]), Secret.isValid(head[1], count: nameLength) else {
            return nil
        }
        var sessions: [String: Session] = [:]
        for (number, line) in lines.dropFirst().suffix(maximumCount).enumerated() {
            let words = line.split(separator: " ")
            guard words.count == 2, Secret.isValid(words[0]), let end = Int64(words[1]), end > now else { continue }
            sessions[String(words[0])] = Session(number: number, end: end)
        }
        return (String(head[1]), sessions)
    }

    /// Returns true if the value of a cookie is a session that has not ended.
    func contains(_ value: some StringProtocol) -> Bool {
        let key = String(value)
        // Not in constant time: the place in the dictionary depends on a random seed, so the time does not show which
        // bits fit.
        let session = sessions.withLock { $0[key] }
        return session.map { $0.end > Self.now } ?? false
    }

    /// Starts a session and returns the value of its cookie. If the file cannot be written, the session ends with this
    /// process.
    ///
    /// - Parameter former: cookies of the same browser. Their sessions end.
    func start(insteadOf former: [Substring] = []) -> String {
        let value = Secret.random()
        let now = Self.now
        sessions.withLock { sessions in
            for key in former { sessions[String(key)] = nil }
            sessions = sessions.filter { $0.value.end > now }
            while sessions.count >= Self.maximumCount,
                let oldest = sessions.min(by: { $0.value.number < $1.value.number })
            {
                sessions[oldest.key] = nil
            }
            let last = sessions.values.map(\.number).max() ?? 0
            sessions[value] = Session(number: last + 1, end: now + Self.lifetime)
        }
        try? save()
        return value
    }

    /// Ends the sessions of a browser. Cookies that are no session are ignored. If the file cannot be written, it is
    /// removed, so that an ended session does not become valid again at the next start.
    ///
    /// - Throws: `diskPermission` if the file can be neither written nor removed. The sessions then end for this
    ///   process.
    func end(_ cookies: [Substring]) throws(TowlineError) {
        let hasEnded = sessions.withLock { sessions in
            let count = sessions.count
            for key in cookies { sessions[String(key)] = nil }
            return sessions.count < count
        }
        guard hasEnded else { return }
        do throws(TowlineError) {
            try save()
        } catch {
            try file.withLock { (file) throws(TowlineError) in try file.remove() }
        }
    }

    private func save() throws(TowlineError) {
        try file.withLock { (file) throws(TowlineError) in
            let newest = sessions.withLock { $0 }.sorted { $0.value.number < $1.value.number }
            let lines = newest.map { "\($0.key) \($0.value.end)" }
            try file.replace(with: (["\(token.text) \(name)"] + lines).joined(separator: "\n"))
        }
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }
}
