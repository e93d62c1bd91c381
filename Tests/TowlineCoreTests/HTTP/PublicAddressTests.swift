import Foundation
import Testing
import TowlineCore

@Suite("Public addresses") struct PublicAddressTests {
    private func bytes(_ text: String) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &buffer) == 1 { return Array(buffer.prefix(4)) }
        return inet_pton(AF_INET6, text, &buffer) == 1 ? buffer : []
    }

    @Test(
        "private, local and reserved ones are not",
        arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1",
            "127.255.0.9", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1",
            "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1",
            "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1",
            "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1",
        ])
    func special(_ text: String) { #expect(!PublicAddress.isPublic(bytes(text))) }

    @Test(
        "all others are",
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
            "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
            "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1", "2001:200::1", "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ])
    func ordinary(_ text: String) { #expect(PublicAddress.isPublic(bytes(text))) }

    @Test(
        "addresses of this machine and of its IPv6 networks are not",
        arguments: [
            ("11.0.0.1", false), ("::ffff:11.0.0.1", false), ("64:ff9b::b00:1", false), ("11.0.0.2", true),
            ("2a00:1::5", false), ("2a00:1::99", false), ("2a00:1:0:1::5", true), ("2a00:2::7", false),
            ("2a00:2::8", true),
            ("10.0.0.1", false),
        ])
    func local(_ text: String, _ isPublic: Bool) {
        let local = [("11.0.0.1", 24), ("2a00:1::5", 64), ("2a00:2::7", 128)].map {
            PublicAddress.Local(bytes: bytes($0), prefix: $1)
        }
        #expect(PublicAddress.isPublic(bytes(text), beside: local) == isPublic)
    }

    @Test("bytes that are not an address are not public") func nothing() {
        #expect(!PublicAddress.isPublic([]))
        #expect(!PublicAddress.isPublic([1, 1, 1]))
    }
}
