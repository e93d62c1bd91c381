/// A field of a request for a download, under its name in the HTTP API. `url`, `directory` and `name` are not included,
/// because they select the download.
package enum RequestField: String, Hashable, Sendable, CaseIterable {
    case mirrors, headers, user, cookies, proxy, priority, group, metadata, startsPaused, unpack
    /// The library has these two fields; the HTTP API does not.
    case certificateAuthorities, netrcFile
    case connections, rateLimit, checksum, existing, stallTimeout, maximumTries, retryWait, maximumWait, retryStatuses
    case maximumRedirects, maximumSize, allowDowngrade, http1, sequential, unsafeResume, ignoreServerChecksums
    case acceptHTML

    /// The effect of a field of a request whose URL and directory are those of a download in the list.
    package enum Effect: Hashable, Sendable {
        /// The field is stored and takes effect immediately.
        case now
        /// The field is stored and takes effect when the next transfer of the download starts.
        case nextStart
        /// The field is stored and the transfer restarts with its bytes. Refused if the restart would lose bytes.
        case restart
        /// The download starts again with the whole new request.
        case newRequest
        /// The field is compared with the finished file, and refused if it does not fit the file.
        case check
        /// The field has no effect, because the finished download sends no request.
        case notNeeded
    }

    /// Returns the effect on a download in `state`. A given field is never ignored without an error, except where the
    /// result is the same with and without the field (`notNeeded`).
    package func effect(in state: RegisteredState) -> Effect {
        switch (self, state) {
        case (_, .failed), (_, .cancelled): .newRequest
        case (.priority, _), (.group, _), (.metadata, _): .now
        case (.rateLimit, .active), (.unpack, .active): .now
        case (.checksum, _) where state.isComplete: .check
        case (.maximumSize, _) where state.isComplete: .check
        case (.unpack, _) where state.isComplete: .check
        // A finished download keeps no secrets.
        case (.headers, _) where state.isComplete: .notNeeded
        case (.user, _) where state.isComplete: .notNeeded
        case (.cookies, _) where state.isComplete: .notNeeded
        case (.proxy, _) where state.isComplete: .notNeeded
        case (.startsPaused, _): state.isComplete ? .notNeeded : .now
        case (_, .active): .restart
        default: .nextStart
        }
    }

    /// `true` if the field can lead the transfer to another server, or sends other data to servers.
    package var concernsServers: Bool {
        switch self {
        case .mirrors, .headers, .user, .cookies, .proxy: true
        default: false
        }
    }
}
