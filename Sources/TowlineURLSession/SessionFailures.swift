import Foundation
internal import TowlineCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The failures of attempts, and the meaning of the errors of `URLSession`.
enum SessionFailures {
    static let headTimedOut = TransportFailure(
        .headTimedOut, "the server did not send the response headers within the time limit")
    static let tooManyInterim = TransportFailure(
        .headTooLarge, "the server sent more than 20 interim responses (1xx) before the response")
    static let secondHead = TransportFailure(.other, "URLSession sent the request a second time on its own")
    static let noHead = TransportFailure(
        .closedBeforeHead, "the server closed the connection before the response headers were complete")
    static let cut = TransportFailure(
        .bodyCut, "the connection to the server closed before the whole response was received")
    static let tooFast = TransportFailure(
        .bodyCut, "the connection was closed because the server sends faster than this download accepts")

    private static let kinds: [URLError.Code: TransportFailure.Kind] = [
        .cannotFindHost: .hostNotFound, .dnsLookupFailed: .hostNotFound,
        .cannotConnectToHost: .connectFailed, .notConnectedToInternet: .connectFailed,
        .internationalRoamingOff: .connectFailed, .callIsActive: .connectFailed, .dataNotAllowed: .connectFailed,
        .timedOut: .connectTimedOut,
        .networkConnectionLost: .closedBeforeHead, .badServerResponse: .closedBeforeHead,
        .cannotParseResponse: .malformed, .dataLengthExceedsMaximum: .malformed, .unsupportedURL: .malformed,
        .secureConnectionFailed: .tlsFailed,
        .serverCertificateUntrusted: .certificateRefused, .serverCertificateHasBadDate: .certificateRefused,
        .serverCertificateHasUnknownRoot: .certificateRefused, .serverCertificateNotYetValid: .certificateRefused,
        .clientCertificateRejected: .clientCertificateRefused, .clientCertificateRequired: .clientCertificateRefused,
        .appTransportSecurityRequiresSecureConnection: .unsupported,
        .badURL: .local, .cancelled: .local,
    ]

    /// The kinds of failures that swift-corelibs-foundation reports as `unknown`, by a part of libcurl's message in
    /// lower case. The first row that matches counts.
    private static let texts: [(part: String, kind: TransportFailure.Kind)] = [
        ("alert certificate required", .clientCertificateRefused), ("alert bad certificate", .clientCertificateRefused),
        ("alert handshake failure", .tlsIncompatible), ("unsupported protocol", .tlsIncompatible),
        ("alert protocol version", .tlsIncompatible),
        ("certificate", .certificateRefused), ("ssl", .tlsFailed), ("tls", .tlsFailed),
        ("proxy", .proxyFailed), ("socks", .proxyFailed), ("connect tunnel", .proxyFailed),
        // libcurl 7.88 also says "out of memory" of a header line that is too long.
        ("memory", .headTooLarge), ("giant", .headTooLarge), ("too large", .headTooLarge),
        ("header", .malformed), ("content-length", .malformed), ("http/", .malformed),
    ]

    /// Returns the failure for an error of a task. `hasHead`: whether the receiver has the response head.
    static func failure(_ error: any Error, hasHead: Bool) -> TransportFailure {
        let detail = error.localizedDescription
        if hasHead {
            // Only these are about the framing of the body.
            let isMalformed = detail.contains("chunk") || (error as? URLError)?.code == .cannotParseResponse
            let reason = isMalformed ? "the server sent invalid chunked data" : cut.message
            return TransportFailure(isMalformed ? .malformed : .bodyCut, "\(reason) (\(detail))")
        }
        guard let code = (error as? URLError)?.code, let kind = kinds[code] else {
            let text = detail.lowercased()
            let kind = texts.first { text.contains($0.part) }?.kind ?? .closedBeforeHead
            return TransportFailure(kind, "the request to the server failed: \(detail)")
        }
        return TransportFailure(kind, "the request to the server failed: \(detail)")
    }
}
