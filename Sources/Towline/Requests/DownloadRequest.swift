public import Foundation
import TowlineDisk

/// A request for a download: a URL, a destination and options.
///
/// The registry stores the complete request, including secrets, so that the download can resume after a relaunch.
/// Secrets do not appear in messages, events or journals (see ``Downloader``).
///
/// The options of the transfer are also members of the request: `request.connections` is `request.options.connections`.
@dynamicMemberLookup
public struct DownloadRequest: Hashable, Sendable {
    /// The destination of the file. The directory must exist when the download starts.
    public enum Destination: Hashable, Sendable, Codable {
        /// A directory. The server or the URL supplies the file name, which is made safe.
        ///
        /// If another download uses this name, a number is added to the name.
        case directory(URL)
        /// The exact path of the file, with its name.
        case file(URL)
    }

    /// A custom header field.
    ///
    /// The field is sent only to the origin of the URL (scheme, host and port), not to other origins after a redirect.
    public struct Header: Hashable, Sendable, Codable {
        /// The name of the header field, such as `Authorization`.
        public var name: String
        /// The value of the header field, which may be a secret.
        public var value: String

        /// Creates a header field from its name and its value.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The URL of the file to download, with the scheme `http` or `https`.
    public var url: URL
    /// The directory or the exact path where the file is saved.
    public var destination: Destination
    /// Custom header fields, sent only to the origin of the URL (scheme, host and port).
    public var headers: [Header] = []
    /// Cookies to send to the hosts that they name, as the content of a cookie file in the Netscape format: one cookie
    /// per line. Mirrors receive none.
    public var cookies: String?
    /// The credentials for Basic authentication at the origin of the URL, as `name:password`; `nil` if the request
    /// supplies none.
    public var user: String?
    /// The priority: queued downloads with a higher number start first.
    public var priority = 0
    /// The group of the download; `nil` means no group. ``Downloader/setLimit(_:forGroup:)`` limits a group.
    public var group: String?
    /// Data of the caller. Every snapshot contains it unchanged, also after a relaunch.
    public var metadata: [String: String] = [:]
    /// A Boolean value that indicates whether the download is added paused. ``Download/start()`` starts it.
    public var startsPaused = false
    /// The follow-up actions that run, in this order, after the file is verified and published.
    ///
    /// No action runs if the file already existed and the download was skipped, or the file is up to date.
    public var followUps: [FollowUp] = []
    /// The URL of a proxy, with the scheme `http`, `https`, `socks5` or `socks5h`.
    ///
    /// `nil` uses the proxy that environment variables such as `https_proxy` name, and an empty text uses none. A
    /// request with ``publicAddressesOnly`` must not name a proxy.
    public var proxy: String?
    /// A PEM file of the certificate authorities to trust instead of those of the system; `nil` trusts those of the
    /// system.
    public var certificateAuthorities: URL?
    /// A netrc file: names and passwords for Basic or Digest authentication, by host; `nil` uses none.
    ///
    /// An entry of the file applies to its host, also after a redirect, unless ``user`` or the URL supplies
    /// credentials. Without access to the file, adding the download throws `unusableOption`, and a later start fails
    /// with it.
    public var netrcFile: URL?
    /// The options of the transfer, such as the checksum and the number of connections.
    public var options = TransferOptions()
    /// A Boolean value that indicates whether the download connects only to public addresses, also after redirects, and
    /// without a proxy.
    ///
    /// Set this property for URLs from untrusted users, who must not reach services on this machine or its network
    /// (CWE-918). A download of a host without a public address fails with `addressRefused`.
    public var publicAddressesOnly = false
    /// Other URLs of the same file, at most 16.
    ///
    /// Mirrors deliver parts of the file and replace the first URL if it fails. Bytes of different URLs are joined only
    /// with proof: a checksum of the file or the same strong ETag. `headers` and `user` are not sent to mirrors.
    public var mirrors: [URL] = []

    /// The fields that the caller gave; `nil` if these are the fields whose values differ from the defaults.
    package var given: Set<RequestField>?

    /// `true` if the download replaces the file that it published earlier, at the place of that file. The list sets
    /// the property for `Download.refetch`, until the new file is complete.
    var replacesOwnFile = false

    /// The file system on which the download stores its file, known since its directory exists; `nil` before. While
    /// another one is at the path of the directory, the download waits.
    var fileSystem: FileSystemIdentity?

    /// The request as the caller made it, without the properties that the list adds.
    var asAdded: DownloadRequest {
        var request = self
        (request.replacesOwnFile, request.fileSystem, request.given) = (false, nil, nil)
        return request
    }

    /// Creates a request for a URL and a destination, with the default options.
    public init(from url: URL, to destination: Destination) {
        self.url = url
        self.destination = destination
    }

    /// Accesses an option of the transfer as a member of the request, such as `request.connections`.
    public subscript<Value>(dynamicMember option: WritableKeyPath<TransferOptions, Value>) -> Value {
        get { options[keyPath: option] }
        set { options[keyPath: option] = newValue }
    }
}
