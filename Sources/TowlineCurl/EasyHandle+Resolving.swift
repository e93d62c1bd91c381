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
        // libcurl reads an address without a resolver.
        guard !url.host.hasPrefix("[") else { return true }
        let place = AddressBook.Place(host: url.host, port: url.port, family: nil)
        let addresses = SocketAddress.resolve(place.host, port: place.port, family: AF_UNSPEC)
        guard !addresses.isEmpty else { return false }
        useAddresses(addresses, of: place)
        return true
    }
}
