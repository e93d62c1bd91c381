/// A member's name, whatever it is.
private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension Decoder {
    /// The members of an object that has no others: a misspelt option must not be taken for one that was not given.
    func strictContainer<Key: CodingKey & CaseIterable>(_ type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
            throw DecodingError.dataCorrupted(
                .init(codingPath: codingPath, debugDescription: "there is no member \(key.stringValue.prefix(40))"))
        }
        return try container(keyedBy: type)
    }
}

extension Wire {
    /// What a PATCH says of a member.
    package enum Update<Value: Hashable & Sendable & Codable>: Hashable, Sendable {
        /// Nothing: it stays.
        case keep
        /// `null`.
        case clear
        /// A value.
        case set(Value)
    }
}

extension KeyedDecodingContainer {
    func update<Value>(_ key: Key) throws -> Wire.Update<Value> {
        guard contains(key) else { return .keep }
        return try decodeNil(forKey: key) ? .clear : .set(try decode(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    mutating func encode<Value>(_ update: Wire.Update<Value>, _ key: Key) throws {
        switch update {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
