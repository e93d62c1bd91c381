/// A scheme for links that expire and that a signature protects. A link that is signed again has other values of these
/// parameters and leads to the same file.
struct SignatureScheme: Hashable, Sendable {
    /// The name, which is part of the digest that files on disk store.
    let name: String
    /// The parameters that each link of the scheme has, in lower case.
    let required: Set<String>
    /// The other parameters of the scheme, in lower case. Parameters that change the response are not among them.
    var optional: Set<String> = []

    /// Returns whether a parameter belongs to the scheme. `name` is in lower case.
    func contains(_ name: String) -> Bool { required.contains(name) || optional.contains(name) }

    /// The known schemes. If a link is complete in two of them, the first one counts.
    static let all: [SignatureScheme] = [
        // https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
        SignatureScheme(
            name: "s3-v4",
            required: [
                "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders",
                "x-amz-signature",
            ], optional: ["x-amz-security-token", "x-amz-content-sha256"]),
        // https://docs.aws.amazon.com/AmazonS3/latest/userguide/RESTAuthentication.html
        SignatureScheme(
            name: "s3-v2", required: ["awsaccesskeyid", "expires", "signature"], optional: ["x-amz-security-token"]),
        // https://cloud.google.com/storage/docs/authentication/canonical-requests
        SignatureScheme(
            name: "google-v4",
            required: [
                "x-goog-algorithm", "x-goog-credential", "x-goog-date", "x-goog-expires", "x-goog-signedheaders",
                "x-goog-signature",
            ]),
        // https://cloud.google.com/storage/docs/access-control/signed-urls-v2
        SignatureScheme(name: "google-v2", required: ["googleaccessid", "expires", "signature"]),
        // https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-signed-urls.html
        SignatureScheme(
            name: "cloudfront-custom", required: ["policy", "signature", "key-pair-id"], optional: ["hash-algorithm"]),
        SignatureScheme(
            name: "cloudfront-canned", required: ["expires", "signature", "key-pair-id"], optional: ["hash-algorithm"]),
        // https://learn.microsoft.com/rest/api/storageservices/create-account-sas
        SignatureScheme(
            name: "azure-account", required: ["sv", "ss", "srt", "sp", "se", "sig"],
            optional: ["st", "spr", "sip", "ses"]),
        // https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
        SignatureScheme(
            name: "azure-delegation",
            required: ["sv", "sr", "sp", "se", "skoid", "sktid", "skt", "ske", "sks", "skv", "sig"],
            optional: ["st", "spr", "sip", "ses", "sdd", "saoid", "suoid", "scid"]),
        // https://learn.microsoft.com/rest/api/storageservices/create-service-sas
        SignatureScheme(
            name: "azure-service", required: ["sv", "sr", "sp", "se", "sig"],
            optional: ["st", "spr", "sip", "ses", "si", "sdd"]),
        SignatureScheme(
            name: "azure-policy", required: ["sv", "sr", "si", "sig"],
            optional: ["st", "se", "sp", "spr", "sip", "ses", "sdd"]),
        // https://www.alibabacloud.com/help/en/oss/developer-reference/signature-version-4-recommend
        SignatureScheme(
            name: "oss-v4",
            required: [
                "x-oss-signature-version", "x-oss-credential", "x-oss-date", "x-oss-expires", "x-oss-signature",
            ], optional: ["x-oss-security-token", "x-oss-additional-headers"]),
        // https://www.alibabacloud.com/help/en/oss/developer-reference/add-signatures-to-urls
        SignatureScheme(
            name: "oss-v1", required: ["ossaccesskeyid", "expires", "signature"], optional: ["security-token"]),
        // https://techdocs.akamai.com/property-mgr/docs/auth-token-2-0-ver
        SignatureScheme(name: "akamai-hdnea", required: ["hdnea"]),
        SignatureScheme(name: "akamai-hdnts", required: ["hdnts"]),
        SignatureScheme(name: "akamai-hdntl", required: ["hdntl"]),
        // https://laravel.com/docs/urls#signed-urls
        SignatureScheme(name: "laravel", required: ["signature", "expires"]),
        // Schemes without a published specification: a signature beside the time at which it expires.
        SignatureScheme(name: "sig-expires", required: ["sig", "expires"]),
        SignatureScheme(name: "sig-expire", required: ["sig", "expire"]),
        SignatureScheme(name: "hmac-exp", required: ["hmac", "exp"]),
        SignatureScheme(name: "hmac-expires", required: ["hmac", "expires"]),
        SignatureScheme(name: "hmac-expire", required: ["hmac", "expire"]),
    ]

    /// Returns the first scheme whose required parameters a link contains; `nil` if no scheme is complete.
    ///
    /// - Parameter names: the names of the parameters of the link, in lower case.
    static func complete(in names: Set<String>) -> SignatureScheme? {
        all.first { $0.required.isSubset(of: names) }
    }
}
