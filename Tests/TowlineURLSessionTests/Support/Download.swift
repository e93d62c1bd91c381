import TowlineCore
import TowlineDisk
import TowlineEngine
import TowlineURLSession
import TransferSimulation

/// One transfer in this process over `URLSessionTransport`, with real connections and a real disk. Takes the place of
/// the type with this name in `IntegrationTests`.
final class Download: Sendable {
    private let runner: TransferRunner
    private let transport = URLSessionTransport()
    let observer = RecordingObserver()

    init(_ options: DownloadOptions, storage: any Storage = FileStorage()) {
        let services = TransferServices(
            transport: transport, storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0))
        runner = TransferRunner(options: options, services: services, observer: observer)
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
}
