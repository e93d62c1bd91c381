import Testing

@testable import TowlineCore

@Suite("Which URL is which file") struct LinkIdentityTests {
    private func link(_ query: String, path: String = "/f") throws -> LinkIdentity {
        LinkIdentity(try HTTPURL(parsing: "https://h.example\(path)?\(query)"))
    }

    @Test(
        "a link that is signed again",
        arguments: [
            (
                "X-Amz-Algorithm=A&X-Amz-Credential=1&X-Amz-Date=1&X-Amz-Expires=9&X-Amz-SignedHeaders=host&X-Amz-Signature=1",
                "X-Amz-Algorithm=A&X-Amz-Credential=2&X-Amz-Date=2&X-Amz-Expires=8&X-Amz-SignedHeaders=host&X-Amz-Signature=2"
                    + "&X-Amz-Security-Token=3"
            ),
            ("AWSAccessKeyId=1&Signature=1&Expires=1", "AWSAccessKeyId=2&Signature=2&Expires=2"),
            (
                "X-Goog-Algorithm=1&X-Goog-Credential=1&X-Goog-Date=1&X-Goog-Expires=1&X-Goog-SignedHeaders=1&X-Goog-Signature=1",
                "X-Goog-Algorithm=1&X-Goog-Credential=1&X-Goog-Date=2&X-Goog-Expires=1&X-Goog-SignedHeaders=1&X-Goog-Signature=2"
            ),
            ("GoogleAccessId=1&Expires=1&Signature=1", "GoogleAccessId=1&Expires=2&Signature=2"),
            ("Policy=1&Signature=1&Key-Pair-Id=K", "Policy=2&Signature=2&Key-Pair-Id=K"),
            ("Expires=1&Signature=1&Key-Pair-Id=K", "Expires=2&Signature=2&Key-Pair-Id=K"),
            ("sv=1&sr=b&sp=r&se=1&sig=1", "sv=1&sr=b&sp=r&st=1&se=2&sig=2"),
            ("sv=1&sr=b&si=p&sig=1", "sv=1&sr=b&si=p&sig=2"),
            ("sv=1&ss=b&srt=o&sp=r&se=1&sig=1", "sv=1&ss=b&srt=o&sp=r&se=2&sig=2"),
            ("OSSAccessKeyId=1&Expires=1&Signature=1", "OSSAccessKeyId=2&Expires=2&Signature=2&security-token=3"),
            (
                "x-oss-signature-version=V&x-oss-credential=1&x-oss-date=1&x-oss-expires=1&x-oss-signature=1",
                "x-oss-signature-version=V&x-oss-credential=1&x-oss-date=2&x-oss-expires=1&x-oss-signature=2"
            ),
            ("hdnea=1", "hdnea=2"), ("hdnts=1", "hdnts=2"), ("hdntl=1", "hdntl=2"),
            ("expires=1&signature=1", "expires=2&signature=2"), ("sig=1&expire=1", "sig=2&expire=2"),
        ])
    func signedAgain(_ first: String, _ second: String) throws {
        for common in ["", "a=1&", "key=1&"] {
            let (one, other) = (try link(common + first), try link(common + second))
            #expect(one.relation(to: one) == .same)
            #expect(one.relation(to: other) == .signedAgain && other.relation(to: one) == .signedAgain)
            #expect(one.group == other.group && !one.group.contains("key=1"))
            #expect(one.isAmbiguous == (common == "key=1&"))
            #expect(one.relation(to: try link("b=1&" + common + second)) == .different)
            #expect(one.relation(to: try link("key=2&" + second)) == .different)
            #expect(one.relation(to: try link(common + second, path: "/g")) == .different)
        }
    }

    @Test(
        "parameters that name a file",
        arguments: [
            "key", "token", "auth", "sig", "id", "api_key", "session", "signature", "hmac", "X-Amz-Signature", "policy",
            "access_token", "jwt", "__token__", "awsaccesskeyid",
        ])
    func names(_ name: String) throws {
        let (one, other) = (try link("\(name)=1"), try link("\(name)=2"))
        #expect(one.relation(to: other) == .different)
        #expect(one.needsDigest == (one.text == other.text))
        // Another parameter of a scheme does not complete the scheme.
        #expect(try link("\(name)=1&X-Amz-Date=1").relation(to: link("\(name)=2&X-Amz-Date=1")) == .different)
        #expect(try link("a=1").relation(to: link("a=1&\(name)=1")) == .different)
    }

    @Test("a fragment is no part of the URL") func fragment() throws {
        #expect(try link("a=1#x").relation(to: link("a=1#y")) == .same)
    }

    private struct Pair {
        var (first, second): ([String], [String])
        /// The names of the parameters in which both differ.
        var differing: Set<String>
    }

    /// Returns the parameters of two URLs: those of a scheme and others, some of them changed, added or removed.
    private func pair(_ random: inout some RandomNumberGenerator) -> Pair {
        let scheme = SignatureScheme.all.randomElement(using: &random) ?? SignatureScheme.all[0]
        var names = Array(scheme.required) + scheme.optional.filter { _ in Bool.random(using: &random) }
        if Int.random(in: 0..<4, using: &random) == 0 { names.removeLast() }
        if Int.random(in: 0..<4, using: &random) == 0 {
            names += SignatureScheme.all.randomElement(using: &random)?.required ?? []
        }
        names += ["key", "id", "token", "a", "versionId"].filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
        let mostChanges = Int.random(in: 0...3, using: &random)
        let changed = Set(names.shuffled(using: &random).prefix(mostChanges))
        var pair = Pair(first: [], second: [], differing: changed)
        for name in Set(names).shuffled(using: &random) {
            let spelled = Bool.random(using: &random) ? name : name.uppercased()
            pair.first.append("\(spelled)=1")
            if !changed.contains(name) { pair.second.append("\(spelled)=1") }
            if changed.contains(name), Bool.random(using: &random) { pair.second.append("\(spelled)=2") }
        }
        return pair
    }

    @Test("only the parameters of one scheme that is complete in both URLs differ in a link that is signed again")
    func signedAgainOnlyWithinAScheme() throws {
        var random = SystemRandomNumberGenerator()
        var counts: [LinkRelation: Int] = [:]
        func names(_ parameters: [String]) -> Set<String> {
            Set(parameters.map { $0.prefix { $0 != "=" }.lowercased() })
        }
        for _ in 0..<20_000 {
            let pair = pair(&random)
            let (first, second) = (pair.first.joined(separator: "&"), pair.second.joined(separator: "&"))
            let relation = try link(first).relation(to: link(second))
            counts[relation, default: 0] += 1
            let common = names(pair.first).intersection(names(pair.second))
            let isWithin = SignatureScheme.all.contains { scheme in
                scheme.required.isSubset(of: common) && pair.differing.allSatisfy(scheme.contains)
            }
            #expect(relation != .signedAgain || isWithin, "\(first) \(second)")
            #expect((relation == .same) == pair.differing.isEmpty, "\(first) \(second)")
            // If the URLs have one scheme only, the reverse is true as well.
            let isSingle = SignatureScheme.all.count { $0.required.isSubset(of: names(pair.first)) } == 1
            if isSingle, isWithin, !pair.differing.isEmpty {
                #expect(relation == .signedAgain, "\(first) \(second)")
            }
        }
        #expect(counts[.signedAgain, default: 0] > 1000 && counts[.different, default: 0] > 1000)
    }

    @Test("a URL that a file stores", arguments: [true, false])
    func stored(_ hasSameText: Bool) throws {
        let (plain, keyed, signed) = (try link("a=1"), try link("key=1"), try link("hdnea=1"))
        for link in [plain, keyed, signed] {
            func relation(_ match: LinkIdentity.DigestMatch?, hasSameGroup: Bool = false) -> LinkRelation {
                link.relation(stored: match, hasSameText: hasSameText, hasSameGroup: hasSameGroup)
            }
            #expect(relation(.exact) == .same && relation(.unsigned) == .signedAgain)
            // Without secrets, such as after their removal, the URL cannot be compared with the digest.
            #expect(relation(.some(.none)) == (hasSameText && link == plain ? .unknown : .different))
            #expect(relation(nil) == (hasSameText ? link == keyed ? .unknown : .same : .different))
            if !hasSameText {
                #expect(relation(nil, hasSameGroup: true) == (link == signed ? .signedAgain : .different))
            }
        }
    }
}
