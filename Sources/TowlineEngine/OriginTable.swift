internal import TowlineCore

/// Something for each of many origins, in which the one that was asked for last is found without hashing its name: in a
/// list of small files it is nearly always the same.
struct OriginTable<Value> {
    private var indices: [HTTPURL.Origin: Int] = [:]
    /// Row by row. Apart, because a comparison with what is in an array of both copies both.
    private var origins: [HTTPURL.Origin] = []
    private var values: [Value] = []
    /// The row that was asked for last.
    private var last = 0

    /// How many there are.
    var count: Int { origins.count }

    /// Everything in it.
    var all: [(origin: HTTPURL.Origin, value: Value)] { Array(zip(origins, values)) }

    /// What there is for an origin.
    mutating func value(of origin: HTTPURL.Origin) -> Value? { find(origin).map { values[$0] } }

    /// Changes what there is for an origin; where there is nothing, what is `added`, or nothing.
    @discardableResult
    mutating func change<Answer>(
        _ origin: HTTPURL.Origin, adding added: @autoclosure () -> Value? = nil, _ body: (inout Value) -> Answer
    ) -> Answer? {
        guard let index = find(origin) ?? added().map({ add(origin, $0) }) else { return nil }
        return body(&values[index])
    }

    private mutating func find(_ origin: HTTPURL.Origin) -> Int? {
        if last < origins.count, origins[last] == origin { return last }
        guard let index = indices[origin] else { return nil }
        last = index
        return index
    }

    private mutating func add(_ origin: HTTPURL.Origin, _ value: Value) -> Int {
        last = origins.count
        indices[origin] = last
        origins.append(origin)
        values.append(value)
        return last
    }

    /// Forgets what there is for an origin. The last row takes its place.
    mutating func remove(_ origin: HTTPURL.Origin) {
        guard let index = indices.removeValue(forKey: origin) else { return }
        let end = origins.count - 1
        origins.swapAt(index, end)
        values.swapAt(index, end)
        origins.removeLast()
        values.removeLast()
        if index < end { indices[origins[index]] = index }
    }
}
