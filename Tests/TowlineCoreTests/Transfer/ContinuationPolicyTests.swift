import Testing
import TowlineCore

@Suite("A URL at which an unfinished download may resume")
struct ContinuationPolicyTests {
    @Test(
        "has the same path on any host, or the user vouches for it",
        arguments: [
            ("http://a.example/d/image.img", true), ("https://b.example:8443/d/image.img", true),
            ("http://a.example/d/image.img?ticket=1", true), ("http://a.example/d/image-2.img", false),
            ("http://a.example/e/image.img", false), ("http://a.example/d/Image.img", false),
            ("http://a.example/", false), ("no URL", false),
        ])
    func paths(_ source: String, _ isSame: Bool) throws {
        let url = try HTTPURL(parsing: "http://a.example/d/image.img")
        #expect(ContinuationPolicy.isSame(source, as: url, isVouchedFor: false) == isSame)
        #expect(ContinuationPolicy.isSame(source, as: url, isVouchedFor: true))
    }
}
