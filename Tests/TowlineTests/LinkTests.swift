import FaultServer
import Foundation
import Synchronization
import Testing
import Towline

/// Tests of expired links and of the new links that a caller supplies.
@Suite struct LinkTests {
    private static let version = Version(seed: 21, length: 3_000_000)

    /// A renewal that returns the link `base` for every request and records the reasons.
    private final class Renewal: LinkRenewal {
        let base: String
        let headers: [DownloadRequest.Header]?
        let reasons = Mutex<[LinkRenewalReason]>([])

        init(_ base: String, headers: [DownloadRequest.Header]? = nil) {
            self.base = base
            self.headers = headers
        }

        func renewedLink(for request: DownloadRequest, reason: LinkRenewalReason) async throws -> RenewedLink? {
            reasons.withLock { $0.append(reason) }
            return URL(string: base).map { RenewedLink(url: $0, headers: headers) }
        }
    }

    /// Returns a resource that serves some bytes and then refuses requests, like an expired signed link.
    private func expiring(_ status: Int) -> Resource {
        Resource(
            Self.version, behaviour: .first(1, .always(.shortBody(after: 1_200_000)), then: .always(.status(status))))
    }

    @Test(arguments: [401, 403, 404, 410])
    func aRefusedLinkIsRenewedAndTheBytesAreKept(_ status: Int) async throws {
        let site = try await Site(["/old": expiring(status), "/new": Resource(Self.version)])
        let renewal = Renewal(site.server.url("/new"), headers: [.init("X-Key", "2")])
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        let download = try await downloader.add(
            try site.request("/old") { request in
                request.headers = [.init("X-Key", "1")]
                request.connections = 1
            })
        let file = try await download.file
        #expect(file.lastPathComponent == "old")
        #expect(site.holds("old", Self.version))
        #expect(renewal.reasons.withLock { $0 } == [.refused(status: status)])
        let served = site.server.log.bodyBytesServed("/new")
        #expect(served < Self.version.length - 700_000, "the bytes of the old link are kept: \(served)")
        let keys = site.server.log.requests("/new").map { $0.info.field("X-Key") }
        #expect(keys.allSatisfy { $0 == "2" })
        #expect(try await download.timeline().contains { $0.kind == "renewed" })
        await downloader.close()
        await site.server.stop()
    }

    /// A renewal that never answers, and that can pause the download first.
    private final class StuckRenewal: LinkRenewal {
        let asked = Atomic(false)
        let pauses: Mutex<(@Sendable () async throws -> Void)?> = Mutex(nil)

        func renewedLink(for request: DownloadRequest, reason: LinkRenewalReason) async throws -> RenewedLink? {
            asked.store(true, ordering: .relaxed)
            if let pause = pauses.withLock({ $0 }) { try await pause() }
            // Ignores even a cancellation.
            await Gate().passed()
            return nil
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["pause", "cancel", "remove", "pause in the renewal", "close"])
    func commandsDoNotWaitForALink(_ command: String) async throws {
        let site = try await Site(["/old": expiring(403)])
        let renewal = StuckRenewal()
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        let download = try await downloader.add(
            try site.request("/old") { request in
                request.connections = 1
                request.startsPaused = true
            })
        if command == "pause in the renewal" { renewal.pauses.withLock { $0 = { try await download.pause() } } }
        try await download.resume()
        while !renewal.asked.load(ordering: .relaxed) { try await Task.sleep(for: .milliseconds(5)) }
        switch command {
        case "pause": try await download.pause()
        case "cancel": try await download.cancel()
        case "remove": try await download.remove()
        case "pause in the renewal": try await download.reaches { $0.state == .paused }
        default: break
        }
        if command != "close", command != "remove" {
            #expect(try await download.snapshot.state == (command == "cancel" ? .cancelled : .paused))
        }
        await downloader.close()
        await site.server.stop()
    }

    @Test func aLinkThatNeverWorkedIsNotRenewed() async throws {
        let site = try await Site(["/old": Resource(Self.version, behaviour: .always(.status(403)))])
        let renewal = Renewal(site.server.url("/new"))
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        let download = try await downloader.add(try site.request("/old"))
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(error?.code == .refusedByServer)
        #expect(renewal.reasons.withLock { $0.isEmpty })
        await downloader.close()
        await site.server.stop()
    }

    @Test func anotherFileBehindTheNewLinkIsNeverJoined() async throws {
        let other = Version(seed: 22, length: Self.version.length)
        let site = try await Site(["/old": expiring(403), "/new": Resource(other)])
        let renewal = Renewal(site.server.url("/new"))
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        let download = try await downloader.add(try site.request("/old") { $0.connections = 1 })
        _ = try await download.file
        #expect(site.holds("old", other), "all bytes are from the new file")
        await downloader.close()
        await site.server.stop()
    }

    @Test func aLinkIsRenewedAheadOfItsEnd() async throws {
        let site = try await Site(["/old": Resource(Self.version), "/new": Resource(Self.version)], rate: 300_000)
        let renewal = Renewal(site.server.url("/new"))
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        // A link is renewed 30 seconds before its end. This link has five to six seconds more, and two more with a
        // sanitizer, which is slower.
        let patience = ProcessInfo.processInfo.environment["TOWLINE_PATIENCE"].flatMap { Int($0) } ?? 1
        let end = Int(Date().timeIntervalSince1970) + 30 + (patience > 1 ? 8 : 6)
        let download = try await downloader.add(
            try site.request("/old?Expires=\(end)&Signature=abc&Key-Pair-Id=k") { $0.connections = 1 })
        _ = try await download.file
        #expect(renewal.reasons.withLock { $0 }.first == .expires(Date(timeIntervalSince1970: Double(end))))
        // How many bytes the old link brings in this time depends on the machine.
        #expect(site.server.log.bodyBytesServed("/old") > 0)
        #expect(site.server.log.bodyBytesServed("/new") > 300_000)
        let served = site.server.log.bodyBytesServed("/old") + site.server.log.bodyBytesServed("/new")
        #expect(served < Self.version.length + 1_500_000, "\(served)")
        await downloader.close()
        await site.server.stop()
    }

    /// Credentials and header fields for one server are not sent to another server.
    @Test(arguments: [true, false]) func aLinkToAnotherServerTakesNoSecretsThere(_ isAsked: Bool) async throws {
        let site = try await Site(["/old": isAsked ? Resource(Self.version, rate: 300_000) : expiring(403)])
        let other = try await FaultServer.start(["/new": Resource(Self.version)])
        let renewal = Renewal(other.url("/new"))
        let downloader = try await site.downloader { if !isAsked { $0.linkRenewal = renewal } }
        let download = try await downloader.add(
            try site.request("/old") { request in
                request.user = "me:secret"
                request.headers = [.init("X-Key", "1")]
                request.connections = 1
            })
        if isAsked {
            try await download.reaches { $0.heldBytes > 100_000 }
            try await download.setLink(RenewedLink(url: try #require(URL(string: other.url("/new")))))
        }
        _ = try await download.file
        #expect(site.holds("old", Self.version))
        #expect(site.server.log.requests("/old").allSatisfy { $0.info.field("Authorization") != nil })
        let requests = other.log.requests("/new")
        #expect(!requests.isEmpty)
        for request in requests {
            #expect(request.info.field("Authorization") == nil)
            #expect(request.info.field("X-Key") == nil)
        }
        #expect(try await download.request.user == nil)
        await downloader.close()
        await site.server.stop()
        await other.stop()
    }

    @Test func aLinkToAnotherServerBringsItsOwnFields() async throws {
        let site = try await Site(["/old": expiring(403)])
        let other = try await FaultServer.start(["/new": Resource(Self.version)])
        let renewal = Renewal(other.url("/new"), headers: [.init("X-Key", "2")])
        let downloader = try await site.downloader { $0.linkRenewal = renewal }
        let download = try await downloader.add(
            try site.request("/old") { request in
                request.user = "me:secret"
                request.headers = [.init("X-Key", "1")]
                request.connections = 1
            })
        _ = try await download.file
        let requests = other.log.requests("/new")
        #expect(!requests.isEmpty)
        #expect(requests.allSatisfy { $0.info.field("X-Key") == "2" && $0.info.field("Authorization") == nil })
        await downloader.close()
        await site.server.stop()
        await other.stop()
    }
}
