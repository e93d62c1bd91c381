/// A part of a message that names an option of a download in neutral words: an app, a web page and a command line have
/// different names for it. A program may add its own name after these words.
package enum Remedy: String, CaseIterable, Sendable, CustomStringConvertible {
    case checksum = "give the checksum of the file"
    case unsafeResume = "allow a resume without proof"
    case ignoredChecksums = "ignore the server's checksums"
    case unencrypted = "allow unencrypted connections"
    case moreRedirects = "raise the limit of redirects"
    case anotherName = "choose another file name"
    case overwriting = "let the download overwrite the file"
    case ownName = "choose this file name yourself"
    case existing = "let the download overwrite it or use another name"
    case startingOver = "let the download start over with the new version"
    case acceptedChange = "accept whatever the server sends"
    case longerWait = "allow a longer pause"
    case headTimeout = "the time limit for the response"
    case largerFile = "raise the limit of the file size"
    case fileTarget = "download to a file"
    case wrongLength = "the server's Content-Length may be wrong"
    case ignoredLength = "the server's Content-Length is ignored"
    case retriedStatus = "a status to retry"
    case login = "give a user name and a password, or a token"
    case proxyLogin = "give them in the URL of the proxy"
    case webPages = "accept web pages"
    case clientCertificate = "the server requires a client certificate"
    case rejectedCertificate = "the server rejected the client certificate"
    case certificateFiles = "check the files of the certificate and of its key, and the password"
    case authorities = "give another file of trusted certificates"

    /// The words within a sentence.
    package var description: String { rawValue }

    /// The words at the beginning of a sentence.
    package var sentence: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
}
