import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// A server on one address. If an optional address is not available, the other listeners continue.
struct Listener: Service {
    let application: Application<RouterResponder<ServiceContext>>
    let isOptional: Bool
    let onFailure: @Sendable (any Error) -> Void

    init(
        _ address: BindAddress, isOptional: Bool, _ responder: RouterResponder<ServiceContext>,
        _ configuration: ServiceConfiguration, _ logger: Logger,
        onReady: @escaping @Sendable (any Channel) async -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) {
        let share = ConnectionShare(limit: configuration.maximumConnections)
        let channel = HTTP1Channel.Configuration(
            additionalChannelHandlers: [PatienceHandler(configuration, share: share)],
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: 16 << 10, maxHeaderListSize: 32 << 10, maxHeaderFieldCount: 100))
        application = Application(
            responder: responder, server: .http1(configuration: channel),
            configuration: ApplicationConfiguration(
                address: address,
                availableConnectionsDelegate: .maximum(configuration.maximumConnections, logger: logger)),
            onServerRunning: onReady, logger: logger)
        self.isOptional = isOptional
        self.onFailure = onFailure
    }

    func run() async throws {
        do {
            try await application.run()
        } catch {
            onFailure(error)
            guard isOptional else { throw error }
            try? await gracefulShutdown()
        }
    }
}
