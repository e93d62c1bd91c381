public import Foundation
public import TowlineCore

/// Texts about an error for an alert of an app. They are in English; ``TowlineCore/TowlineError/code`` is the key for
/// translations.
extension TowlineError: LocalizedError, CustomDebugStringConvertible {
    /// The error message: what happened, with the file or URL, the reason and a remedy, the same text as `message`.
    public var errorDescription: String? { message }

    /// The kind of problem, such as a full disk, in one sentence, without the name of a file or server.
    public var failureReason: String? { Self.texts[code]?.reason }

    /// A suggestion to the user how to solve the problem, in one sentence; `nil` if no action helps.
    public var recoverySuggestion: String? { networkFailure.flatMap { Self.advice[$0] } ?? Self.texts[code]?.advice }

    /// The code, the message and the status code of the response. For an error that only the code of the app can
    /// prevent, also a hint for its developer.
    public var debugDescription: String {
        let status = status.map { " (HTTP status \($0))" } ?? ""
        return "\(code): \(message)\(status)" + (Self.developerHints[code].map { ". \($0)" } ?? "")
    }

    private static let developerHints: [Code: String] = [
        .closed: "The app called close() or released the last reference to the manager. Create a new Downloader"
    ]

    private static let texts: [Code: (reason: String, advice: String?)] = [
        .unusableURL: ("The link is not valid.", "Check the link."),
        .unusableHeader: ("A header field of the request is not valid.", "Correct the header field."),
        .unusableDestination: ("The folder cannot be used.", "Choose another folder."),
        .unusableOption: ("An option of the download is not valid.", "Correct the option."),
        .destinationExists: ("A file with this name already exists.", "Rename or remove the existing file."),
        .destinationBusy: ("Another download or program uses the file.", "Wait for it, or choose another name."),
        .diskFull: ("The disk is full.", "Free some space."),
        .diskPermission: ("The file cannot be written.", "Check the permissions of the folder."),
        .diskFailure: ("The disk reported an error.", "Check the disk, then start the download again."),
        .unsupportedJournal: ("A newer version of the program began this download.", "Update the program."),
        .changedOnServer: ("The file on the server has changed.", "Start the download again for the new file."),
        .checksumMismatch: ("The downloaded file is not the expected one.", "Check the checksum and the link."),
        .refusedByServer: ("The server refused the request.", "Check the link and the sign-in data."),
        .notFound: ("The server does not have the file.", "Check the link."),
        .redirectRefused: ("The server leads to a link that is not followed.", "Check the link."),
        .untrustedServer: ("The server's certificate is not trusted.", "Check the address and the clock."),
        .addressRefused: ("The link leads to a private network.", nil),
        .invalidResponse: ("The server sent a response that cannot be used.", "Try again later, or use another link."),
        .fileTooLarge: ("The file is larger than allowed.", nil),
        .transient: ("The network or the server failed.", "Start the download again; it continues where it stopped."),
        .lengthUnproven: ("The file may be incomplete.", "Start the download again."),
        .archiveRefused: ("The archive contains something that is not allowed.", nil),
        .archiveDamaged: ("The archive is damaged or of an unknown kind.", "Download it again."),
        .commandFailed: ("The program to run after the download failed.", "Correct the cause, then start it again."),
        .webhookFailed: ("The notification after the download failed.", "Check its link, then start it again."),
        .cancelled: ("The download was cancelled.", nil),
        .unknownDownload: ("The download is no longer in the list.", "Add the link again."),
        .illegalTransition: ("The download cannot do this now.", nil),
        .closed: ("The list of downloads is closed.", "Start the program again."),
        .registryBusy: ("Another program uses the list of downloads.", "Close the other program."),
        .registryFailure: ("The list of downloads cannot be read or written.", "Check the disk."),
        .unsupportedRegistry: ("A newer version of the program wrote the list of downloads.", "Update the program."),
        .optionConflict: (
            "The download is in the list with other options.", "Remove it from the list, then add it again."
        ),
        .followUpFailed: ("A step after the download failed.", "Correct the cause, then start the download again."),
    ]

    private static let advice: [NetworkFailure: String] = [
        .hostNotFound: "Check the address and the network connection.",
        .connectionFailed: "Check the network connection, or try again later.",
        .connectionTimedOut: "Check the network connection, or try again later.",
        .proxyFailed: "Check the settings of the proxy.",
        .clientCertificateRefused: "Check the certificate of this client.",
    ]
}
