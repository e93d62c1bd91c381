import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine
import TransferSimulation

/// A server with one file, and a directory to download it into. Checks the law of every scenario: a success publishes
/// the bytes of exactly one version of the server's file; a failure publishes no file.
final class Site: Sendable {
    static let path = "/file.bin"
    static let name = "file.bin"

    let server: FaultServer
    let scratch: Scratch
    let length: Int64

    init(_ resource: Resource, more: [String: Resource] = [:], options: ServerOptions = ServerOptions()) async throws {
        length = resource.version.length
        scratch = try Scratch()
        server = try await FaultServer.start(more.merging([Site.path: resource]) { $1 }, options: options)
    }

    convenience init(
        length: Int64 = 3_000_000, _ behaviour: Behaviour = .correct, more: [String: Resource] = [:]
    ) async throws {
        try await self.init(Resource(length: length, behaviour: behaviour), more: more)
    }

    /// Runs the body with a site of its own, and stops the site's server afterwards.
    @discardableResult
    static func with<Value>(
        _ site: Site, _ body: (Site) async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await body(site)
            await site.server.stop()
            return value
        } catch {
            await site.server.stop()
            throw error
        }
    }

    var requests: [Records.Request] { server.log.requests(Site.path) }
    var served: Int64 { server.log.bodyBytesServed(Site.path) }
    var hasPart: Bool { scratch.isThere(Site.name + ".tow") }
    var hasJournal: Bool { scratch.isThere(Site.name + ".tow-journal") }
    var hasFile: Bool { scratch.isThere(Site.name) }

    // MARK: Running

    /// The factor that multiplies the time limits for a silent server: under a sanitizer everything takes several times
    /// as long (`scripts/torture`).
    static let patience = ProcessInfo.processInfo.environment["TOWLINE_PATIENCE"].flatMap { Int($0) } ?? 1

    /// Returns options with short waits.
    func options(_ target: String = Site.path, _ change: (inout DownloadOptions) -> Void = { _ in }) throws
        -> DownloadOptions
    {
        var options = DownloadOptions(
            url: try HTTPURL(parsing: server.url(target)), target: .file(directory: scratch.path, name: Site.name))
        options.connections = 1
        options.maximumTries = 5
        options.retryWait = .milliseconds(20)
        options.confirmationWait = .milliseconds(50)
        options.stallTimeout = .seconds(4) * Site.patience
        options.connection.connectTimeout = .seconds(4) * Site.patience
        options.connection.headTimeout = .seconds(4) * Site.patience
        // The environment may name a proxy; an empty string means no proxy.
        options.connection.proxy = ""
        change(&options)
        return options
    }

    func download(
        _ target: String = Site.path, storage: any Storage = FileStorage(),
        _ change: (inout DownloadOptions) -> Void = { _ in }
    ) async throws -> Outcome {
        try await Self.run(try options(target, change), storage, patience: 100)
    }

    /// A child process keeps a lock between its fork and its exec (flock(2)), and other tests start children: retries
    /// if busy.
    private static func run(
        _ options: DownloadOptions, _ storage: any Storage, patience: Int
    ) async throws -> Outcome {
        let outcome = await Download(options, storage: storage).run()
        guard outcome.code == .destinationBusy, patience > 0 else { return outcome }
        try await Task.sleep(for: .milliseconds(20))
        return try await run(options, storage, patience: patience - 1)
    }

    /// Leaves an unfinished download: `count` bytes arrive, then the server falls silent, and the user stops the
    /// download. The server behaves correctly afterwards, and its log begins at the returned number of requests.
    @discardableResult
    func interrupt(
        after count: Int64, storage: any Storage = FileStorage(), for purpose: StopPurpose = .pause,
        _ change: (inout DownloadOptions) -> Void = { _ in }, onStop: () async throws -> Void = {}
    ) async throws -> Int {
        server.set(
            Behaviour { context in
                context.correct.body([.content(context.version.content, 0..<count), .stall])
            }, for: Site.path)
        let download = Download(
            try options {
                change(&$0)
                $0.stallTimeout = .seconds(60)
            }, storage: storage)
        async let outcome = download.run()
        await download.observer.wait { $0.heldBytes >= count }
        try await onStop()
        download.stop(purpose)
        #expect(await outcome.code == .cancelled)
        server.set(.correct, for: Site.path)
        return requests.count
    }

    // MARK: The law

    /// Returns the version whose bytes the published file has; `nil` if it has no version's bytes.
    func published(_ versions: [Version], name: String = Site.name) throws -> Version? {
        guard scratch.isThere(name) else { return nil }
        return try versions.first { try $0.content.firstMismatch(inFile: scratch.file(name), length: $0.length) == nil }
    }

    /// Describes where the file differs from each version, for failure messages.
    private func differences(_ versions: [Version]) throws -> String {
        let places = try versions.map { version in
            let offset = try version.content.firstMismatch(inFile: scratch.file(Site.name), length: version.length)
            return "seed \(version.seed), length \(version.length): differs at \(offset ?? -1)"
        }
        return "\(scratch.size(Site.name) ?? -1) bytes; \(places)"
    }

    /// Checks the law. Returns the version that was published.
    @discardableResult
    func law(
        _ outcome: Outcome, versions: [Version]? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Version? {
        guard outcome.succeeded else {
            #expect(!hasFile, "a failed download has no final file: \(outcome.message)", sourceLocation: sourceLocation)
            return nil
        }
        let all = versions ?? [server.version(Site.path)].compactMap { $0 }
        let version = try published(all)
        let differences = version == nil ? try differences(all) : ""
        #expect(
            version != nil, "the file is no version of the server's: \(differences) \(outcome.notices)",
            sourceLocation: sourceLocation)
        #expect(!hasPart && !hasJournal, "no part file or journal is left", sourceLocation: sourceLocation)
        return version
    }

    /// Checks the law, and that the download succeeded.
    func expectFile(
        _ outcome: Outcome, _ version: Version? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(outcome.succeeded, "\(outcome.message)", sourceLocation: sourceLocation)
        try law(outcome, versions: version.map { [$0] }, sourceLocation: sourceLocation)
    }

    /// Checks the law, and that the download failed with one of these errors.
    func expectFailure(
        _ outcome: Outcome, _ codes: TowlineError.Code..., sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let code = outcome.code.map(\.description) ?? "success"
        #expect(
            outcome.code.map(codes.contains) ?? false, "\(code): \(outcome.message)", sourceLocation: sourceLocation)
        try law(outcome, sourceLocation: sourceLocation)
    }

    /// Checks that a second run without the fault succeeds.
    func expectRecovery(
        _ change: (inout DownloadOptions) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        server.set(.correct, for: Site.path)
        try expectFile(try await download(Site.path, change), sourceLocation: sourceLocation)
    }
}
