#if os(Linux)
    import CCurl
    import Glibc

    /// Waits for many descriptors at once, at a cost that does not grow with those that are silent: epoll(7),
    /// level-triggered. One engine thread waits; any thread may `wake` it.
    ///
    /// `@unchecked Sendable`: `wake` is one system call on a descriptor; everything else, the buffer included, is the
    /// waiting thread's, and its owner sees to it that nobody calls anything after `close`.
    struct EventPoll: @unchecked Sendable {
        /// What a descriptor is watched for, or ready for.
        struct Interest: OptionSet {
            let rawValue: UInt32
            static let read = Interest(rawValue: EPOLLIN.rawValue)
            static let write = Interest(rawValue: EPOLLOUT.rawValue)
            static let error = Interest(rawValue: EPOLLERR.rawValue)
            static let hangUp = Interest(rawValue: EPOLLHUP.rawValue)
        }

        /// One ready descriptor.
        struct Event {
            let descriptor: Int32
            /// The tag it was watched with.
            let tag: UInt32
            let ready: Interest
        }

        private let poll: Int32
        private let alarm: Int32
        private let buffer: UnsafeMutableBufferPointer<epoll_event>
        /// The tag that no watched descriptor may use.
        static let alarmTag = UInt32.max

        /// `nil` if the system has no descriptor left; `errno` tells more.
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

        /// Watches `descriptor`, in place of what it was watched for before.
        ///
        /// - Parameter isNew: whether it was not; a wrong guess costs a system call.
        /// - Returns: `false` if the kernel refuses, which it does for lack of memory alone.
        func watch(_ descriptor: Int32, for interest: Interest, tag: UInt32, isNew: Bool) -> Bool {
            ccurl_epoll_watch(poll, descriptor, interest.rawValue, Self.data(descriptor, tag), isNew) == 0
        }

        /// Watches `descriptor` no more. One that was closed is forgotten by the kernel already.
        func forget(_ descriptor: Int32) { _ = ccurl_epoll_watch(poll, descriptor, 0, 0, false) }

        /// Waits for events up to `milliseconds` (-1: without limit) and hands each to `body`.
        ///
        /// - Returns: whether `wake` was called since the last time that was told.
        func wait(milliseconds: Int32, _ body: (Event) -> Void) -> Bool {
            guard let base = buffer.baseAddress else { return false }
            let count = epoll_wait(poll, base, Int32(buffer.count), milliseconds)
            var woken = false
            // -1 is EINTR (a debugger or a stopped process): the caller looks at its clocks and waits again.
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

        /// Makes the current or the next `wait` return at once. From any thread, also from a signal handler.
        func wake() {
            var one: UInt64 = 1
            // EAGAIN means that the counter is full: the waiter is bound to wake up anyway.
            _ = write(alarm, &one, 8)
        }

        /// Gives the descriptors back; nothing else may be called afterwards.
        func close() {
            Glibc.close(alarm)
            Glibc.close(poll)
            buffer.deallocate()
        }

        /// Names the calling thread, for people who look at the process; at most 15 bytes show.
        static func nameThread(_ name: String) { ccurl_name_thread(name) }

        private static func data(_ descriptor: Int32, _ tag: UInt32) -> UInt64 {
            UInt64(tag) << 32 | UInt64(UInt32(bitPattern: descriptor))
        }
    }
#endif
