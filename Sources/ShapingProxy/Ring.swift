import Glibc

/// A ring buffer of bytes between two sockets, allocated when the first bytes arrive.
struct Ring {
    let capacity: Int
    private(set) var used = 0
    private var head = 0
    private var memory: UnsafeMutableRawPointer?

    init(capacity: Int) { self.capacity = capacity }

    /// Receives up to `limit` bytes. Returns the result of recv(2).
    mutating func receive(from socket: Int32, limit: Int) -> Int {
        // An empty ring restarts at offset 0, because the start of the buffer is in the processor's caches.
        if used == 0 { head = 0 }
        let place = memory ?? .allocate(byteCount: capacity, alignment: 4096)
        memory = place
        let tail = (head + used) % capacity
        let count = recv(socket, place + tail, min(limit, capacity - max(used, tail)), 0)
        if count > 0 { used += count }
        return count
    }

    /// Sends up to `limit` bytes. Returns the result of send(2), or 0 if the ring is empty.
    mutating func send(to socket: Int32, limit: Int) -> Int {
        guard let memory, used > 0 else { return 0 }
        let count = Glibc.send(socket, memory + head, min(limit, used, capacity - head), Int32(MSG_NOSIGNAL))
        if count > 0 {
            head = (head + count) % capacity
            used -= count
        }
        return count
    }

    mutating func release() {
        memory?.deallocate()
        memory = nil
        used = 0
    }
}
