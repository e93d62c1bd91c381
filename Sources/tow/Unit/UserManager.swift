import Glibc
import TowlineCore

/// systemd's manager of this user's services, by `systemctl --user`.
struct UserManager {
    /// What it is asked for in vain.
    struct Refusal: Error {
        /// What it said.
        let reason: String
        /// There is no `systemctl` at all.
        let isAbsent: Bool
    }

    private static let control = ["systemctl", "--user"]

    /// Reads all units anew.
    func reload() throws(Refusal) { try command(["daemon-reload"]) }

    /// Starts the service now and whenever the user's manager starts.
    func enable() throws(Refusal) { try command(["enable", "--now", ServiceUnit.name]) }

    /// Starts it anew, with what its file says now, if it runs.
    func restartIfRunning() throws(Refusal) { try command(["try-restart", ServiceUnit.name]) }

    /// Starts it now.
    func start() throws(Refusal) { try command(["start", ServiceUnit.name]) }

    /// Stops it, and does not start it again.
    func disable() throws(Refusal) { try command(["disable", "--now", ServiceUnit.name]) }

    /// In a word of systemd, such as `active`, `enabled`; what it has to say instead if it is not there.
    func word(_ question: String) -> String {
        let run = ProgramRun.run(Self.control + [question, ServiceUnit.name])
        return run.status == ProgramRun.notFound
            ? "unknown, because systemctl was not found" : TerminalSafeText.make(run.text, width: 60)
    }

    /// Whether it is started by the manager now.
    var isActive: Bool { word("is-active") == "active" }

    /// Returns true if a service with `ServiceUnit.namespaceSettings` can start this program here. The program is run
    /// once with `--version`, by the manager: Linux and its security modules may forbid user namespaces to some
    /// programs only.
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

    /// What has it run. Users may ask for it themselves where polkit lets them, which small servers do not have.
    static let lingerCommand = "sudo loginctl enable-linger $USER"

    /// Whether the manager runs without the user being logged in (loginctl(1), `enable-linger`).
    static var lingers: Bool {
        guard let entry = getpwuid(geteuid()), let name = entry.pointee.pw_name else { return false }
        return access("/var/lib/systemd/linger/" + String(cString: name), F_OK) == 0
    }
}
