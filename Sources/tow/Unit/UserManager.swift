import Glibc
import TowlineCore

/// The part of systemd's user manager that concerns `towd`, called with `systemctl --user`.
struct UserManager {
    /// The error of a failed `systemctl` command.
    struct Refusal: Error {
        /// The last line of its output, or its exit status.
        let reason: String
        /// `true` if `systemctl` does not exist.
        let isAbsent: Bool
    }

    private static let control = ["systemctl", "--user"]

    /// Reads all unit files again.
    func reload() throws(Refusal) { try command(["daemon-reload"]) }

    /// Starts the service now and whenever the user's manager starts.
    func enable() throws(Refusal) { try command(["enable", "--now", ServiceUnit.name]) }

    /// Restarts the service with the current unit file, if it is running.
    func restartIfRunning() throws(Refusal) { try command(["try-restart", ServiceUnit.name]) }

    func start() throws(Refusal) { try command(["start", ServiceUnit.name]) }

    /// Stops the service and no longer starts it automatically.
    func disable() throws(Refusal) { try command(["disable", "--now", ServiceUnit.name]) }

    /// Returns systemd's answer to a question such as `is-active`: a word such as `active`, or a message if it is
    /// unknown.
    func word(_ question: String) -> String {
        TerminalSafeText.make(ProgramRun.run(Self.control + [question, ServiceUnit.name]).text, width: 60)
    }

    /// The reason why systemd cannot be asked, for example in a container; `nil` if it answers.
    var absence: String? {
        let run = ProgramRun.run(Self.control + ["is-active", ServiceUnit.name])
        if run.status == ProgramRun.notFound { return "not installed" }
        // Each answer is one word.
        return run.text.contains(" ") ? "no user manager: \(TerminalSafeText.make(run.text, width: 100))" : nil
    }

    /// Returns whether the manager runs the service now.
    var isActive: Bool { word("is-active") == "active" }

    /// Returns whether a service with `ServiceUnit.namespaceSettings` can start this program here. The manager runs the
    /// program once with `--version`: Linux and its security modules may forbid user namespaces to some programs only.
    func allowsNamespaces(_ program: String) -> Bool {
        let settings = ServiceUnit.namespaceSettings.flatMap { ["-p", $0] }
        let words = ["systemd-run", "--user", "--wait", "--quiet", "--collect"] + settings
        return ProgramRun.run(words + ["--", program, "--version"]).status == 0
    }

    private func command(_ words: [String]) throws(Refusal) {
        let run = ProgramRun.run(Self.control + words)
        guard run.status != 0 else { return }
        let lines = run.text.split(separator: "\n")
        throw Refusal(
            reason: TerminalSafeText.make(lines.last.map { String($0) } ?? "exit status \(run.status)", width: 300),
            isAbsent: run.status == ProgramRun.notFound)
    }

    // MARK: Lingering

    /// The command that turns lingering on. Works without `sudo` only if polkit allows it; small servers lack polkit.
    static let lingerCommand = "sudo loginctl enable-linger $USER"

    /// Returns whether the manager runs while the user is not logged in (loginctl(1), `enable-linger`).
    static var lingers: Bool {
        guard let entry = getpwuid(geteuid()), let name = entry.pointee.pw_name else { return false }
        return access("/var/lib/systemd/linger/" + String(cString: name), F_OK) == 0
    }
}
