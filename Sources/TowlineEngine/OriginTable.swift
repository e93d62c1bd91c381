internal import TowlineCore

/// A dictionary from the origin of a URL (`scheme://host:port`) to a value. A second lookup of the same origin needs no
/// hash of its name: in a list of small files nearly all lookups are for the same origin.
struct OriginTable<Value> {
    private var indices: [HTTPURL.Origin: Int] = [:]
    /// The origin of each row. Separate from the values, because a comparison with an element of one array with both
    /// would copy both.
    private var origins: [HTTPURL.Origin] = []
    private var values: [Value] = []
    /// The row that the last lookup found, which the next lookup tries first.
    private var last = 0

    /// The number of origins in the table.
    var count: Int { origins.count }

    /// The origins with their values.
    var all: [(origin: HTTPURL.Origin, value: Value)] { Array(zip(origins, values)) }

    /// Returns the value of an origin; `nil` if the table has no value for it.
    mutating func value(of origin: HTTPURL.Origin) -> Value? { find(origin).map { values[$0] } }

    /// Changes the value of an origin with `body` and returns its result. If the table has no value for the origin,
    /// first adds `added`; if that is `nil`, too, returns `nil` without a change.
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

    /// Removes the value of an origin. The last row of the table moves into the free row.
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
