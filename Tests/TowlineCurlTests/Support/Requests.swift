import Foundation
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

/// The parent suite of all tests that open sockets: they run one after another, so that descriptors and threads can be
/// counted.
@Suite(.serialized, .timeLimit(.minutes(2))) struct CurlTransportTests {}

/// The parent suite of the tests that are the same for each transport.
typealias TransportTests = CurlTransportTests

extension CurlTransportTests {
    static func makeTransport() -> any Transport { CurlTransport() }
}

/// Returns the number of descriptors that this process has.
func openDescriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
}

/// Runs one request to its end on a transport of its own.
func run(_ request: AttemptRequest, _ receiver: RecordingReceiver = RecordingReceiver()) async
    -> RecordingReceiver.Record
{
    let transport = CurlTransport()
    transport.start(request, receiver: receiver)
    let record = await receiver.finished()
    await transport.shutdown()
    expectInOrder(receiver)
    return record
}

/// Runs one request to its end on a given transport.
func run(
    _ request: AttemptRequest, _ receiver: RecordingReceiver = RecordingReceiver(), on transport: CurlTransport
) async -> RecordingReceiver.Record {
    transport.start(request, receiver: receiver)
    let record = await receiver.finished()
    expectInOrder(receiver)
    return record
}
