import TowlineCore
import TowlineEngine
enum LinkExpiry { static func end(of url: HTTPURL) -> Int64? { nil } }
protocol NetworkMonitor: Sendable { var changes: AsyncStream<Void> { get }; func close() }
struct SystemNetworkMonitor: NetworkMonitor { let changes = AsyncStream<Void> { _ in }; func close() {} }
struct LocalFollowUps: FollowUpPerformer { func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String? { nil } }
