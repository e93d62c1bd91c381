import Glibc
import TowlineCore

/// The unit file, in the directory for the units of a user.
struct UnitFile {
    let path: String

    /// Creates the path `$XDG_CONFIG_HOME/systemd/user/towd.service`. `configurationHome` is `~/.config` by default.
    init(configurationHome: String) { path = configurationHome + "/systemd/user/" + ServiceUnit.name }

    /// The kinds of file at the path.
    enum Kind: Hashable {
        /// No file exists.
        case absent
        /// `tow service install` wrote the file.
        case ours
        /// Another program or the user wrote the file.
        case foreign
    }

    var kind: Kind {
        guard access(path, F_OK) == 0 else { return .absent }
        let text = TextFile.read(path, limit: 1 << 20) ?? ""
        return text.hasPrefix(ServiceUnit.mark) ? .ours : .foreign
    }

    /// Returns whether the manager starts the unit: `systemctl enable` creates a link. A package's unit is enabled the
    /// same way.
    var isEnabled: Bool {
        let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        var status = stat()
        return lstat(folder + "/default.target.wants/" + ServiceUnit.name, &status) == 0
    }

    /// Writes the unit file and replaces an existing one. After a failure, the old file is unchanged.
    func write(_ unit: ServiceUnit) throws {
        try makeDirectory()
        let other = path + ".new"
        let descriptor = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failure(other, Self.unwritable) }
        var output = OutputDescriptor(descriptor)
        output.write(ServiceUnit.mark + "\n" + unit.text)
        let isWhole = !output.isBroken && fsync(descriptor) == 0
        close(descriptor)
        guard isWhole, rename(other, path) == 0 else {
            let problem = failure(path, Self.unwritable)
            unlink(other)
            throw problem
        }
    }

    /// Deletes the unit file. Does nothing if the file does not exist.
    func remove() throws {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw failure(path) { path, reason in "cannot remove the unit file \(path): \(reason). Delete it yourself" }
        }
    }

    private func makeDirectory() throws {
        var directory = ""
        for component in path.split(separator: "/").dropLast() {
            directory += "/" + component
            guard mkdir(directory, 0o755) == 0 || errno == EEXIST else {
                throw failure(directory) { path, reason in
                    "cannot create the directory \(path) for the unit file of towd: \(reason). Check the permissions"
                }
            }
        }
    }

    private static func unwritable(_ path: String, _ reason: String) -> String {
        "cannot write the unit file \(path), so the service is not installed: \(reason)."
            + " Check the permissions and the free space of its directory, then run 'tow service install' again"
    }

    private func failure(_ path: String, _ text: (_ path: String, _ reason: String) -> String) -> TowlineError {
        TowlineError(.unusableDestination, text(TerminalSafeText.make(path), String(cString: strerror(errno))))
    }
}
