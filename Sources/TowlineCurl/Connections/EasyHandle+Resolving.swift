import CCurl
import Glibc
internal import TowlineCore

/// The lookup of a host name on the calling thread, for systems that do not let libcurl start a thread for it.
extension EasyHandle {
    /// Returns whether the attempt of this handle failed because the system refused libcurl the thread on which it
    /// resolves a host name.
    var lacksResolverThread: Bool { errorDetail?.contains("thread failed to start") == true }

    /// Resolves the host name of a URL, and sets the addresses for the attempt that begins next. Blocks the calling
    /// thread until the lookup ends. Used if libcurl cannot start a thread for the lookup.
    ///
    /// - Returns: `false` if the name does not resolve.
    func resolveHere(_ url: HTTPURL) -> Bool {
        // libcurl reads an address without a resolver.
        guard !url.host.hasPrefix("[") else { return true }
        let endpoint = AddressBook.Endpoint(host: url.host, port: url.port, family: nil)
        let addresses = SocketAddress.resolve(endpoint.host, port: endpoint.port, family: AF_UNSPEC)
        guard !addresses.isEmpty else { return false }
        useAddresses(addresses, of: endpoint)
        return true
    }
}
