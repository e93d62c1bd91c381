import TowlineCore

/// What people who come from curl, wget or aria2 type, and what does it here.
enum Habit {
    private static let words: [(habits: [String], here: String)] = [
        (["-c", "--continue", "-C", "--continue-at"], "tow always goes on with what is there"),
        (
            ["-O", "--remote-name", "--remote-header-name"],
            "the server's name is what a file gets unless -o says another"
        ),
        (["-L", "--location"], "tow always follows redirects"),
        (["-k", "--no-check-certificate"], "that is --insecure"),
        (["-u", "--http-user"], "that is --user NAME:PASSWORD"),
        (["-P", "--dir", "--directory-prefix", "--output-dir"], "that is -d"),
        (["-s"], "silent, as in curl, is -q; split, as in aria2, is -x"),
        (["--split", "--max-connection-per-server", "--num-connections"], "that is -x"),
        (["--silent", "--no-verbose"], "that is -q"),
        (["--retry", "--tries", "-t"], "that is --max-tries"),
        (
            ["--max-concurrent-downloads", "--parallel-max", "-Z", "--parallel"],
            "that is -j, and several URLs are enough"
        ),
        (["--max-download-limit"], "that is --limit-rate"),
        (["--max-overall-download-limit"], "that is --limit-rate-total"),
    ]

    /// Commands of other programs.
    private static let commands = [
        "rm": "remove", "delete": "remove", "ls": "list", "download": "get", "fetch": "get", "start": "resume",
        "unpause": "resume", "stop": "pause", "info": "show",
    ]

    /// What an option of aria2's lists (`aria2c -i`) is called here.
    static func setting(_ name: String) -> Setting? {
        switch name {
        case "out": .output
        case "dir": .directory
        case "split", "max-connection-per-server": .connections
        case "max-download-limit": .limitRate
        default: nil
        }
    }

    /// What the parser says of a command line that it refused, with what does here what was meant, where that is known.
    static func answer(_ text: String, to words: some Collection<String>) -> String {
        if text.contains("nexpected argument"), words.first != GetShortcut.name,
            let url = words.first(where: { $0.contains("://") })
        {
            return text + "\n'tow get \(TerminalSafeText.make(url))' downloads it."
        }
        if text.contains("nexpected argument"), let command = words.first, !command.hasPrefix("-"),
            !command.contains("://"), !TowCommand.names.contains(command)
        {
            let meant = commands[command] ?? self.command(like: command)
            let hint = meant.map { " Did you mean 'tow \($0)'?" } ?? ""
            let usage = text.firstIndex(of: "\n").map { text[$0...] } ?? ""
            return "Error: There is no command '\(TerminalSafeText.make(command, width: 40))'.\(hint)" + usage
        }
        for word in words.dropFirst() where words.first == GetShortcut.name {
            let name = word.hasPrefix("--") ? String(word.prefix { $0 != "=" }) : word
            let complaint = "Unknown option '\(name)'"
            guard let known = Self.words.first(where: { $0.habits.contains(name) }),
                let place = text.firstRange(of: complaint)
            else { continue }
            // What is only spelled alike is no help.
            let rest = text[place.upperBound...].drop { $0 != "\n" }
            return text[..<place.upperBound] + ": \(known.here)." + rest
        }
        return text
    }

    /// The command that at most two letters are wrong of.
    private static func command(like word: String) -> String? {
        let distances = TowCommand.names.map { ($0, Array($0.utf8).difference(from: Array(word.utf8)).count) }
        return distances.min { $0.1 < $1.1 }.flatMap { $0.1 <= 2 ? $0.0 : nil }
    }
}
