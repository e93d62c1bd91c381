import Testing

/// The scenarios of the fault catalogue in memory, each alone and as a list of one, as `tow get` runs it
/// (`SmallFileRun`). Over real connections they run in the suites that define them.
@Suite("Scenarios in memory") struct SimulatedScenarioTests {
    static let all =
        RangeFaultTests.starting + RangeFaultTests.resuming + RefusedRangeTests.table + StatusFaultTests.table
        + RepresentationFaultTests.table + ConnectionFaultTests.passing + ConnectionFaultTests.failing
    static let simulable = all.filter(\.isSimulable)

    @Test(arguments: simulable, [false, true]) func scenario(_ scenario: Scenario, _ asList: Bool) async throws {
        try await scenario.simulate(asList: asList)
    }

    /// The other scenarios test how HTTP is parsed.
    @Test func mostCanBeSimulated() { #expect(Self.simulable.count * 10 >= Self.all.count * 7) }
}
