import Foundation

/// A certificate authority for a test, and certificates for the loopback address.
package struct Certificates {
    package let folder: TemporaryFolder
    package var authority: String { folder.path + "/authority.pem" }

    package init(in folder: TemporaryFolder) throws {
        self.folder = folder
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=Towline test authority",
            ]
                + ["-keyout", folder.path + "/authority.key", "-out", authority])
        try issue("good", host: "IP:127.0.0.1,DNS:localhost")
        try issue("other-host", host: "DNS:other.example")
        try issue("expired", host: "IP:127.0.0.1", days: "-1")
        try issue("no-key-id", host: "IP:127.0.0.1", extensions: "authorityKeyIdentifier=none\n")
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=127.0.0.1",
            ]
                + ["-addext", "subjectAltName=IP:127.0.0.1"]
                + ["-keyout", folder.path + "/self-signed.key", "-out", folder.path + "/self-signed.pem"])
    }

    private func issue(_ name: String, host: String, days: String = "2", extensions: String = "") throws {
        let base = folder.path + "/" + name
        let file = try folder.write(name + ".ext", extensions)
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=\(name)",
                "-addext", "subjectAltName=\(host)",
            ]
                + ["-keyout", base + ".key", "-out", base + ".csr"])
        try ServerProgram.run(
            Programs.openssl,
            ["x509", "-req", "-in", base + ".csr", "-CA", authority, "-CAkey", folder.path + "/authority.key"]
                + ["-CAcreateserial", "-days", days, "-copy_extensions", "copy", "-out", base + ".pem"]
                + (extensions.isEmpty ? [] : ["-extfile", file]))
    }
}
