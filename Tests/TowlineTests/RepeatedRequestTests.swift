import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import Towline

/// A request for a download in the list, compared with the stored request.
@Suite struct RepeatedRequestTests {
    private static let place = URL(fileURLWithPath: "/srv/downloads", isDirectory: true)

    private static func request(_ change: (inout DownloadRequest) -> Void = { _ in }) throws -> DownloadRequest {
        var request = DownloadRequest(from: try #require(URL(string: "http://a.test/file")), to: .directory(place))
        change(&request)
        return request
    }

    /// Sets one field to a value that is not its default value.
    private static func change(_ field: RequestField, _ request: inout DownloadRequest) {
        switch field {
        case .mirrors: request.mirrors = [URL(fileURLWithPath: "/")]
        case .headers: request.headers = [.init("A", "1")]
        case .user: request.user = "a:b"
        case .cookies: request.cookies = "a.test\tFALSE\t/\tFALSE\t0\tid\t1"
        case .proxy: request.proxy = ""
        case .priority: request.priority = 7
        case .group: request.group = "films"
        case .metadata: request.metadata = ["a": "1"]
        case .startsPaused: request.startsPaused = true
        case .unpack: request.followUps = [.unpack(into: place)]
        case .certificateAuthorities: request.certificateAuthorities = place
        case .netrcFile: request.netrcFile = place
        case .connections: request.connections = 2
        case .rateLimit: request.rateLimit = 1
        case .checksum: request.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32))
        case .existing: request.existing = .rename
        case .stallTimeout: request.stallTimeout = .seconds(5)
        case .maximumTries: request.maximumTries = 5
        case .retryWait: request.retryWait = .seconds(5)
        case .maximumWait: request.maximumWait = .seconds(5)
        case .retryStatuses: request.retryStatuses = [404]
        case .maximumRedirects: request.maximumRedirects = 5
        case .maximumSize: request.maximumSize = 5
        case .allowDowngrade: request.allowsDowngrade = true
        case .http1: request.usesHTTP1Only = true
        case .sequential: request.isSequential = true
        case .unsafeResume: request.allowsUnsafeResume = true
        case .ignoreServerChecksums: request.ignoresServerChecksums = true
        case .acceptHTML: request.acceptsWebPages = true
        }
    }

    private static func record(_ request: DownloadRequest, _ state: RegisteredState) throws -> RegisteredDownload {
        var record = try RegisteredDownload(DownloadID(milliseconds: 1, random: (0, 1)), Self.request(), at: 1)
        (record.state, record.options) = (state, try StoredRequest.encode(request))
        return record
    }

    /// A stored property that is neither a field nor one of these fails the test.
    @Test func everyStoredPropertyIsAFieldOrBelongsToTheList() {
        let own: Set = ["url", "destination", "isPublicOnly", "replacesOwnFile", "fileSystem"]
        let others = ["followUps": "unpack", "otherURLs": "mirrors"]
        let names = DownloadRequest.CodingKeys.allCases.map { others[$0.stringValue] ?? $0.stringValue }
        let options = TransferOptions.CodingKeys.allCases.map(\.rawValue)
        #expect(Set(names + options).subtracting(own) == Set(RequestField.allCases.map(\.rawValue)))
    }

    /// Each field is found and copied alone, in each state, and its default value only if it was given explicitly.
    @Test(arguments: RequestField.allCases, [RegisteredState.queued, .paused, .waiting, .finished])
    func oneFieldIsChangedAlone(_ field: RequestField, _ state: RegisteredState) throws {
        let standard = try Self.request()
        let other = try Self.request { Self.change(field, &$0) }
        #expect(!RequestPart(field).isEqual(standard, other))
        let isUsed = field != .startsPaused && field.effect(in: state) != .notNeeded
        let again = RepeatedRequest(other, try Self.record(standard, state), nil)
        #expect(again.changes == (isUsed ? [field] : []))
        if isUsed { #expect(again.merged == other) }

        let back = RepeatedRequest(standard, try Self.record(other, state), nil)
        #expect(back.changes.isEmpty && back.merged == other)
        var explicit = standard
        explicit.given = [field]
        let restored = RepeatedRequest(explicit, try Self.record(other, state), nil)
        #expect(restored.changes == (isUsed ? [field] : []))
        if isUsed { #expect(restored.merged == standard) }
        #expect(RepeatedRequest(other, try Self.record(other, state), nil).changes.isEmpty)
    }

    @Test func anotherClientDoesNotLeadTheTransferToPrivateAddresses() throws {
        for field in RequestField.allCases where field != .startsPaused {
            var request = try Self.request { Self.change(field, &$0) }
            request.publicAddressesOnly = true
            let again = RepeatedRequest(request, try Self.record(Self.request(), .queued), nil)
            #expect(again.merged.publicAddressesOnly == field.concernsServers, "\(field)")
        }
    }

    /// A finished download with another follow-up, a larger file, or a deleted archive.
    @Test func aConflictNamesEachField() throws {
        var record = try Self.record(
            Self.request { $0.followUps = [.unpack(into: Self.place, deletesArchive: true)] }, .finished)
        (record.reasonCode, record.completeLength, record.name) = ("done", 100, "file")
        let request = try Self.request { request in
            for field in [RequestField.unpack, .maximumSize, .checksum, .priority] { Self.change(field, &request) }
        }
        let error = #expect(throws: TowlineError.self) { try RepeatedRequest(request, record, nil).check() }
        #expect(error?.code == .optionConflict)
        #expect(error?.fields == ["unpack", "checksum", "maximumSize"])
        #expect(error?.message.contains("unpack, checksum, maximumSize") == true)
        let smaller = try Self.request { $0.maximumSize = 100 }
        try RepeatedRequest(smaller, record, nil).check()
    }
}
