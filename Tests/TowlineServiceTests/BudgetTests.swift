import Testing

@testable import TowlineService

/// The limit on memory that clients share.
@Suite struct BudgetTests {
    @Test func aBudgetIsNeverExceeded() {
        let budget = BodyBudget(limit: 10)
        #expect(budget.take(6) && !budget.take(5) && budget.take(4) && !budget.take(1))
        budget.giveBack(6)
        #expect(budget.take(6) && !budget.take(1))
    }
}
