import TowlineCore

/// Hints for users of curl, wget and aria2: the `tow` options and commands for those of other programs.
enum Habit {
    private static let words: [(habits: [String], here: String)] = [
        (["--http-user", "--http-password", "--password"], "use --user NAME:PASSWORD"),
        (["--split", "--max-connection-per-server", "--num-connections"], "use -x N"),
        (["--noproxy"], "use --no-proxy, or set the environment variable no_proxy to a list of hosts"),
        (["-E", "--certificate"], "use --cert FILE"),
        (["--private-key"], "use --key FILE"),
        (["--pass"], "use --key-password-file FILE, which other users cannot read"),
        (["--ca-certificate"], "use --cacert FILE"),
        (["--inet4-only"], "use -4"),
        (["--inet6-only"], "use -6"),
        (["-m", "--max-time"], "tow has no limit for a whole download; use timeout(1)"),
        (["--no-verbose"], "use -q"),
        (["--retry", "--tries", "-t"], "use --max-tries N"),
        (["--retry-on-http-error"], "use --retry-on LIST"),
        (
            ["--max-concurrent-downloads", "--parallel-max", "-Z", "--parallel"],
            "tow downloads several URLs in parallel by default; use -j N to set their number"
        ),
        (["--max-download-limit"], "use --limit-rate RATE"),
        (["--max-overall-download-limit"], "use --limit-rate-total RATE"),
        (["--max-filesize", "-Q", "--quota"], "use --max-size SIZE"),
        (["-m", "--max-time", "--timeout", "--read-timeout", "-y", "--speed-time"], "use --stall-timeout SECONDS"),
        (
            ["-r", "--range", "--start-pos", "--recursive"],
            "tow downloads whole files from the URLs that you name: no parts (curl -r) and no directories (wget -r)"
        ),
        (["--location-trusted"], "tow sends credentials only to the server that they are for; omit this option"),
        (["--proxy-user", "--all-proxy", "--http-proxy"], "use --proxy http://NAME:PASSWORD@HOST:PORT"),
    ]

    /// The commands of other programs, with the commands of `tow` that do the same.
    private static let commands = [
        "rm": "remove", "delete": "remove", "ls": "list", "download": "get", "fetch": "get", "start": "resume",
        "unpause": "resume", "stop": "pause", "info": "show",
    ]

    /// Returns the setting that matches an option in lists of aria2 (`aria2c -i`), or `nil`.
    static func setting(_ name: String) -> Setting? {
        switch name {
        case "out": .output
        case "dir": .directory
        case "split", "max-connection-per-server": .connections
        case "max-download-limit": .limitRate
        default: nil
        }
    }

    /// Returns the parser's error message, with a hint if the intended option or command is known.
    static func answer(_ text: String, to words: some Collection<String>) -> String {
        if text.contains("nexpected argument"), words.first != GetShortcut.name,
            let url = words.first(where: { $0.contains("://") })
        {
            return text + "\nTo download this URL, run 'tow get \(TerminalSafeText.make(url))'."
        }
        if text.contains("nexpected argument"), let command = words.first, !command.hasPrefix("-"),
            !command.contains("://"), !TowCommand.names.contains(command)
        {
            let meant = commands[command] ?? self.command(like: command)
            let hint = meant.map { " Did you mean 'tow \($0)'?" } ?? ""
            let usage = text.firstIndex(of: "\n").map { text[$0...] } ?? ""
            return "Error: '\(TerminalSafeText.make(command, width: 40))' is not a tow command.\(hint)" + usage
        }
        for word in words.dropFirst() where words.first == GetShortcut.name {
            let name = word.hasPrefix("--") ? String(word.prefix { $0 != "=" }) : word
            let complaint = "Unknown option '\(name)'"
            guard let known = Self.words.first(where: { $0.habits.contains(name) }),
                let place = text.firstRange(of: complaint)
            else { continue }
            // Drop the parser's suggestion, which is only spelled alike.
            let rest = text[place.upperBound...].drop { $0 != "\n" }
            return text[..<place.upperBound] + ": \(known.here)." + rest
        }
        return text
    }

    /// Returns the command whose name differs in at most two added or removed letters, or `nil`.
    private static func command(like word: String) -> String? {
        let distances = TowCommand.names.map { ($0, Array($0.utf8).difference(from: Array(word.utf8)).count) }
        return distances.min { $0.1 < $1.1 }.flatMap { $0.1 <= 2 ? $0.0 : nil }
    }
}
