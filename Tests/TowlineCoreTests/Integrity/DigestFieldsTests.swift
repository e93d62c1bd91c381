import Testing

import TowlineCore

@Suite("Digests in responses")
struct DigestFieldsTests {
    private static let md5 = "1B2M2Y8AsgTpgAmY7PhCfg=="
    private static let sha1 = "2jmj7l5rSw0yVb/vlWAYkK/YBwk="
    private static let sha256 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    private static let sha512 =
        "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="

    private static let md5Text = "md5:d41d8cd98f00b204e9800998ecf8427e"
    private static let sha1Text = "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"
    private static let sha256Text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let sha512Text =
        "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
        + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"

    private func whole(_ status: Int, _ pairs: (String, String)...) -> [String] {
        DigestFields.wholeFile(ResponseHead(status: status, fields: HTTPFields(pairs))).map(\.description)
    }

    private func content(_ status: Int, _ pairs: (String, String)...) -> [String] {
        DigestFields.content(ResponseHead(status: status, fields: HTTPFields(pairs))).map(\.description)
    }

    @Test("Repr-Digest covers the whole, on a 206 too, and on nothing that carries no representation")
    func representation() {
        let field = ("Repr-Digest", "sha-256=:\(Self.sha256):, sha-512=:\(Self.sha512):")
        #expect(whole(200, field) == [Self.sha512Text, Self.sha256Text])
        #expect(whole(206, field) == [Self.sha512Text, Self.sha256Text])
        for status in [204, 301, 304, 404, 416, 503] { #expect(whole(status, field).isEmpty) }
        #expect(content(200, field).isEmpty)
        #expect(content(206, field).isEmpty)
        #expect(whole(206, field, ("Content-Encoding", "gzip")) == [Self.sha512Text, Self.sha256Text])
    }

    @Test("Content-Digest covers this message, and the whole on a 200")
    func content() {
        let field = ("Content-Digest", "sha-256=:\(Self.sha256):")
        #expect(content(206, field) == [Self.sha256Text])
        #expect(content(200, field) == [Self.sha256Text])
        #expect(whole(206, field).isEmpty)
        #expect(whole(200, field) == [Self.sha256Text])
        #expect(content(404, field).isEmpty)
    }

    @Test("A 206 that covers the whole file counts as a 200, and a 200 that names a part as a 206")
    func covering() {
        let all = ("Content-Range", "bytes 0-9/10")
        for part in ["bytes 0-8/10", "bytes 1-9/10", "bytes 0-9/*"] {
            for status in [200, 206] {
                #expect(whole(status, ("Content-Range", part), ("Content-MD5", Self.md5)).isEmpty)
                #expect(whole(status, ("Content-Range", part), ("x-amz-checksum-sha256", Self.sha256)).isEmpty)
            }
        }
        #expect(whole(206, all, ("Content-MD5", Self.md5)) == [Self.md5Text])
        #expect(content(206, all, ("Content-MD5", Self.md5)) == [Self.md5Text])
        #expect(whole(206, all, ("Content-Digest", "sha-256=:\(Self.sha256):")) == [Self.sha256Text])
        #expect(whole(206, all, ("x-amz-checksum-sha256", Self.sha256)) == [Self.sha256Text])
        #expect(whole(206, all, ("x-amz-checksum-sha256", Self.sha256 + "-3")).isEmpty)
    }

    @Test("x-ms-blob-content-md5 covers the stored blob, whatever range is sent")
    func azure() {
        let field = ("x-ms-blob-content-md5", Self.md5)
        #expect(whole(200, field) == [Self.md5Text])
        #expect(whole(206, ("Content-Range", "bytes 5-9/10"), field) == [Self.md5Text])
        #expect(whole(200, field, ("Content-Encoding", "gzip")).isEmpty)
        #expect(content(200, field).isEmpty)
    }

    @Test("X-Linked-Etag of 64 hexadecimal digits is the SHA-256 of the linked file")
    func linked() {
        let digits = String(Self.sha256Text.dropFirst("sha256:".count))
        func linked(_ tag: String, _ size: String?) -> LinkedChecksum? {
            let fields = [("X-Linked-Etag", tag)] + (size.map { [("X-Linked-Size", $0)] } ?? [])
            return DigestFields.linked(ResponseHead(status: 302, fields: HTTPFields(fields)))
        }
        #expect(linked("\"\(digits)\"", "7")?.checksum.description == Self.sha256Text)
        #expect(linked(digits, "7")?.length == 7)
        #expect(linked("\"\(digits)\"", nil) == nil)
        #expect(linked("\"\(digits)\"", "x") == nil)
        #expect(linked("\"\(String(repeating: "a", count: 40))\"", "7") == nil)
        #expect(linked("W/\"\(digits)\"", "7") == nil)
    }

    @Test("Each checksum has the name of its field")
    func names() {
        let head = ResponseHead(
            status: 200,
            fields: HTTPFields([
                ("repr-digest", "sha-256=:\(Self.sha256):"), ("content-md5", Self.md5),
                ("X-Amz-Checksum-Sha1", Self.sha1),
            ]))
        #expect(DigestFields.wholeFile(head).map(\.field) == ["Repr-Digest", "x-amz-checksum-sha1", "Content-MD5"])
    }

    @Test("Content-MD5 counts on a 200 that is not coded")
    func contentMD5() {
        let field = ("Content-MD5", Self.md5)
        #expect(whole(200, field) == [Self.md5Text])
        #expect(content(200, field) == [Self.md5Text])
        #expect(whole(206, field).isEmpty)
        #expect(content(206, field).isEmpty)
        #expect(whole(200, field, ("Content-Encoding", "gzip")).isEmpty)
        #expect(whole(200, field, ("Content-Encoding", "identity")) == [Self.md5Text])
        #expect(whole(200, field, ("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")).isEmpty)
    }

    @Test("Digest of RFC 3230")
    func legacy() {
        #expect(
            whole(206, ("Digest", "SHA-256=\(Self.sha256), md5=\(Self.md5),SHA=\(Self.sha1)"))
                == [Self.sha256Text, Self.sha1Text, Self.md5Text])
        #expect(whole(200, ("Digest", "crc32c=a72a4df")) == ["crc32c:0a72a4df"])
        #expect(whole(200, ("Digest", "unixsum=30637, adler32=03da0195, id-sha-256=\(Self.sha256)")).isEmpty)
        #expect(whole(200, ("Digest", "md5=\(Self.md5), md5=AAAAAAAAAAAAAAAAAAAAAA==")).isEmpty)
        #expect(whole(200, ("Digest", "md5=\(Self.md5)"), ("Digest", "md5=\(Self.md5)")) == [Self.md5Text])
    }

    @Test("x-goog-hash covers the stored object, so it counts only if the response is that object")
    func google() {
        let field = ("x-goog-hash", "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==")
        let expected = ["md5:3a393d7377617f182829554763015b1d", "crc32c:9f4df1e8"]
        #expect(whole(200, field) == expected)
        #expect(whole(206, field) == expected)
        #expect(whole(200, field, ("x-goog-stored-content-encoding", "identity")) == expected)
        #expect(whole(200, field, ("x-goog-stored-content-encoding", "gzip")).isEmpty)
        #expect(whole(200, field, ("Content-Encoding", "gzip")).isEmpty)
        #expect(
            whole(200, ("x-goog-hash", "crc32c=n03x6A=="), ("x-goog-hash", "md5=Ojk9c3dhfxgoKVVHYwFbHQ==")) == expected)
    }

    @Test("x-amz-checksum counts for an object uploaded in one go, on a 200")
    func amazon() {
        let field = ("x-amz-checksum-sha256", Self.sha256)
        #expect(whole(200, field) == [Self.sha256Text])
        #expect(whole(206, field).isEmpty)
        #expect(whole(200, ("x-amz-checksum-sha256", Self.sha256 + "-3")).isEmpty)
        #expect(whole(200, field, ("x-amz-checksum-type", "COMPOSITE")).isEmpty)
        #expect(whole(200, field, ("x-amz-checksum-type", "FULL_OBJECT")) == [Self.sha256Text])
        #expect(whole(200, field, ("Content-Encoding", "gzip")).isEmpty)
        #expect(
            whole(200, ("x-amz-checksum-crc32c", "n03x6A=="), ("x-amz-checksum-sha1", Self.sha1))
                == [Self.sha1Text, "crc32c:9f4df1e8"])
    }

    @Test("An ETag is never a checksum, and the same checksum counts once")
    func others() {
        #expect(whole(200, ("ETag", "\"d41d8cd98f00b204e9800998ecf8427e\"")).isEmpty)
        #expect(
            whole(200, ("Repr-Digest", "sha-256=:\(Self.sha256):"), ("Digest", "sha-256=\(Self.sha256)"))
                == [Self.sha256Text])
    }

    @Test(
        "A malformed Repr-Digest is ignored whole (RFC 8941 §4.2)",
        arguments: [
            "", "sha-256", "sha-256=", "sha-256=\(sha256)", "sha-256=:\(sha256)", "sha-256=\"\(sha256)\"",
            "SHA-256=:\(sha256):",
            "sha-256=:\(sha256):,", ",sha-256=:\(sha256):", "sha-256=:\(sha256): sha-512=1", "sha-256=:\(sha256):;",
            "sha-256 =:\(sha256):",
            "sha-256=:\(sha256.dropLast()):", "sha-256=:\(sha256)=:", "sha-256=:\(sha256.replacing("U=", with: "V=")):",
            "sha-256=:\(sha256.replacing("+", with: "-")):", "sha-256=: \(sha256):", "sha-256=:\(md5):", "sha-256=::",
            "sha-256=(:\(sha256):)", "sha-256=:\(sha256):, x=?2", "sha-256=:\(sha256):, x=(1",
            "sha-256=:\(sha256):, x=\"",
        ])
    func malformed(value: String) {
        #expect(whole(200, ("Repr-Digest", value)).isEmpty)
    }

    @Test(
        "Other members and parameters that RFC 8941 allows",
        arguments: [
            "sha-256=:\(sha256):;a=1;b", "x=1.5, sha-256=:\(sha256):", "x=(a \"b\" :AA==:;q=1);r, sha-256=:\(sha256):",
            "x, sha-256=:\(sha256):", "x=?1 ,\tsha-256=:\(sha256):", "sha-256=:AAAA:, sha-256=:\(sha256):",
            "  sha-256=:\(sha256):  ",
            "*a_b.c-d=tok/en:x, sha-256=:\(sha256):",
        ])
    func wellFormed(value: String) {
        #expect(whole(200, ("Repr-Digest", value)) == [Self.sha256Text])
    }

    @Test("Several lines are one dictionary")
    func lines() {
        #expect(
            whole(200, ("Repr-Digest", "md5=:\(Self.md5):"), ("repr-digest", "sha-256=:\(Self.sha256):"))
                == [Self.sha256Text, Self.md5Text])
    }
}

@Suite("Checksums as text")
struct ChecksumParsingTests {
    @Test(
        "Names without case and dashes",
        arguments: [
            ("md5:D41D8CD98F00B204E9800998ECF8427E", "md5:d41d8cd98f00b204e9800998ecf8427e"),
            ("SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709", "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("sha:da39a3ee5e6b4b0d3255bfef95601890afd80709", "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("CRC32C:00000000", "crc32c:00000000"), ("crc-32c:E3069283", "crc32c:e3069283"),
            ("Sha-256:" + String(repeating: "0f", count: 32), "sha256:" + String(repeating: "0f", count: 32)),
            ("sha-256=" + String(repeating: "0F", count: 32), "sha256:" + String(repeating: "0f", count: 32)),
            (String(repeating: "0F", count: 32), "sha256:" + String(repeating: "0f", count: 32)),
            ("md5=d41d8cd98f00b204e9800998ecf8427e", "md5:d41d8cd98f00b204e9800998ecf8427e"),
            ("sha512:" + String(repeating: "A9", count: 64), "sha512:" + String(repeating: "a9", count: 64)),
        ])
    func accepted(text: String, expected: String) throws {
        let checksum = try Checksum(parsing: text)
        #expect(checksum.description == expected)
        #expect(try Checksum(parsing: checksum.description) == checksum)
        #expect(expected.hasSuffix(":" + checksum.hex))
    }

    @Test(
        "Refused",
        arguments: [
            "", "md5", "md5:", "md5:x", "md5:d41d8cd98f00b204e9800998ecf8427", "md5:d41d8cd98f00b204e9800998ecf8427e0",
            "md5:d41d8cd98f00b204e9800998ecf8427e00", "md5: d41d8cd98f00b204e9800998ecf8427e",
            "md5:d41d8cd98f00b204e9800998ecf8427g",
            "d41d8cd98f00b204e9800998ecf8427e", "=d41d8cd98f00b204e9800998ecf8427e",
            "md4:d41d8cd98f00b204e9800998ecf8427e", ":00000000",
            "crc32:00000000",
            "crc32c:4waSgw==", "sha256:d41d8cd98f00b204e9800998ecf8427e", "crc32c:0000000é",
        ])
    func refused(text: String) {
        let error = #expect(throws: TowlineError.self) { try Checksum(parsing: text) }
        #expect(error?.code == .unusableOption)
    }

    @Test(
        "RFC 4648 §10", arguments: [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")])
    func base64(text: String, expected: String) {
        #expect(Base64.decoded(Array(text.utf8)) == Array(expected.utf8))
    }

    @Test(
        "Base 64 that is not canonical",
        arguments: [
            "Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "=", "====", "Zg==Zg==", "Z===", "Zm 9v", "Zm9v\n", "-_-_",
        ])
    func notBase64(text: String) {
        #expect(Base64.decoded(Array(text.utf8)) == nil)
    }

    @Test("CRC-32C of RFC 3720 appendix B.4 and the usual check value")
    func crc32c() {
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(CRC32C.checksum("123456789".utf8) == 0xE306_9283)
    }
}
