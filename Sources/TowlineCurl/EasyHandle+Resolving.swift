import CCurl
import Glibc
internal import TowlineCore

extension EasyHandle {
    /// libcurl resolves host names on threads of its own, and got none.
    var lacksResolverThread: Bool { errorDetail?.contains("thread failed to start") == true }

    /// Resolves the host name of a URL on the calling thread, which waits for the result, for the attempt that begins
    /// next.
    ///
    /// - Returns: `false` if the name does not resolve.
    func resolveHere(_ url: HTTPURL) -> Bool {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(url.host, nil, &hints, &list) == 0 else { return false }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let code = getnameinfo(
                entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            guard code == 0 else { continue }
            addresses.append(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        // `+`: not for longer than libcurl keeps what it resolves itself (`CURLOPT_RESOLVE(3)`).
        useAddresses("+\(url.host):\(url.port):\(addresses.joined(separator: ","))")
        return true
    }
}
