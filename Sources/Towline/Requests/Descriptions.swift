import Foundation
import TowlineCore

// Texts and reflections of requests show no secret: no credentials, no header values, no cookies, and no
// user information or signatures in URLs.

extension DownloadRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without its secrets, and the destination.
    public var description: String {
        let place =
            switch destination {
            case .directory(let directory): directory.path
            case .file(let file): file.path
            }
        return "\(url.withoutSecrets) to \(place)"
    }

    /// The URL without its secrets, and the destination, as in `description`.
    public var debugDescription: String { description }

    /// The URL without its secrets, the destination, the priority and the group.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "url": url.withoutSecrets, "destination": destination, "priority": priority, "group": group as Any,
            ], displayStyle: .struct)
    }
}

extension DownloadRequest.Header: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name of the header field. The value may be a secret and is not shown.
    public var description: String { "\(name): …" }
    /// The name of the header field without its value, which may be a secret.
    public var debugDescription: String { description }
    /// The name of the field only, for `dump` and debuggers, which must not show a secret.
    public var customMirror: Mirror { Mirror(self, children: ["name": name], displayStyle: .struct) }
}

extension RenewedLink: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The new URL of the file, without its secrets, so that a log of the link shows none of them.
    public var description: String { url.withoutSecrets }
    /// The new URL of the file, without its secrets, for debuggers.
    public var debugDescription: String { description }
    /// The new URL of the file, without its secrets, for `dump` and debuggers.
    public var customMirror: Mirror { Mirror(self, children: ["url": url.withoutSecrets], displayStyle: .struct) }
}

extension FollowUp: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of the follow-up, with a path or a host. Arguments of a program and the path of a webhook may be
    /// secrets.
    public var description: String {
        switch self {
        case .unpack(let directory, let deletesArchive):
            "unpack into \(directory.path)" + (deletesArchive ? " and delete the archive" : "")
        case .move(let target): "move to \(target.path)"
        case .run(let program, _, _): "run \(program.path)"
        case .notify(let url): "notify \(url.host ?? "")"
        }
    }

    /// The kind of the follow-up, with a path or a host but without secrets, as in `description`.
    public var debugDescription: String { description }
    /// The description as the only child, so that `dump` and debuggers show no secret.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .enum) }
}

extension Download: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The identifier of the download as text.
    public var description: String { id.description }
    /// The identifier of the download as text, for debuggers.
    public var debugDescription: String { description }
    /// The identifier of the download, for `dump` and debuggers.
    public var customMirror: Mirror { Mirror(self, children: ["id": id], displayStyle: .struct) }
}

extension Downloader: CustomReflectable {
    /// The notices about repaired problems, for `dump` and debuggers. The list of downloads and its secrets are not
    /// shown.
    public var customMirror: Mirror { Mirror(self, children: ["notices": notices], displayStyle: .class) }
}

extension URL {
    /// The URL without user information and without the values of signature parameters, or only its host if it is not a
    /// valid HTTP URL.
    fileprivate var withoutSecrets: String {
        (try? HTTPURL(parsing: absoluteString).withoutSecrets) ?? host ?? "(invalid URL)"
    }
}
