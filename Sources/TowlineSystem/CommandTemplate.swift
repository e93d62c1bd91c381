package import TowlineCore

/// A command with places for what a download turned out to be.
package struct CommandTemplate: Hashable, Sendable {
    /// The program and its arguments; `{path}`, `{directory}`, `{name}` and `{url-without-secrets}` stand for
    /// themselves, alone or within an argument.
    package let arguments: [String]

    /// Makes one.
    package init(_ arguments: [String]) { self.arguments = arguments }

    /// The command for a file. Each argument stays one argument, and what is put in is not looked at again.
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
