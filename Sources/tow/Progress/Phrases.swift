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
            if left <= .zero { return "\(reason), trying again" }
            return "\(reason), next attempt in \(time(wholeSeconds(left)))"
        }
        switch snapshot.state {
        case .queued: return "queued"
        case .connecting: return "connecting"
        case .downloading: return "downloading"
        case .verifying: return "verifying the checksum"
        case .publishing: return "making it durable"
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
            let fetched = fetched(file.length, received: completed.receivedBytes, elapsed: elapsed)
            let before = resumed > 0 ? " (\(ByteCountText.format(resumed)) was already there)" : ""
            return "\(path(file.path))  \(fetched)\(before)"
        case .alreadyThere(let file):
            let received = completed.receivedBytes
            let end =
                received > 0 ? "\(ByteCountText.format(received)) came before that was known" : "not fetched again"
            return "\(path(file.path))  \(ByteCountText.format(file.length)), already whole; \(end)"
        case .skipped(let occupied):
            return "\(path(occupied))  exists and is left as it is"
        case .streamed(let length):
            let fetched = fetched(length, received: completed.receivedBytes, elapsed: elapsed)
            return "\(TerminalSafeText.make(name))  \(fetched), to standard output"
        }
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
            let nothing = row.snapshot.receivedBytes > 0 ? "; nothing of it is kept" : " before anything came"
            return "\(name)  interrupted\(nothing)"
        }
        guard let reason = row.snapshot.startsOverBecause else {
            return "\(name)  interrupted; \(sizes(row.snapshot)) kept"
        }
        return "\(name)  interrupted at \(sizes(row.snapshot)); \(reason), so that the same command starts over"
    }

    /// Why a download failed, and, where running again may help, what it would go on with; without its mark.
    static func failure(_ error: TowlineError, _ row: ProgressRow?) -> String {
        let message = path(error.message) + remedy(for: error, row)
        guard ExitStatus(error) == .transient, let snapshot = row?.snapshot else { return message }
        guard snapshot.heldBytes > 0 else { return "\(message). Nothing came; the same command tries again" }
        if let reason = snapshot.startsOverBecause { return "\(message). The same command starts over: \(reason)" }
        return "\(message). \(sizes(snapshot)) kept; the same command goes on"
    }

    /// The option that would help.
    private static func remedy(for error: TowlineError, _ row: ProgressRow?) -> String {
        switch error.code {
        case .destinationExists: return " (--if-exists)"
        // An authority that nobody here knows; of a certificate that has expired, or is another host's, it would not help to
        // know it. OpenSSL's words, in both spellings.
        case .untrustedServer
        where ["issuer certificate", "self-signed", "self signed"].contains(where: error.message.contains):
            if let file = row?.authorityFile {
                return " (the certificates in \(path(file)) do not vouch for it)"
            }
            if let (variable, file) = NamedAuthorities.file {
                return
                    " (the certificates in \(path(file)), which \(variable) names, do not vouch for it; --cacert FILE takes their place)"
            }
            return " (--cacert FILE: a PEM file with the certificate of an authority of your own)"
        default: return ""
        }
    }

    /// The last words after an interruption.
    static func resumeHint(goesOn: Bool) -> String {
        goesOn
            ? "Interrupted. Everything is kept: run the same command again to go on."
            : "Interrupted. Run the same command again."
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
