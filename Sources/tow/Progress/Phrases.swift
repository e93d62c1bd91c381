import TowlineCore
import TowlineCurl
import TowlineEngine

/// Sentences and figures for people. Text from servers is made safe to print here.
enum Phrases {
    /// Returns a name for a download whose file name is unknown: `-o`, else the last component of the URL, else its
    /// host.
    static func name(of options: DownloadOptions) -> String {
        if case .file(_, let name?) = options.target { return name }
        return options.url.displayName
    }

    /// Formats a fraction from 0 to 1, such as `42%`. Rounds down: 100% means complete.
    static func percent(_ fraction: Double) -> String { "\(Int(min(1, max(0, fraction)) * 100))%" }

    /// Formats a rate in bytes per second, such as `11.2 MiB/s`.
    static func rate(_ rate: Double) -> String {
        let bounded = rate.isFinite ? min(max(0, rate), 9e18) : 0
        return ByteCountText.format(Int64(bounded)) + "/s"
    }

    /// Formats the held and the complete length, such as `263 MiB of 629 MiB`, or the held length alone.
    static func sizes(_ snapshot: TransferSnapshot) -> String {
        let held = ByteCountText.format(snapshot.heldBytes)
        return snapshot.completeLength.map { "\(held) of \(ByteCountText.format($0))" } ?? held
    }

    /// Describes a download that is not receiving data. The countdown of a wait began `since` ago.
    static func state(_ snapshot: TransferSnapshot, since: Duration) -> String {
        if let wait = snapshot.wait {
            let reason = TerminalSafeText.make(wait.reason)
            let left = wait.remaining - since
            if left <= .zero { return "\(reason); retrying now" }
            return "\(reason); retrying in \(time(wholeSeconds(left)))"
        }
        switch snapshot.state {
        case .queued: return "queued"
        case .connecting: return "connecting"
        case .downloading: return "downloading"
        case .verifying: return "verifying the checksum"
        case .publishing: return "saving to disk"
        case .finished: return "finished"
        case .paused: return "paused"
        case .waiting: return "waiting"
        case .failed: return "failed"
        case .cancelled: return "stopped"
        }
    }

    /// Returns the last line of a successful download, without its mark.
    static func summary(
        of completed: CompletedTransfer, name: String, resumed: Int64, elapsed: Duration
    ) -> String {
        switch completed.outcome {
        case .published(let file):
            let (place, size) = (path(file.path), ByteCountText.format(file.length))
            guard resumed < file.length || resumed == 0 else {
                return "\(place)  complete; an earlier run downloaded all \(size)"
            }
            let fetched = fetched(file.length - resumed, received: completed.receivedBytes, elapsed: elapsed)
            return "\(place)  downloaded \(fetched)" + (resumed > 0 ? " (\(size) in total)" : "")
        case .alreadyThere(let file):
            let (place, size) = (path(file.path), ByteCountText.format(file.length))
            let received = ByteCountText.format(completed.receivedBytes)
            let isStopped = completed.receivedBytes > 0
            let end = isStopped ? ", so this download stopped after \(received)" : "; not downloaded again"
            // A file without a date was downloaded by this run, or completed by it after a crash.
            guard let modified = file.modified else { return "\(place)  already downloaded (\(size))\(end)" }
            return "\(place)  already downloaded (\(size), dated \(date(modified)))\(end)."
                + " To download a newer version, use --if-exists update"
        case .upToDate(let file):
            return "\(path(file.path))  is up to date (\(ByteCountText.format(file.length)))"
        case .skipped(let occupied):
            return "\(path(occupied))  skipped because a file with this name already exists (--if-exists skip)"
        case .streamed(let length, let output):
            let fetched = fetched(length, received: completed.receivedBytes, elapsed: elapsed)
            let place = output == "-" ? "standard output" : path(output)
            return "\(TerminalSafeText.make(name))  downloaded \(fetched), to \(place)"
        }
    }

    /// Formats seconds since 1970, such as `2023-11-14 22:13 UTC`.
    static func date(_ seconds: Int64) -> String {
        let timestamp = HTTPDate(secondsSince1970: seconds).timestamp
        return "\(timestamp.prefix(10)) \(timestamp.dropFirst(11).prefix(5)) UTC"
    }

    /// Formats a length and the elapsed time, such as `629 MiB in 56 s, 11.2 MiB/s`. The rate counts received bytes.
    static func fetched(_ length: Int64, received: Int64, elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        let figures = "\(ByteCountText.format(length)) in \(time(elapsed))"
        return seconds > 0 && received > 0 ? "\(figures), \(rate(Double(received) / seconds))" : figures
    }

    /// Formats a duration for a sentence: `0.4 s`, `12 s`, `2 min 05 s`, then as `DurationText`. `0:12` could be a
    /// clock time.
    static func time(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if seconds < 10, attoseconds > 0 {
            let tenths = seconds * 10 + attoseconds / 100_000_000_000_000_000
            return "\(tenths / 10).\(tenths % 10) s"
        }
        if seconds < 60 { return "\(seconds) s" }
        let rest = seconds % 60
        return seconds < 3600
            ? "\(seconds / 60) min \(rest < 10 ? "0" : "")\(rest) s" : DurationText.format(.seconds(seconds))
    }

    /// Describes the data that an interrupted download keeps, without its mark.
    static func kept(_ row: ProgressRow) -> String {
        let name = TerminalSafeText.make(row.name)
        guard row.snapshot.heldBytes > 0 else {
            return row.snapshot.receivedBytes > 0
                ? "\(name)  interrupted; the received data was not saved, so the next run restarts from the beginning"
                : "\(name)  interrupted before any data was received; the next run starts from the beginning"
        }
        guard let reason = row.snapshot.startsOverBecause else {
            return "\(name)  interrupted; \(sizes(row.snapshot)) are kept, and the next run resumes"
        }
        let sizes = sizes(row.snapshot)
        return "\(name)  interrupted at \(sizes). The next run restarts from the beginning because \(reason)"
    }

    /// Returns why a download failed and, after a transient error, whether another run resumes it. Without its mark.
    static func failure(_ error: TowlineError, _ row: ProgressRow?) -> String {
        let message = path(error.message) + remedy(for: error, row)
        guard ExitStatus(error) == .transient, let snapshot = row?.snapshot else { return message }
        guard snapshot.heldBytes > 0 else {
            return "\(message). No data was saved. Run the same command again to retry."
        }
        guard let reason = snapshot.startsOverBecause else {
            return "\(message). \(sizes(snapshot)) are kept. Run the same command again to resume."
        }
        return "\(message). Run the same command again. The download restarts from the beginning because \(reason)."
    }

    /// Returns a sentence about the option that can solve the problem, or an empty string.
    private static func remedy(for error: TowlineError, _ row: ProgressRow?) -> String {
        switch error.code {
        case .destinationExists where !error.message.contains("--if-exists"):
            return ". To choose what happens to an existing file, use --if-exists skip, overwrite or rename"
        // The signing authority is unknown here. Another authority would not help against an expired certificate or one
        // for another host. OpenSSL uses both spellings.
        case .untrustedServer
        where ["issuer certificate", "self-signed", "self signed"].contains(where: error.message.contains):
            if let file = row?.authorityFile {
                return ". The file \(path(file)) (--cacert) lacks the authority that signed the server's certificate."
                    + " If you trust this authority, add its certificate to that file"
            }
            if let (variable, file) = NamedAuthorities.file {
                return ". The file \(path(file)) (environment variable \(variable)) lacks the authority that signed the"
                    + " server's certificate. To use another file, add --cacert FILE"
            }
            return ". If you trust this server, add --cacert FILE with the certificate of its authority in PEM format"
        default: return ""
        }
    }

    /// Returns the last line after an interruption. `goesOn` is `true` if data was kept and no download must restart.
    static func resumeHint(goesOn: Bool) -> String {
        goesOn
            ? "Interrupted. Run the same command again to resume."
            : "Interrupted. Run the same command again. Downloads that cannot resume restart from the beginning."
    }

    /// Makes a path safe to print and removes a redundant `./` prefix.
    private static func path(_ path: String) -> String {
        TerminalSafeText.make(path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
    }

    /// Rounds up to whole seconds, so that a wait of half a second is not shown as 0 s.
    private static func wholeSeconds(_ duration: Duration) -> Duration {
        let (seconds, rest) = duration.components
        return .seconds(rest > 0 ? seconds + 1 : seconds)
    }
}
