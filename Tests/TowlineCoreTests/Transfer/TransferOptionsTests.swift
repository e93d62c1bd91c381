import Foundation
import Testing

@testable import TowlineCore

/// Tests the JSON form and the ranges of the options of a transfer.
struct TransferOptionsTests {
    private typealias Keys = TransferOptions.CodingKeys

    /// Options without a default value.
    private static var other: TransferOptions {
        var options = TransferOptions()
        options.connections = 3
        options.rateLimit = 4000
        options.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 7, count: 32))
        options.existing = .rename
        options.stallTimeout = .seconds(12)
        options.maximumTries = 5
        options.retryWait = .milliseconds(1300)
        options.maximumWait = .seconds(86_401)
        options.retryStatuses = [404, 403]
        options.maximumRedirects = 0
        options.maximumSize = 1 << 40
        options.allowsDowngrade = true
        options.usesHTTP1Only = true
        options.isSequential = true
        options.allowsUnsafeResume = true
        options.ignoresServerChecksums = true
        options.acceptsWebPages = true
        return options
    }

    private static func decode(_ json: String) throws -> TransferOptions {
        try JSONDecoder().decode(TransferOptions.self, from: Data(json.utf8))
    }

    @Test func everyOptionIsEncodedAndDecoded() throws {
        for (value, standard) in zip(
            Mirror(reflecting: Self.other).children, Mirror(reflecting: TransferOptions()).children)
        {
            #expect("\(value.value)" != "\(standard.value)", "\(value.label ?? ""): set another value in this test")
        }
        #expect(Mirror(reflecting: Self.other).children.count == Keys.allCases.count)
        let json = try JSONEncoder().encode(Self.other)
        let members = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
        #expect(Set(members.keys) == Set(Keys.allCases.map(\.rawValue)))
        #expect(try JSONDecoder().decode(TransferOptions.self, from: json) == Self.other)
        try Self.other.validate()
    }

    @Test func defaultsAreNotEncoded() throws {
        #expect(String(decoding: try JSONEncoder().encode(TransferOptions()), as: UTF8.self) == "{}")
        #expect(try Self.decode("{}") == TransferOptions())
        try TransferOptions().validate()
    }

    @Test(arguments: [
        (#"{"connections":0}"#, "invalid number of connections 0: expected 1 to 128"),
        (#"{"connections":129}"#, "invalid number of connections 129: expected 1 to 128"),
        (#"{"rateLimit":-1}"#, "rateLimit: invalid value, expected 0 (no limit) or a positive number"),
        (#"{"stallTimeout":0.5}"#, "stallTimeout: invalid value, expected 1 to 86400"),
        (#"{"stallTimeout":1e300}"#, "stallTimeout: invalid value, expected 1 to 86400"),
        (#"{"maximumTries":-1}"#, "maximumTries: invalid value, expected 0 to 9223372036854775807"),
        (#"{"maximumSize":-1}"#, "maximumSize: invalid value, expected 0 to 9223372036854775807"),
        (#"{"retryWait":-1e300}"#, "retryWait: invalid value, expected 0.001 to 86400"),
        (#"{"maximumWait":31622401,"maximumTries":1}"#, "maximumWait: invalid value, expected 0.001 to 31622400"),
        (#"{"maximumWait":1}"#, "maximumWait: needs maximumTries"),
        (#"{"retryStatuses":[404,407]}"#, "retryStatuses: invalid value, expected 202 or 400 to 599, except 407"),
        (#"{"maximumRedirects":101}"#, "maximumRedirects: invalid value, expected 0 to 100"),
        (#"{"existing":"ask"}"#, "existing: invalid value, expected fail, overwrite, rename, skip or update"),
        (#"{"checksum":"md5:12"}"#, "invalid md5 checksum: expected exactly 32 hexadecimal digits"),
    ]) func invalidValuesAreRefused(_ json: String, _ message: String) {
        let error = #expect(throws: TowlineError.self) { try Self.decode(json).validate() }
        #expect(error?.code == .unusableOption && error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }
}
