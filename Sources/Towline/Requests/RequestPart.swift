import TowlineCore

/// The value of a `RequestField` in requests: compares two requests in this field, and copies it.
struct RequestPart: Sendable {
    let isEqual: @Sendable (DownloadRequest, DownloadRequest) -> Bool
    let copy: @Sendable (_ from: DownloadRequest, _ to: inout DownloadRequest) -> Void

    private init<Value: Equatable & Sendable>(_ path: any WritableKeyPath<DownloadRequest, Value> & Sendable) {
        isEqual = { $0[keyPath: path] == $1[keyPath: path] }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
    }

    /// Creates the part of a field.
    init(_ field: RequestField) {
        switch field {
        case .mirrors: self.init(\.mirrors)
        case .headers: self.init(\.headers)
        case .user: self.init(\.user)
        case .cookies: self.init(\.cookies)
        case .proxy: self.init(\.proxy)
        case .priority: self.init(\.priority)
        case .group: self.init(\.group)
        case .metadata: self.init(\.metadata)
        case .startsPaused: self.init(\.startsPaused)
        case .unpack: self.init(\.followUps)
        case .certificateAuthorities: self.init(\.certificateAuthorities)
        case .netrcFile: self.init(\.netrcFile)
        case .connections: self.init(\.options.connections)
        case .rateLimit: self.init(\.options.rateLimit)
        case .checksum: self.init(\.options.checksum)
        case .existing: self.init(\.options.existing)
        case .stallTimeout: self.init(\.options.stallTimeout)
        case .maximumTries: self.init(\.options.maximumTries)
        case .retryWait: self.init(\.options.retryWait)
        case .maximumWait: self.init(\.options.maximumWait)
        case .retryStatuses: self.init(\.options.retryStatuses)
        case .maximumRedirects: self.init(\.options.maximumRedirects)
        case .maximumSize: self.init(\.options.maximumSize)
        case .allowDowngrade: self.init(\.options.allowsDowngrade)
        case .http1: self.init(\.options.usesHTTP1Only)
        case .sequential: self.init(\.options.isSequential)
        case .unsafeResume: self.init(\.options.allowsUnsafeResume)
        case .ignoreServerChecksums: self.init(\.options.ignoresServerChecksums)
        case .acceptHTML: self.init(\.options.acceptsWebPages)
        }
    }
}
