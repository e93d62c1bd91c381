import TowlineCore
import TowlineCurl
import TowlineEngine

/// Sentences and figures for people. What comes from a server is made safe here.
enum Phrases {
    /// What to call a download whose name is not known: `-o`, else the URL's last part, else its host.
    static func name(of options: DownloadOptions) -> String {
        if case .file(_, let name?) = options.target { return name }
        return options.url.lastPathComponent ?? options.url.host
    }

    /// `42%`; 100 only when it is whole.
    static func percent(_ fraction: Double) -> String { "\(Int(min(1, max(0, fraction)) * 100))%" }

    /// `11.2 MiB/s`.
    static func rate(_ rate: Double) -> String {
        let bounded = rate.isFinite ? min(max(0, rate), 9e18) : 0
        return ByteCountText.format(Int64(bounded)) + "/s"
    }

    /// `263 MiB of 629 MiB`, or what is there alone.
    static func sizes(_ snapshot: TransferSnapshot) -> String {
        let held = ByteCountText.format(snapshot.heldBytes)
        return snapshot.completeLength.map { "\(held) of \(ByteCountText.format($0))" } ?? held
    }

    /// What a download that is not receiving does; a wait counts down from `since` ago.
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

    /// The last line of a download that ended well, without its mark.
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
            // Without a date, this run downloaded the file or completed it after a crash.
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

    /// `2023-11-14 22:13 UTC`, for seconds since 1970.
    static func date(_ seconds: Int64) -> String {
        let timestamp = HTTPDate(secondsSince1970: seconds).timestamp
        return "\(timestamp.prefix(10)) \(timestamp.dropFirst(11).prefix(5)) UTC"
    }

    /// `629 MiB in 56 s, 11.2 MiB/s`. The rate is of what came over the wire.
    static func fetched(_ length: Int64, received: Int64, elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        let figures = "\(ByteCountText.format(length)) in \(time(elapsed))"
        return seconds > 0 && received > 0 ? "\(figures), \(rate(Double(received) / seconds))" : figures
    }

    /// `0.4 s`, `12 s`, `2 min 05 s`, then as everywhere: a span of time in a sentence, where `0:12` could be a clock.
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

    /// What an interrupted download keeps, without its mark.
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

    /// Why a download failed, and, where running again may help, what it would go on with; without its mark.
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

    /// The option that would help.
    private static func remedy(for error: TowlineError, _ row: ProgressRow?) -> String {
        switch error.code {
        case .destinationExists where !error.message.contains("--if-exists"):
            return ". To choose what happens to an existing file, use --if-exists skip, overwrite or rename"
        // The signing authority is unknown here. Another authority would not help against an expired certificate or one
        // for another host. Both spellings are OpenSSL's.
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

    /// The last words after an interruption.
    static func resumeHint(goesOn: Bool) -> String {
        goesOn
            ? "Interrupted. Run the same command again to resume."
            : "Interrupted. Run the same command again. Downloads that cannot resume restart from the beginning."
    }

    /// Safe to print, and without the `./` that says nothing.
    private static func path(_ path: String) -> String {
        TerminalSafeText.make(path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
    }

    /// Rounded up, so that a wait of half a second does not show as none.
    private static func wholeSeconds(_ duration: Duration) -> Duration {
        let (seconds, rest) = duration.components
        return .seconds(rest > 0 ? seconds + 1 : seconds)
    }
}
