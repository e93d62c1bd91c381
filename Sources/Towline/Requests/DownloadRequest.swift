public import Foundation

/// What a caller asks for: a URL, a place, and how.
///
/// Everything in it is kept in the registry, secrets included, so that the download goes on after a relaunch without
/// being asked again; nothing of it is printed (see ``Downloader``).
public struct DownloadRequest: Hashable, Sendable, Codable {
    /// Where the file goes. The directory must exist when the download begins.
    public enum Destination: Hashable, Sendable, Codable {
        /// Into this directory, under the name that the server or the URL gives, made safe; where that name is taken
        /// by another download, under the next free number.
        case directory(URL)
        /// Under exactly this path.
        case file(URL)
    }

    /// What happens where something else already has the final name.
    public enum Existing: String, Hashable, Sendable, Codable {
        /// The download fails with `destinationExists`.
        case fail
        /// The file is replaced, once the new one is whole.
        case overwrite
        /// The new file gets the next free number.
        case rename
        /// The download is finished without a request.
        case skip
    }

    /// A header field of the caller's own. It goes to the URL's origin only, never to another that a redirect names.
    public struct Header: Hashable, Sendable, Codable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Makes a field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Where from: `http` or `https`.
    public var url: URL
    /// Where to.
    public var destination: Destination
    /// Header fields of the caller's own.
    public var headers: [Header] = []
    /// `name:password` for Basic authentication at the URL's origin.
    public var user: String?
    /// Most connections at once, 1 … 128; `nil`: as many as pay off, at most 16.
    public var connections: Int?
    /// Bytes per second; `nil`: no limit of its own.
    public var rateLimit: Int64?
    /// `algorithm:hex`, such as `sha256:…`; other bytes are never published.
    public var checksum: String?
    /// Downloads of a higher one go first.
    public var priority = 0
    /// The group it counts in; see ``Downloader/setLimit(_:forGroup:)``.
    public var group: String?
    /// The caller's own; comes back unchanged in every snapshot, also after a relaunch.
    public var metadata: [String: String] = [:]
    /// What happens where the final name is taken.
    public var existing = Existing.fail
    /// Added without being started: it begins with ``Download/resume()``.
    public var startsPaused = false
    /// What follows once the file is verified and published. Nothing follows on a file that was there and was skipped.
    public var followUps: [FollowUp] = []
    /// `http`, `https` or `socks5h` URL of a proxy; `nil`: what the environment says.
    public var proxy: String?
    /// A PEM file of certificate authorities to trust instead of the system's.
    public var certificateAuthorities: URL?
    /// No byte for this many seconds: the connection is replaced.
    public var stallTimeout: Double = 30
    /// Attempts in a row that bring nothing before the download fails, of each of its URLs while none has brought a byte;
    /// `nil`: it waits for the network and goes on by itself, however long that takes.
    public var maximumTries: Int?
    /// Go on with length and overlap alone where the server gives nothing to prove that the file is the same.
    public var allowsUnsafeResume = false

    /// Connects to addresses of the public Internet alone, after each redirect too, and through no proxy: for requests of
    /// somebody who is not to reach this machine's own services or its network (CWE-918). Otherwise fails with
    /// `addressRefused`.
    public var publicAddressesOnly: Bool {
        get { isPublicOnly ?? false }
        set { isPublicOnly = newValue ? true : nil }
    }
    private var isPublicOnly: Bool?

    /// Other URLs of the same file, at most 16. They bring parts of it, and go on where the first fails; their bytes are
    /// joined only with proof: a checksum of the whole, or the same strong entity tag. They get neither `headers` nor `user`.
    public var mirrors: [URL] {
        get { otherURLs ?? [] }
        set { otherURLs = newValue.isEmpty ? nil : newValue }
    }
    private var otherURLs: [URL]?

    /// A request with the defaults.
    public init(from url: URL, to destination: Destination) {
        self.url = url
        self.destination = destination
    }
}
