import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The functions of the event loop that connect to hosts with several addresses: in parallel (`AddressRace`), and to
/// addresses that failed before last (`AddressBook`).
extension AttemptLoop {
    /// Passes the addresses of a host to libcurl if the user gave them, or if one of them failed within the last 60
    /// seconds. Throws `hostNotFound` or `hostNotPublic` if no address that the user gave can be used.
    func arrangeAddresses(
        of attempt: Attempt, for url: HTTPURL, _ options: ConnectionOptions
    ) throws(TransportFailure) {
        var host = url.host.utf8[...]
        if host.last == UInt8(ascii: ".") { host.removeLast() }
        let label = host.lastIndex(of: UInt8(ascii: ".")).map { host[host.index(after: $0)...] } ?? host[...]
        guard attempt.pool.proxy == nil, let first = label.first, first != UInt8(ascii: "["),
            !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
        else { return }
        let endpoint = AddressBook.Endpoint(host: url.host, port: url.port, family: options.addressFamily)
        attempt.addresses.endpoint = endpoint
        let fixed = options.fixedAddresses.last { $0.host == endpoint.host && $0.port == endpoint.port }
        if let fixed {
            let addresses = fixed.addresses.flatMap {
                SocketAddress.resolve($0, port: endpoint.port, family: endpoint.systemFamily)
            }
            guard !addresses.isEmpty else { throw FailureTable.hostUnknown(options) }
            attempt.addresses.fixed = addresses
            attempt.handle.useAddresses(book.sorted(addresses, of: endpoint), of: endpoint)
        } else if let order = book.order(of: endpoint) {
            attempt.handle.useAddresses(order, of: endpoint)
        }
    }

    /// Connects another socket to the next address of the host, unless a socket is connected. Called when the delay
    /// between two addresses has passed. If the addresses are unknown, looks them up first.
    func continueRace(of attempt: Attempt) {
        guard let race = attempt.addresses.race, let endpoint = attempt.addresses.endpoint, !race.isEnded else {
            return
        }
        // A slow TLS handshake is no reason for another address.
        guard race.connected == nil else { return }
        if !race.isComplete {
            guard let addresses = attempt.addresses.fixed ?? book.addresses(of: endpoint) else {
                if book.needsLookup(of: endpoint) { lookUp(endpoint) }
                return
            }
            race.learn(addresses)
        }
        startRunner(of: attempt, race)
    }

    /// Records the addresses of a host that were looked up, and connects to the next address for each attempt that
    /// waits for them.
    func learn(_ addresses: [SocketAddress], of endpoint: AddressBook.Endpoint) {
        book.learn(addresses, of: endpoint)
        for attempt in Array(attempts.values)
        where attempt.phase == .connecting && attempt.addresses.endpoint == endpoint {
            if attempt.addresses.race?.isComplete == false { continueRace(of: attempt) }
        }
    }

    private func startRunner(of attempt: Attempt, _ race: AddressRace) {
        let pool = attempt.pool
        let descriptor = race.start { !pool.options.publicAddressesOnly || $0.isPublic }
        if let descriptor {
            watch.opened(descriptor)
            ownSockets[descriptor] = attempt
            if !watch.want(.write, of: descriptor, tag: pool.tag) { close(runner: descriptor) }
        }
        if race.hasNext { deadlines.set(.now.advanced(by: AddressRace.delay), for: attempt) }
    }

    /// Handles a socket of the loop's own that has connected or failed. A connected socket replaces a socket of
    /// libcurl; after a failure, the next address is tried.
    func runnerIsReady(_ descriptor: Int32, of attempt: Attempt) {
        guard let race = attempt.addresses.race else { return close(runner: descriptor) }
        guard race.connected == nil else { return endRace(of: attempt) }
        guard race.finish(descriptor) else {
            close(runner: descriptor)
            return startRunner(of: attempt, race)
        }
        // epoll(7) drops the replaced socket with its last descriptor, but keeps the entry of the runner's descriptor
        // as long as another descriptor refers to the same socket.
        watch.dismiss(descriptor)
        let replaced = race.replaceable
        if let replaced, dup2(descriptor, replaced) == replaced { _ = fcntl(replaced, F_SETFD, FD_CLOEXEC) }
        close(runner: descriptor)
        guard let replaced, watch.replaced(replaced, tag: attempt.pool.tag) else { return }
        endRace(of: attempt)
        act(on: attempt.pool) { pool throws(TransportFailure) in try pool.socketIsReady(replaced, .write) }
    }

    /// Ends the parallel connection attempts to a host, once libcurl has its connection or the attempt has ended.
    /// Records which addresses failed.
    func endRace(of attempt: Attempt) {
        guard let race = attempt.addresses.race, !race.isEnded else { return }
        for descriptor in race.end() { close(runner: descriptor) }
        guard let endpoint = attempt.addresses.endpoint, let winner = race.winner else { return }
        book.succeed(winner, of: endpoint)
        fail(race.tried.filter { $0 != winner }, of: endpoint, attempt)
    }

    private func close(runner descriptor: Int32) {
        ownSockets[descriptor] = nil
        watch.dismiss(descriptor)
        watch.closed(descriptor)
        Glibc.close(descriptor)
    }

    /// Records which addresses of the host failed in an attempt that has ended with `end`, so that the next attempt
    /// begins with another address.
    func noteAddresses(of attempt: Attempt, _ end: AttemptEnd) {
        guard let race = attempt.addresses.race, let endpoint = attempt.addresses.endpoint else { return }
        let wasConnecting = !race.isEnded
        endRace(of: attempt)
        guard case .failed(let failure) = end else { return }
        switch failure.kind {
        case .connectFailed, .connectTimedOut, .tlsFailed, .headTimedOut:
            fail(race.winner.map { [$0] } ?? (wasConnecting ? race.tried : []), of: endpoint, attempt)
        default: break
        }
    }

    private func fail(_ addresses: [SocketAddress], of endpoint: AddressBook.Endpoint, _ attempt: Attempt) {
        if book.fail(addresses, of: endpoint), attempt.addresses.fixed == nil { lookUp(endpoint) }
    }
}

extension EasyHandle {
    /// Sets the addresses of the host `endpoint` that the next attempt of this handle connects to, instead of a DNS
    /// lookup.
    func useAddresses(_ addresses: [SocketAddress], of endpoint: AddressBook.Endpoint) {
        let texts = addresses.compactMap(\.text).map { $0.contains(":") ? "[\($0)]" : $0 }
        // `+`: libcurl keeps these addresses no longer than addresses that it resolves (`CURLOPT_RESOLVE(3)`).
        useAddresses("+\(endpoint.host):\(endpoint.port):\(texts.joined(separator: ","))")
    }
}
