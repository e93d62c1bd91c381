#if os(Linux)
    import CCurl
    import Glibc

    /// Waits for events on many descriptors with epoll(7), level-triggered: the cost does not grow with the number of
    /// silent descriptors. One engine thread waits; any thread may call `wake`.
    ///
    /// `@unchecked Sendable`: `wake` is one system call on a descriptor. Only the waiting thread uses the rest,
    /// including the buffer, and the owner ensures that no method is called after `close`.
    struct EventPoll: @unchecked Sendable {
        /// The events that a descriptor is watched for, or that occurred on it: readable, writable, error, end.
        struct Interest: OptionSet {
            let rawValue: UInt32
            static let read = Interest(rawValue: EPOLLIN.rawValue)
            static let write = Interest(rawValue: EPOLLOUT.rawValue)
            static let error = Interest(rawValue: EPOLLERR.rawValue)
            static let hangUp = Interest(rawValue: EPOLLHUP.rawValue)
        }

        /// A descriptor that is ready, and the events that occurred on it.
        struct Event {
            let descriptor: Int32
            /// The tag that was passed to `watch` for the descriptor: the number of its connection pool.
            let tag: UInt32
            let ready: Interest
        }

        private let poll: Int32
        private let alarm: Int32
        private let buffer: UnsafeMutableBufferPointer<epoll_event>
        /// The tag of the descriptor with which `wake` interrupts the wait. The owner must use other tags for its
        /// descriptors.
        static let alarmTag = UInt32.max

        /// Creates the descriptors for the wait and for `wake`; `nil` if the system refuses one, with the cause in
        /// `errno`.
        init?() {
            poll = ccurl_epoll_create()
            guard poll >= 0 else { return nil }
            alarm = ccurl_eventfd()
            guard alarm >= 0,
                ccurl_epoll_watch(poll, alarm, EPOLLIN.rawValue, Self.data(alarm, Self.alarmTag), true) == 0
            else {
                Glibc.close(poll)
                if alarm >= 0 { Glibc.close(alarm) }
                return nil
            }
            buffer = .allocate(capacity: 256)
        }

        /// Watches `descriptor` for `interest`, which replaces the previous interest. Each of its events carries the
        /// number `tag`.
        ///
        /// - Parameter isNew: `true` if the descriptor was not watched; a wrong value costs a system call.
        /// - Returns: `false` if the kernel refuses, which happens only for lack of memory.
        func watch(_ descriptor: Int32, for interest: Interest, tag: UInt32, isNew: Bool) -> Bool {
            ccurl_epoll_watch(poll, descriptor, interest.rawValue, Self.data(descriptor, tag), isNew) == 0
        }

        /// Stops watching `descriptor`. The kernel does this automatically when a descriptor is closed.
        func forget(_ descriptor: Int32) { _ = ccurl_epoll_watch(poll, descriptor, 0, 0, false) }

        /// Waits for events for up to `milliseconds` (-1: without limit) and passes each event to `body`.
        ///
        /// - Returns: whether `wake` was called since the last `wait` that returned `true`.
        func wait(milliseconds: Int32, _ body: (Event) -> Void) -> Bool {
            guard let base = buffer.baseAddress else { return false }
            let count = epoll_wait(poll, base, Int32(buffer.count), milliseconds)
            var woken = false
            // -1 is EINTR (a debugger or a stopped process): the caller checks its clocks and waits again.
            for index in 0..<Int(max(count, 0)) {
                let data = buffer[index].data.u64
                let tag = UInt32(truncatingIfNeeded: data >> 32)
                if tag == Self.alarmTag {
                    var counter: UInt64 = 0
                    _ = read(alarm, &counter, 8)
                    woken = true
                } else {
                    let ready = Interest(rawValue: buffer[index].events)
                    body(Event(descriptor: Int32(truncatingIfNeeded: data), tag: tag, ready: ready))
                }
            }
            return woken
        }

        /// Makes the current or the next `wait` return immediately. Safe in any thread and in signal handlers.
        func wake() {
            var one: UInt64 = 1
            // EAGAIN means that the counter is full, so the waiting thread wakes up anyway.
            _ = write(alarm, &one, 8)
        }

        /// Closes the descriptors of the wait and of `wake`. No other method may be called afterwards.
        func close() {
            Glibc.close(alarm)
            Glibc.close(poll)
            buffer.deallocate()
        }

        /// Sets the name of the calling thread for tools such as ps(1), which show at most 15 bytes.
        static func nameThread(_ name: String) { ccurl_name_thread(name) }

        private static func data(_ descriptor: Int32, _ tag: UInt32) -> UInt64 {
            UInt64(tag) << 32 | UInt64(UInt32(bitPattern: descriptor))
        }
    }
#endif
