internal import Foundation
package import Towline
import Yams

/// What `towd` can be told, by options and by a file of the same names. Options win.
package struct ServiceSettings: Hashable, Sendable {
    /// The state directory.
    package var state: String?
    /// Directories that downloads may go to.
    package var downloads: [String] = []
    /// The Unix socket.
    package var socket: String?
    /// Addresses of TCP; `none`: only the socket.
    package var listen: [String] = []
    /// Names that a `Host` field may have.
    package var host: [String] = []
    /// Who may have files fetched from private addresses.
    package var privateAddresses: String?

    /// Nothing said.
    package init() {}

    /// Reads a YAML file: one mapping, its keys the names of the options, its values texts or lists of them.
    ///
    /// - Throws: `unusableOption` with what is wrong; `diskPermission` if it cannot be read.
    package init(file path: String) throws(TowlineError) {
        let name = TerminalSafeText.make(path)
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw TowlineError(.diskPermission, "\(name) cannot be read")
        }
        try self.init(yaml: text, name: name)
    }

    /// Reads the file that is read unasked. `tow` does not read it: what it has to know to find the service is refused.
    ///
    /// - Throws: `unusableOption`, too, if it tells where the list or the socket is.
    package init(standardFile path: String) throws(TowlineError) {
        try self.init(file: path)
        guard let key = state != nil ? "state" : socket != nil ? "socket" : nil else { return }
        throw TowlineError(
            .unusableOption,
            """
            \(TerminalSafeText.make(path)): \(key) cannot be said here, where tow does not see it and would find no \
            towd; give --\(key) to both, or --config with a file of another name to towd
            """)
    }

    init(yaml text: String, name: String) throws(TowlineError) {
        let value: Any?
        do { value = try Yams.load(yaml: text) } catch {
            throw TowlineError(.unusableOption, "\(name) is not YAML: \(TerminalSafeText.make("\(error)", width: 300))")
        }
        guard let value else { return }
        guard let members = value as? [String: Any] else {
            throw TowlineError(.unusableOption, "\(name): lines like 'downloads: /srv/downloads' are wanted")
        }
        for (key, value) in members.sorted(by: { $0.key < $1.key }) {
            let values = (value as? [Any] ?? [value]).compactMap { $0 as? String }
            guard !values.isEmpty || (value as? [Any])?.isEmpty == true else {
                throw TowlineError(.unusableOption, "\(name): \(key) is to be a text or a list of texts")
            }
            switch key {
            case "state": state = values.first
            case "downloads": downloads = values
            case "socket": socket = values.first
            case "listen": listen = values
            case "host": host = values
            case "private-addresses": privateAddresses = values.first
            default: throw TowlineError(.unusableOption, "\(name): there is no option \(TerminalSafeText.make(key))")
            }
        }
    }

    /// The same with what is missing from another.
    package func over(_ other: ServiceSettings) -> ServiceSettings {
        var result = self
        result.state = state ?? other.state
        result.socket = socket ?? other.socket
        result.privateAddresses = privateAddresses ?? other.privateAddresses
        if downloads.isEmpty { result.downloads = other.downloads }
        if listen.isEmpty { result.listen = other.listen }
        if host.isEmpty { result.host = other.host }
        return result
    }
}
