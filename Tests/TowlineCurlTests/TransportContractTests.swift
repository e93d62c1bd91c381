import FaultServer
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

extension TransportTests {
    /// Guarantees of `Transport`, checked over real connections, and with the server in memory that the engine tests
    /// use. Each test target of a transport contains this suite.
    @Suite("The contract of a transport") struct TransportContractTests {
        enum Wire: CaseIterable { case real, simulated }

        private static let path = "/file.bin"
        private static let length: Int64 = 1_000_000

        /// Runs `body` with a transport and a way to make requests for the file.
        private func with(
            _ wire: Wire, rate: Int64? = nil, _ behaviour: Behaviour = .correct,
            _ body: @escaping @Sendable (any Transport, @Sendable ([(String, String)]) -> AttemptRequest) async -> Void
        ) async throws {
            let resources = [Self.path: Resource(length: Self.length, rate: rate, behaviour: behaviour)]
            switch wire {
            case .real:
                let server = try await FaultServer.start(resources)
                let transport = TransportTests.makeTransport()
                let url = server.url(Self.path)
                await body(transport) { .make(url, $0, connection: .with { $0.headTimeout = .seconds(1) }) }
                await transport.shutdown()
                await server.stop()
            case .simulated:
                let simulation = Simulation()
                let transport = SimulatedServer(resources, in: simulation)
                try simulation.run {
                    await body(transport) {
                        .make("http://example.org" + Self.path, $0, connection: .with { $0.headTimeout = .seconds(1) })
                    }
                    await transport.shutdown()
                }
            }
        }

        private static func isRight(_ body: [UInt8], from offset: Int64 = 0) -> Bool {
            FaultContent(seed: 1).firstMismatch(in: body, at: offset) == nil
        }

        @Test(arguments: Wire.allCases) func headThenBodyThenOneEnd(_ wire: Wire) async throws {
            try await with(wire) { transport, make in
                let receiver = RecordingReceiver()
                transport.start(make([("Range", "bytes=1000-")]), receiver: receiver)
                let record = await receiver.finished()
                expectInOrder(receiver)
                #expect(record.heads.map(\.status) == [206] && record.end?.framing == .delimited)
                #expect(record.body.count == Self.length - 1000 && Self.isRight(record.body, from: 1000))
                #expect(record.heads.first?.latency ?? .zero > .zero)
            }
        }

        @Test(arguments: Wire.allCases) func bytesThatWerePausedComeAgain(_ wire: Wire) async throws {
            try await with(wire) { transport, make in
                let request = make([])
                // Every other call pauses; proceed is under way before the pause is answered.
                let receiver = RecordingReceiver(onBody: { _, record in
                    guard record.bodyCallCount.isMultiple(of: 2) else { return .consumed }
                    transport.proceed(request.id)
                    return .pause
                })
                transport.start(request, receiver: receiver)
                let record = await receiver.finished()
                expectInOrder(receiver)
                #expect(record.pauseCount > 10 && record.body.count == Self.length && Self.isRight(record.body))
            }
        }

        @Test(arguments: Wire.allCases) func aPauseAfterTheHeadHoldsTheBody(_ wire: Wire) async throws {
            try await with(wire) { transport, make in
                let request = make([])
                let receiver = RecordingReceiver(onHead: { _ in .pause })
                transport.start(request, receiver: receiver)
                await receiver.until { !$0.heads.isEmpty }
                #expect(receiver.record.bodyCallCount == 0)
                transport.proceed(request.id)
                let record = await receiver.finished()
                expectInOrder(receiver)
                #expect(record.body.count == Self.length && Self.isRight(record.body))
            }
        }

        @Test(arguments: Wire.allCases) func aPauseForATimeEndsByItself(_ wire: Wire) async throws {
            try await with(wire) { transport, make in
                let receiver = RecordingReceiver(onBody: { _, record in
                    record.pauseCount < 5 && record.bodyCallCount.isMultiple(of: 2)
                        ? .pauseFor(.milliseconds(5)) : .consumed
                })
                transport.start(make([]), receiver: receiver)
                let record = await receiver.finished()
                expectInOrder(receiver)
                #expect(record.pauseCount == 5 && record.body.count == Self.length && Self.isRight(record.body))
            }
        }

        @Test(arguments: Wire.allCases) func whoStopsHearsOfItOnce(_ wire: Wire) async throws {
            try await with(wire) { transport, make in
                let atHead = RecordingReceiver(onHead: { _ in .stop })
                let inBody = RecordingReceiver(onBody: { _, record in record.bodyCallCount < 3 ? .consumed : .stop })
                let atRest = RecordingReceiver(onRest: { _ in false })
                for receiver in [atHead, inBody, atRest] {
                    transport.start(make([]), receiver: receiver)
                    guard case .stopped? = await receiver.finished().end else {
                        Issue.record("\(String(describing: receiver.record.end))")
                        continue
                    }
                    expectInOrder(receiver)
                }
                #expect(atHead.record.bodyCallCount == 0 && inBody.record.bodyCallCount == 4)
            }
        }

        @Test(arguments: Wire.allCases) func cancelEndsAnAttemptAndNoOther(_ wire: Wire) async throws {
            try await with(wire, .always(.stallBeforeHead)) { transport, make in
                let (request, receiver) = (make([]), RecordingReceiver())
                transport.cancel(request.id)
                transport.proceed(request.id)
                transport.start(request, receiver: receiver)
                transport.cancel(request.id)
                guard case .cancelled? = await receiver.finished().end else {
                    Issue.record("\(String(describing: receiver.record.end))")
                    return
                }
                transport.cancel(request.id)
                expectInOrder(receiver)
            }
        }

        @Test(
            arguments: Wire.allCases,
            [
                (Fault.closeBeforeHead, TransportFailure.Kind.closedBeforeHead), (.stallBeforeHead, .headTimedOut),
                (.shortBody(after: 5000), .bodyCut), (.cutChunked(after: 5000), .bodyCut),
                (.resetAfter(5000), .bodyCut),
            ])
        func failuresHaveTheirKinds(_ wire: Wire, _ fault: (Fault, TransportFailure.Kind)) async throws {
            try await with(wire, .always(fault.0)) { transport, make in
                let receiver = RecordingReceiver()
                transport.start(make([]), receiver: receiver)
                let record = await receiver.finished()
                expectInOrder(receiver)
                guard case .failed(let failure)? = record.end else {
                    Issue.record("\(fault.0.name): \(String(describing: record.end))")
                    return
                }
                #expect(failure.kind == fault.1, "\(fault.0.name)")
                #expect(Self.isRight(record.body), "the bytes before the failure are right")
            }
        }

        @Test(arguments: Wire.allCases) func aLateEndIsTold(_ wire: Wire) async throws {
            try await with(wire, rate: 2_000_000) { transport, make in
                let late = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .milliseconds(50)) })
                transport.start(make([]), receiver: late)
                #expect(await late.finished().lateCount == 1)
                let inTime = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .seconds(30)) })
                transport.start(make([]), receiver: inTime)
                #expect(await inTime.finished().lateCount == 0)
                expectInOrder(late)
                expectInOrder(inTime)
            }
        }

        @Test(arguments: Wire.allCases) func shutdownEndsAll(_ wire: Wire) async throws {
            try await with(wire, .always(.stall(after: 1000))) { transport, make in
                let receivers = (0..<3).map { _ in RecordingReceiver() }
                for receiver in receivers { transport.start(make([]), receiver: receiver) }
                for receiver in receivers { await receiver.until { !$0.body.isEmpty } }
                await transport.shutdown()
                for receiver in receivers {
                    guard case .cancelled? = receiver.record.end else {
                        Issue.record("\(String(describing: receiver.record.end))")
                        continue
                    }
                    expectInOrder(receiver)
                }
            }
        }
    }
}
