import Foundation
import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TransferSimulation

/// One transfer in this process, over a real connection and on a real disk.
///
/// With `TOWLINE_AS_BATCH=1` in the environment, the transfer runs as a list of one, as `tow get` runs it: a possible
/// small file then begins without a state machine (`SmallFileRun`). `scripts/torture` also runs all scenarios in that
/// way.
final class Download: Sendable {
    static let isBatch = ProcessInfo.processInfo.environment["TOWLINE_AS_BATCH"] == "1"

    private let runner: any DownloadRunner
    private let transport: CurlTransport
    let observer = RecordingObserver()

    init(_ options: DownloadOptions, storage: any Storage = FileStorage(), isBatch: Bool = Download.isBatch) {
        transport = CurlTransport()
        if isBatch {
            runner = LoneBatch(options, transport, storage, observer)
        } else {
            let services = TransferServices(
                transport: transport, storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0))
            runner = TransferRunner(options: options, services: services, observer: observer)
        }
    }

    /// Runs until the transfer ends. A transfer that hangs is stopped after the deadline and ends as `cancelled`.
    func run(deadline: Duration = .seconds(90)) async -> Outcome {
        let runner = runner
        let watchdog = Task {
            try await Task.sleep(for: deadline)
            runner.stop(.pause)
        }
        let result: Result<CompletedTransfer, TowlineError>
        do throws(TowlineError) {
            result = .success(try await runner.run())
        } catch {
            result = .failure(error)
        }
        watchdog.cancel()
        await transport.shutdown()
        observer.end()
        return Outcome(result: result, notices: observer.notices)
    }

    func stop(_ purpose: StopPurpose = .pause) { runner.stop(purpose) }

    func nudge() { runner.nudge(.available) }
}
