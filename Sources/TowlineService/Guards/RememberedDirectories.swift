internal import Foundation
package import Towline

/// The downloads directories of the last start with `--downloads`, kept in the state directory. `tow add` starts `towd`
/// with the state directory only, and downloads must then still be stored where they were.
package struct RememberedDirectories: Sendable {
    private let file: PrivateFile

    /// Creates the list of a state directory.
    package init(in stateDirectory: String) {
        file = PrivateFile(
            path: stateDirectory + "/downloads.json", title: "list of downloads directories",
            advice: "Remove the file, and start towd with --downloads")
    }

    /// Returns the directories, or an empty array if none were stored.
    ///
    /// - Throws: `diskPermission` if the file cannot be read or has invalid content.
    package func read() throws(TowlineError) -> [String] {
        guard let text = try file.text(limit: 1 << 20) else { return [] }
        guard let paths = try? JSONDecoder().decode([String].self, from: Data(text.utf8)),
            paths.allSatisfy({ $0.hasPrefix("/") })
        else {
            throw TowlineError(
                .diskPermission,
                "the \(file.title) \(TerminalSafeText.make(file.path)) has invalid content. \(file.advice)")
        }
        return paths
    }

    /// Stores the directories, if they changed.
    ///
    /// - Throws: `diskPermission` if the file cannot be written.
    func store(_ paths: [String]) throws(TowlineError) {
        if let known = try? read(), known == paths { return }
        guard let data = try? JSONEncoder().encode(paths) else { return }
        try file.replace(with: String(decoding: data, as: UTF8.self))
    }
}
