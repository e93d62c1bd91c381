package import TowlineCore

/// A command with placeholders for the path, directory, name and URL of a finished download.
package struct CommandTemplate: Hashable, Sendable {
    /// The program and its arguments, which may contain `{path}`, `{directory}`, `{name}` and `{url-without-secrets}`.
    package let arguments: [String]

    /// Creates a template.
    package init(_ arguments: [String]) { self.arguments = arguments }

    /// Returns the command for a file. Each argument stays one argument. Placeholders in inserted values are not
    /// replaced.
    package func filled(directory: String, name: String, url: HTTPURL) -> [String] {
        let values = [
            "{path}": directory + "/" + name, "{directory}": directory, "{name}": name,
            "{url-without-secrets}": url.withoutSecrets,
        ]
        return arguments.map { Self.fill($0, values) }
    }

    private static func fill(_ argument: String, _ values: [String: String]) -> String {
        var filled = ""
        var rest = argument[...]
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            let next = rest.index(after: end)
            if let value = values[String(rest[start..<next])] {
                filled += rest[..<start] + value
                rest = rest[next...]
            } else {
                filled += rest[...start]
                rest = rest[rest.index(after: start)...]
            }
        }
        return filled + rest
    }
}
