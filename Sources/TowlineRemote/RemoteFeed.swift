import Foundation
import Towline
import TowlineClient
import TowlineCore
import TowlineWire

/// A reader of the event stream of `towd`, which passes snapshots and events to the readers in the app, and connects
/// again when `towd` restarts.
///
/// Events that were missed between two connections are replaced: after each connection, the snapshots of all downloads
/// with a reader are read, and `listChanged` is reported.
struct RemoteFeed: Sendable {
    /// The name of this client in messages about different versions.
    static let program = "the app"
    /// The delays before the first and later attempts to connect again.
    private static let delays = [Duration.milliseconds(50), .milliseconds(200), .seconds(1)]
    private let client: ServiceClient
    private let hub: SnapshotHub

    init(_ client: ServiceClient, _ hub: SnapshotHub) { (self.client, self.hub) = (client, hub) }

    /// Reads the event stream until the task is cancelled.
    func run() async {
        var failures = 0
        while !Task.isCancelled {
            do {
                if try await follow() { failures = 0 }
            } catch {
                if Task.isCancelled { return }
                if failures == 0 { hub.publish(.troubled(Self.error(error, client))) }
                failures += 1
            }
            try? await Task.sleep(for: Self.delays[min(failures, Self.delays.count - 1)])
        }
    }

    /// Reads one event stream until it ends. Returns whether it was connected.
    private func follow() async throws -> Bool {
        let (events, continuation) = AsyncStream.makeStream(of: ServiceEvent.self)
        let client = client
        let connection = Task {
            defer { continuation.finish() }
            try await client.events { continuation.yield($0) }
        }
        // In one task, so that snapshots keep their order.
        let isConnected = await withTaskCancellationHandler {
            var isConnected = false
            for await event in events {
                isConnected = true
                await take(event)
            }
            return isConnected
        } onCancel: {
            connection.cancel()
        }
        do {
            try await connection.value
        } catch {
            // A connection that worked and broke is the end of towd, which the next attempt reports if it lasts.
            guard isConnected else { throw error }
        }
        return isConnected
    }

    private func take(_ event: ServiceEvent) async {
        do throws(TowlineError) {
            try await publish(event)
        } catch {
            hub.publish(.troubled(error))
        }
    }

    private func publish(_ event: ServiceEvent) async throws(TowlineError) {
        switch event.name {
        case "open", "reset": await refresh()
        case "added":
            let snapshot = try DownloadSnapshot(try decode(Wire.Download.self, event))
            hub.publish(.added(snapshot))
            hub.publish(snapshot)
        case "changed": hub.publish(try DownloadSnapshot(try decode(Wire.Download.self, event)))
        case "removed":
            let id = try decode(Wire.Name.self, event).identifier
            hub.publish(.removed(id))
            hub.end(id)
        case "noted":
            let note = try decode(Wire.Note.self, event)
            if let id = note.id.flatMap({ DownloadID($0) }) { hub.publish(TimelineNote(note), of: id) }
        // Totals, and events of a newer version.
        default: return
        }
    }

    /// Publishes the current snapshots of all downloads with a reader, and reports that the list may have changed.
    private func refresh() async {
        for id in hub.followed {
            do throws(TowlineError) {
                hub.publish(try await snapshot(id))
            } catch  where error.code == .unknownDownload {
                hub.end(id)
            } catch {
                // The connection fails too, and the next one begins with this function.
                return
            }
        }
        hub.publish(.listChanged)
    }

    private func snapshot(_ id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        do {
            return try DownloadSnapshot(try await client.download(id.description))
        } catch {
            throw Self.error(error, client)
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ event: ServiceEvent) throws(TowlineError) -> Value {
        try ServiceClient.decode(type, event.data, program: Self.program)
    }

    /// Returns the error of a failed request for the app.
    static func error(_ error: any Error, _ client: ServiceClient) -> TowlineError {
        switch error {
        case let error as TowlineError: error
        case is ServiceClient.NotRunning:
            TowlineError(
                .transient,
                """
                towd is not running (no process is listening on \(TerminalSafeText.make(client.socket))). \
                'tow add URL' starts it, 'tow service install' at login
                """)
        default: TowlineError(.unusableOption, "cannot send the request to towd: a value cannot be written as JSON")
        }
    }
}
