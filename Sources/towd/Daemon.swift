import Dispatch
import Foundation
import Synchronization
import Towline
import TowlineService

/// The process of the service, which runs until a signal stops it.
enum Daemon {
    /// The maximum time in seconds for an orderly end. Data on disk is valid at any time; responses under way need the
    /// time.
    private static let grace = 1.8

    static func serve(_ towd: Towd) -> Never {
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        raiseDescriptorLimit()
        let configuration: ServiceConfiguration
        do throws(TowlineError) {
            configuration = try towd.serviceConfiguration()
        } catch {
            leave(error)
        }
        // Must be called before there is a second thread.
        ProcessLimits.confine(
            to: configuration.downloadsDirectories,
            private: [configuration.stateDirectory, configuration.socket.deletingLastPathComponent()])
        let signals = SignalSources()
        // Detached: a task of the first thread would have a higher priority and pass it on to every task of the
        // service. On Linux, this priority is a nice value that needs a privilege, and libdispatch logs an error for
        // each thread.
        Task.detached { await run(configuration, signals, towd) }
        dispatchMain()
    }

    private static func run(_ configuration: ServiceConfiguration, _ signals: SignalSources, _ towd: Towd) async {
        do {
            var configuration = configuration
            if geteuid() == 0, !configuration.allowsRoot { say(rootWarning) }
            if configuration.downloadsOrigin == .remembered {
                let paths = configuration.downloadsDirectories.map(\.path).joined(separator: ", ")
                say("downloads directory: \(paths) (from the last start with --downloads)")
            }
            let troubles = TroubleLog { say($0) }
            configuration.onTrouble = { troubles.add($0) }
            // A background process must not keep a directory busy.
            _ = chdir("/")
            let service = try await DownloadService.open(configuration)
            for notice in service.downloader.notices { say(notice) }
            if let notice = service.token.notice { say(notice) }
            let listener = Task { await tell(service, configuration) }
            let started = configuration
            Task { for await _ in signals.reloads { reload(service, towd, started) } }
            Task {
                await signals.stop()
                DispatchQueue.global().asyncAfter(deadline: .now() + grace) { _exit(0) }
                await service.stop()
            }
            try await service.run()
            listener.cancel()
            _exit(0)
        } catch let error as TowlineError {
            leave(error)
        } catch {
            // Addresses that failed have already been reported.
            _exit(ExitStatus.disk.rawValue)
        }
    }

    /// Reads the configuration again and applies the settings that a running service can change. After an error, all
    /// settings stay.
    private static func reload(_ service: DownloadService, _ towd: Towd, _ started: ServiceConfiguration) {
        do throws(TowlineError) {
            let configuration = try towd.serviceConfiguration()
            service.reload(configuration)
            say("the configuration was read again (SIGHUP)")
            let isSame =
                configuration.addresses == started.addresses && configuration.socket == started.socket
                && configuration.downloadsDirectories == started.downloadsDirectories
                && configuration.stateDirectory == started.stateDirectory
            if !isSame { say("changes of directories, socket and addresses apply after a restart") }
        } catch {
            say("the configuration was not changed: \(error.message)")
        }
    }

    /// A warning, not an error: containers often have no other user.
    private static let rootWarning = """
        running as root: an attacker who takes over towd controls the whole system. Run towd as another user, or use \
        --allow-root to confirm
        """

    /// The exit status for a state directory that a restart does not mend, of `<sysexits.h>`.
    private static let configurationStatus: Int32 = 78

    private static func leave(_ error: TowlineError) -> Never {
        say(error.message)
        switch error.code {
        case .diskPermission, .unsupportedRegistry: _exit(configurationStatus)
        default: _exit(ExitStatus(error).rawValue)
        }
    }

    private static func tell(_ service: DownloadService, _ configuration: ServiceConfiguration) async {
        for await endpoint in service.endpoints {
            switch endpoint {
            case .failure(let error): say(error.message)
            case .success(let endpoint):
                if let socket = endpoint.socket { say("listening on \(socket)") }
                for url in endpoint.pages {
                    // Never write a code to a log: a reader of the log could control towd.
                    if isatty(STDERR_FILENO) == 1 {
                        say("web page: \(url)#code=\(service.signInCodes.make().code) (signs in once)")
                    } else {
                        say("web page: \(url) (access token in the file \(configuration.stateDirectory.path)/token)")
                    }
                }
            }
        }
    }

    static func say(_ text: String) {
        FileHandle.standardError.write(Data("towd: \(TerminalSafeText.make(text))\n".utf8))
    }

    /// Raises the limit of descriptors to the hard limit: many connections need more than the usual 1024.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

/// A log that reports each problem at most once a minute.
private final class TroubleLog: Sendable {
    private static let interval = Duration.seconds(60)
    private let said = Mutex<[String: ContinuousClock.Instant]>([:])
    private let say: @Sendable (String) -> Void

    init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

    func add(_ trouble: TowlineError) {
        let now = ContinuousClock.now
        let isNews = said.withLock { said in
            said = said.filter { now - $0.value < Self.interval }
            guard said[trouble.message] == nil else { return false }
            said[trouble.message] = now
            return true
        }
        if isNews { say(trouble.message) }
    }
}

/// The signals to stop (SIGTERM, SIGINT) and to read the configuration again (SIGHUP). A second signal to stop ends the
/// process at once. SIGHUP stays ignored if it was ignored at the start, as nohup(1) does.
private final class SignalSources: Sendable {
    private let (stops, stopping) = AsyncStream.makeStream(of: Void.self)
    /// One element for each SIGHUP.
    let (reloads, reloading) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let isStopping = Atomic<Bool>(false)

    init() {
        for number in [SIGTERM, SIGINT] {
            signal(number, SIG_IGN)
            listen(number) { [self] in
                if isStopping.exchange(true, ordering: .relaxed) { _exit(128 + number) }
                stopping.yield()
            }
        }
        var hangUp = sigaction()
        sigaction(SIGHUP, nil, &hangUp)
        // The address of the constant, because functions cannot be compared.
        let isIgnored = unsafeBitCast(hangUp.__sigaction_handler.sa_handler, to: Int.self) == 1
        signal(SIGHUP, SIG_IGN)
        if !isIgnored { listen(SIGHUP) { [self] in reloading.yield() } }
    }

    private func listen(_ number: Int32, _ handler: @escaping @Sendable () -> Void) {
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        // The handler keeps a reference to its source until the process ends.
        source.setEventHandler { [source] in
            _ = source
            handler()
        }
        source.resume()
    }

    /// Waits for the first signal to stop.
    func stop() async { for await _ in stops { return } }
}
