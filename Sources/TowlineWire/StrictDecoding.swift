/// A coding key for any field name.
private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension Decoder {
    /// Returns a container that allows only the known fields, so that a misspelt field is an error.
    ///
    /// - Parameter others: fields that the container does not decode, but allows.
    /// - Throws: `DecodingError.dataCorrupted` for an unknown field.
    func strictContainer<Key: CodingKey & CaseIterable>(
        _ type: Key.Type, besides others: [any CodingKey] = []
    ) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue) + others.map(\.stringValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
            throw DecodingError.dataCorrupted(
                .init(codingPath: codingPath, debugDescription: "unknown field '\(key.stringValue.prefix(40))'"))
        }
        return try container(keyedBy: type)
    }
}

extension Wire {
    /// A JSON object without fields.
    package struct NoFields: Decodable {
        private enum CodingKeys: CodingKey, CaseIterable {}

        /// Decodes the object. Throws `DecodingError` for any field.
        package init(from decoder: any Decoder) throws { _ = try decoder.strictContainer(CodingKeys.self) }
    }

    /// The change of one field in a PATCH request.
    package enum Update<Value: Hashable & Sendable & Codable>: Hashable, Sendable {
        /// The field is absent: keep the value.
        case keep
        /// The field is `null`: remove the value.
        case clear
        /// The field has a value: set it.
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
