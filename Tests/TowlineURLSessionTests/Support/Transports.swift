import Testing
import TowlineEngine
import TowlineURLSession

/// The parent suite of the tests that open sockets, which run one after another.
@Suite(.serialized, .timeLimit(.minutes(2))) struct URLSessionTransportTests {}

/// The parent suite of the tests that are the same for each transport.
typealias TransportTests = URLSessionTransportTests

extension URLSessionTransportTests {
    static func makeTransport() -> any Transport { URLSessionTransport() }
}

/// Runs one request to its end on a transport of its own.
func run(_ request: AttemptRequest, _ receiver: RecordingReceiver = RecordingReceiver()) async
    -> RecordingReceiver.Record
{
    let transport = URLSessionTransport()
    transport.start(request, receiver: receiver)
    let record = await receiver.finished()
    await transport.shutdown()
    expectInOrder(receiver)
    return record
}
