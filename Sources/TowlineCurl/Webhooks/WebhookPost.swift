import CCurl
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// One HTTP request that delivers a webhook message. `perform` sends it and blocks the calling thread.
struct WebhookPost: Sendable {
    let url: HTTPURL
    let message: WebhookMessage
    let options: ConnectionOptions
    let timeout: Duration

    /// The state of the request that libcurl's callbacks share. Confined to the thread that calls `perform`.
    private final class Exchange {
        var collector = HeadCollector()
        var head: ResponseHead?
        var refusal: TransportFailure?
        var bodyLength = 0
        let flag: CancelFlag

        init(flag: CancelFlag) { self.flag = flag }
    }

    /// The maximum number of bytes of the response's body that are read.
    private static let maximumBodyLength = 64 << 10

    /// Sends the webhook message and returns the head of the response. A complete head counts even if the body fails.
    /// Setting `flag` aborts the request within about a second.
    func perform(_ flag: CancelFlag) -> Result<ResponseHead, TransportFailure> {
        let fields = HTTPFields([
            ("User-Agent", "towline/\(TowlineVersion.text)"), ("Content-Type", "application/json"),
            ("Idempotency-Key", message.idempotencyKey),
        ])
        let list: FieldList
        do throws(TransportFailure) {
            try RequestFields.check(url.requestText)
            list = try FieldList(fields)
            try ConnectionPool.check(options)
            _ = try options.checkedProxy()
        } catch {
            return .failure(error)
        }
        guard CurlLibrary.initialisation == CURLE_OK, let handle = EasyHandle() else {
            return .failure(TransportFailure(.local, FailureTable.cannotStart))
        }
        options.apply(to: handle)
        if options.publicAddressesOnly { handle.refusePrivateAddresses() }
        let exchange = Exchange(flag: flag)
        guard prepare(handle, list.pointer, exchange) else {
            return .failure(TransportFailure(.local, FailureTable.outOfMemory))
        }
        let code = withExtendedLifetime((exchange, list)) { curl_easy_perform(handle.pointer) }
        if let head = exchange.head { return .success(head) }
        if let refusal = exchange.refusal { return .failure(refusal) }
        guard code != CURLE_OK else { return .failure(FailureTable.headCut) }
        return .failure(FailureTable.failure(code, detail: handle.errorDetail))
    }

    private func prepare(
        _ handle: EasyHandle, _ list: UnsafeMutablePointer<curl_slist>, _ exchange: Exchange
    ) -> Bool {
        let pointer = handle.pointer
        let context = Unmanaged.passUnretained(exchange).toOpaque()
        let body = message.json
        handle.set(CURLOPT_POST, 1)
        handle.set(CURLOPT_POSTFIELDSIZE, body.utf8.count)
        handle.set(CURLOPT_TIMEOUT_MS, timeout.curlMilliseconds)
        handle.set(CURLOPT_NOPROGRESS, 0)
        return ccurl_set_string(pointer, CURLOPT_URL, url.requestText) == CURLE_OK
            && ccurl_set_string(pointer, CURLOPT_COPYPOSTFIELDS, body) == CURLE_OK
            && ccurl_set_list(pointer, CURLOPT_HTTPHEADER, list) == CURLE_OK
            // The handle's own callbacks expect an attempt.
            && ccurl_set_pointer(pointer, CURLOPT_PREREQFUNCTION, nil) == CURLE_OK
            && (options.publicAddressesOnly
                || ccurl_set_pointer(pointer, CURLOPT_OPENSOCKETFUNCTION, nil) == CURLE_OK)
            && ccurl_set_data_callback(pointer, CURLOPT_HEADERFUNCTION, Self.header) == CURLE_OK
            && ccurl_set_data_callback(pointer, CURLOPT_WRITEFUNCTION, Self.body) == CURLE_OK
            && ccurl_set_progress_callback(pointer, Self.progress) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_HEADERDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_WRITEDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_XFERINFODATA, context) == CURLE_OK
    }

    private static func exchange(_ context: UnsafeMutableRawPointer?) -> Exchange? {
        context.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let header:
        @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
            bytes, size, count, context in
            guard let exchange = WebhookPost.exchange(context) else { return 0 }
            switch exchange.collector.take(UnsafeRawBufferPointer(start: bytes, count: size * count)) {
            case .more: return size * count
            case .head(let head, _):
                exchange.head = head
                return size * count
            case .refused(let failure):
                if exchange.head == nil { exchange.refusal = failure }
                return 0
            }
        }

    private static let body: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int =
        {
            _, size, count, context in
            guard let exchange = WebhookPost.exchange(context) else { return 0 }
            exchange.bodyLength += size * count
            return exchange.bodyLength <= WebhookPost.maximumBodyLength ? size * count : 0
        }

    /// The callback that aborts the request if it was cancelled. libcurl calls it at least once a second.
    private static let progress:
        @convention(c) (UnsafeMutableRawPointer?, curl_off_t, curl_off_t, curl_off_t, curl_off_t) -> Int32 = {
            context, _, _, _, _ in
            WebhookPost.exchange(context)?.flag.isSet == true ? 1 : 0
        }
}
