import Testing
import TowlineCore

@Suite("When a signed link ends")
struct LinkExpiryTests {
    private func end(_ query: String) throws -> Int64? {
        LinkExpiry.secondsSince1970(try HTTPURL(parsing: "https://files.example/a.iso" + query))
    }

    /// AWS: Authenticating Requests, Using Query Parameters (Signature Version 4).
    private static let amazon4 = """
        ?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4\
        _request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bb
        """
    /// AWS: Signing and authenticating REST requests (Signature Version 2).
    private static let amazon2 =
        "?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620"
    /// Google Cloud Storage: signed URLs, V4.
    private static let google = """
        ?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=example%40example-project.iam.gserviceaccount.com%2F2018\
        1026%2Fus-central1%2Fstorage%2Fgoog4_request&X-Goog-Date=20181026T181309Z&X-Goog-Expires=900\
        &X-Goog-SignedHeaders=host&X-Goog-Signature=247a2aa4
        """
    /// Amazon CloudFront: a URL with a canned policy.
    private static let cloudFront =
        "?color=red&size=medium&Expires=1357034400&Signature=nitfHRCrtziwO2HwPfWw&Key-Pair-Id=K2JCJMDEHXQW5F"
    /// Azure Storage: a service's shared access signature.
    private static let azure =
        "?sv=2015-04-05&st=2015-04-29T22%3A18%3A26Z&se=2015-04-30T02%3A23%3A26Z&sr=b&sp=rw&sig=Z%2FRHIX5X"

    @Test("the examples of the signature providers")
    func examples() throws {
        #expect(try end(Self.amazon4) == 1_369_440_000)
        #expect(try end(Self.amazon2) == 1_175_139_620)
        #expect(try end(Self.google) == 1_540_578_489)
        #expect(try end(Self.cloudFront) == 1_357_034_400)
        #expect(try end(Self.azure) == 1_430_360_606)
    }

    @Test("Azure's ways to write a time")
    func azureTimes() throws {
        #expect(try end("?se=2009-02-09&sig=x") == 1_234_137_600)
        #expect(try end("?se=2009-02-09T08:49Z&sig=x") == 1_234_169_340)
        #expect(try end("?se=2009-02-09T08:49:37Z&sig=x") == 1_234_169_377)
        #expect(try end("?se=2009-02-09T08:49:37.1234567Z&sig=x") == 1_234_169_377)
        #expect(try end("?se=2009-02-09T09:49:37%2B01:00&sig=x") == 1_234_169_377)
        #expect(try end("?se=2009-02-09T00:49:37-08:00&sig=x") == 1_234_169_377)
    }

    private static let endless: [String] = [
        "", "?", "?a=b", "?Expires=", "?Expires=3600", "?Expires=1175139620000", "?Expires=-1175139620",
        "?Expires=99999999999999999999", "?se=2009-02-09", "?se=2009-02-30&sig=x", "?se=2009-02-09T08:49&sig=x",
        "?se=2009-02-09T25:49Z&sig=x", "?se=2009-02-09T08:49:3&sig=x", "?se=2009-02-09T08:49:37&sig=x",
        "?se=2009-02-09T08:49:37%2B1:00&sig=x", "?X-Amz-Date=20130524T000000Z", "?X-Amz-Expires=86400",
        "?X-Amz-Date=20130524T000000Z&X-Amz-Expires=9223372036854775807",
        "?X-Amz-Date=20130524T000000Z&X-Goog-Expires=900", "?X-Amz-Date=%zz&X-Amz-Expires=900",
    ]

    @Test("queries without an expiry time", arguments: Self.endless)
    func none(query: String) throws {
        #expect(try end(query) == nil)
    }

    @Test("the earliest of several, whatever the case of the names; the first of a name given twice")
    func several() throws {
        #expect(try end("?expires=1500000000&se=2015-04-30T02:23:26Z&sig=x") == 1_430_360_606)
        #expect(try end("?x-amz-date=20130524T000000Z&x-amz-expires=1&Expires=1500000000") == 1_369_353_601)
        #expect(try end("?Expires=1500000000&Expires=1400000000") == 1_500_000_000)
    }

    @Test("no text makes it fail")
    func anything() throws {
        var generator = Generator(seed: 0x11)
        let alphabet = Array("0123456789TZ:-+.%2&=seigxamzdtepr ".utf8)
        for _ in 0..<5000 {
            let text = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
            }
            let tail = String(decoding: text, as: UTF8.self)
            for query in ["?se=\(tail)&sig=x", "?X-Amz-Expires=9&X-Amz-Date=\(tail)", "?\(tail)"] {
                guard let url = try? HTTPURL(parsing: "https://files.example/a" + query) else { continue }
                _ = LinkExpiry.secondsSince1970(url)
            }
        }
    }
}
