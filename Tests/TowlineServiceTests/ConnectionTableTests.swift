import Testing

@testable import TowlineService

/// Which connection is closed when a listener is full: values, no sockets.
@Suite struct ConnectionTableTests {
    /// Strangers have 4 of 16 connections, authenticated connections have 8.
    private static let limit = 16

    @Test func aStrangerReplacesTheOldestStranger() {
        var table = ConnectionTable<Int>(limit: Self.limit)
        for number in 0..<4 { #expect(table.add(number) == nil) }
        #expect(table.add(4) == 0)
        // A request in progress, or one that ended a moment ago, does not protect a stranger.
        table.set(idle: false, 1)
        table.set(idle: true, 2)
        #expect(table.add(5) == 1)
        #expect(table.add(6) == 2)
    }

    @Test func noStrangerReplacesAnAuthenticatedConnection() {
        var table = ConnectionTable<Int>(limit: Self.limit)
        #expect(table.add(0) == nil)
        #expect(table.authenticate(0) == nil)
        for number in 1...100 { #expect(table.add(number) == (number > 4 ? number - 4 : nil)) }
    }

    @Test func aClosedConnectionMakesRoom() {
        var table = ConnectionTable<Int>(limit: Self.limit)
        for number in 0..<4 { #expect(table.add(number) == nil) }
        table.remove(2)
        #expect(table.add(4) == nil)
        #expect(table.add(5) == 0)
    }

    @Test func anAuthenticatedConnectionReplacesTheOneThatIsIdleForLongest() {
        var table = ConnectionTable<Int>(limit: Self.limit)
        for number in 0..<8 {
            #expect(table.add(number) == nil)
            #expect(table.authenticate(number) == nil)
        }
        table.set(idle: false, 0)
        table.set(idle: true, 1)
        #expect(table.add(8) == nil)
        #expect(table.authenticate(8) == 2)
        #expect(table.authenticate(8) == nil, "the connection is authenticated already")
        for number in [1, 3, 4, 5, 6, 7] { table.set(idle: false, number) }
        table.set(idle: false, 8)
        #expect(table.add(9) == nil)
        #expect(table.authenticate(9) == 9, "no other connection is idle")
    }

    /// Random events: the limits hold, and a connection is only closed if its kind is at its limit.
    @Test(arguments: 0..<50)
    func theLimitsHold(_ seed: UInt64) {
        var random = SplitMix(state: seed)
        var table = ConnectionTable<Int>(limit: Self.limit)
        // The same table in the simplest form: connections in the order of their arrival.
        var strangers: [Int] = []
        var authenticated: [Int] = []
        for number in 0..<2000 {
            let all = strangers + authenticated
            switch random.next() % 5 {
            case 0, 1:
                let victim = table.add(number)
                #expect(victim == (strangers.count == 4 ? strangers[0] : nil))
                strangers.removeAll { $0 == victim }
                strangers.append(number)
            case 2:
                guard let connection = all.randomElement(using: &random) else { continue }
                let victim = table.authenticate(connection)
                let isNew = strangers.contains(connection)
                #expect((victim != nil) == (isNew && authenticated.count == 8))
                #expect(victim.map { authenticated.contains($0) || $0 == connection } ?? true)
                guard isNew else { continue }
                strangers.removeAll { $0 == connection }
                authenticated.append(connection)
                authenticated.removeAll { $0 == victim }
            case 3:
                guard let connection = all.randomElement(using: &random) else { continue }
                table.set(idle: random.next() % 2 == 0, connection)
            default:
                guard let connection = all.randomElement(using: &random) else { continue }
                table.remove(connection)
                strangers.removeAll { $0 == connection }
                authenticated.removeAll { $0 == connection }
            }
            #expect(strangers.count <= 4 && authenticated.count <= 8)
        }
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }
}
