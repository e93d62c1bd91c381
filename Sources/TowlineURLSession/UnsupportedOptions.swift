import Foundation
internal import TowlineCore
internal import TowlineEngine

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The options of an attempt that `URLSession` cannot honour. An attempt that asks for such an option ends before its
/// request is sent. The options that protect the user come first.
enum UnsupportedOptions {
    /// The rows: whether the connection asks for the option, and the option in words for the message.
    private static let rows: [(isRequested: @Sendable (ConnectionOptions) -> Bool, name: String)] = [
        ({ $0.publicAddressesOnly }, "the restriction to public addresses"),
        ({ $0.certificateAuthorityFile != nil }, "a file of trusted certificates"),
        ({ $0.clientCertificate != nil }, "a client certificate in a file"),
        ({ $0.allowsInsecure }, "a connection without verification of the server's certificate"),
        ({ $0.proxy?.isEmpty == false }, "a proxy given by its URL (only the proxies of the system)"),
        ({ $0.netrc != .none }, "passwords from a netrc file"),
        ({ $0.cookieFile != nil || !$0.cookies.lines.isEmpty }, "cookies"),
        ({ !$0.fixedAddresses.isEmpty }, "fixed addresses of a host"),
        ({ $0.addressFamily != nil }, "the restriction to IPv4 or IPv6"),
        ({ $0.httpProtocol != .automatic }, "a fixed version of HTTP"),
        ({ $0.ignoresLength }, "a body whose length differs from Content-Length"),
    ]

    /// Returns the failure of a request with these options; `nil` if they are supported. The failure does not depend on
    /// the URL, so that the first request of a download shows it.
    static func failure(
        of options: ConnectionOptions,
        environment: @autoclosure () -> [String: String] = ProcessInfo.processInfo.environment
    ) -> TransportFailure? {
        let name = rows.first { $0.isRequested(options) }?.name ?? bypass(options, environment)
        return name.map { name in
            let reason = "this app downloads with URLSession, which does not support \(name). Remove this option"
            return TransportFailure(.unsupported, reason)
        }
    }

    /// Returns a text if a connection without a proxy is requested and the environment names a proxy, which
    /// swift-corelibs-foundation always uses.
    private static func bypass(_ options: ConnectionOptions, _ environment: () -> [String: String]) -> String? {
        #if canImport(FoundationNetworking)
            guard options.proxy == "" else { return nil }
            let environment = environment()
            let variable = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].first {
                environment[$0]?.isEmpty == false
            }
            return variable.map { "a connection without the proxy of the environment variable \($0)" }
        #else
            return nil
        #endif
    }
}

extension URLRequest {
    /// The time limit of a task without bytes: the engine has a stall timeout of its own.
    private static let longest: TimeInterval = 7 * 24 * 3600

    /// Creates the request of an attempt. Throws `local` if the URL or a field cannot be sent unchanged.
    init(_ request: AttemptRequest) throws(TransportFailure) {
        guard let url = URL(string: request.url.requestText) else {
            throw TransportFailure(.local, "Foundation rejected the URL as invalid, so no request was sent")
        }
        self.init(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: Self.longest)
        httpShouldHandleCookies = false
        for line in request.fields.lines {
            let isText = ByteText.encode(line.value).elementsEqual(line.value.utf8)
            guard FieldValidation.isValidName(line.name), FieldValidation.isValidValue(line.value), isText else {
                let reason =
                    "a request header has an invalid name, contains a control character, or is not UTF-8, and must be"
                    + " corrected"
                throw TransportFailure(.local, reason)
            }
            addValue(line.value, forHTTPHeaderField: line.name)
        }
        if request.sendsCredentials, let user = request.connection.user, !request.fields.has("Authorization") {
            let value = Data(ByteText.encode(user)).base64EncodedString()
            setValue("Basic " + value, forHTTPHeaderField: "Authorization")
        }
    }
}
