import Glibc
internal import TowlineCore

/// How much an archive may bring. Whoever publishes an archive chooses its names, its sizes and what it claims of
/// them; so everything is counted as it comes out, and the first thing too many ends the work.
package struct UnpackLimits: Hashable, Sendable {
    /// Files, links and directories, those included that an entry's path only mentions.
    package var entries = 500_000
    /// Bytes that come out, the holes of sparse files included.
    package var bytes: Int64 = 1 << 40
    /// Bytes that come out for each byte of the archive. Text rarely passes 50; what passes 1,000 is made to.
    package var ratio: Int64 = 200
    /// So many bytes are allowed whatever the ratio: a few small files of zeros are no attack.
    package var ratioFreeBytes: Int64 = 64 << 20
    /// Directories within directories.
    package var depth = 100

    /// The defaults.
    package init() {}
}

/// Counts what came out.
struct UnpackBudget {
    let limits: UnpackLimits
    let archive: String
    private let allowedBytes: Int64
    private(set) var entries = 0
    private(set) var bytes: Int64 = 0

    init(limits: UnpackLimits, archive: String, archiveLength: Int64) {
        self.limits = limits
        self.archive = archive
        let (byRatio, overflow) = archiveLength.multipliedReportingOverflow(by: limits.ratio)
        allowedBytes = min(limits.bytes, max(limits.ratioFreeBytes, overflow ? .max : byRatio))
    }

    /// One more name in the directory.
    mutating func addEntry() throws(TowlineError) {
        entries += 1
        guard entries > limits.entries else { return }
        throw .refusing(
            archive,
            "the downloaded archive was not unpacked because it contains more than \(limits.entries) files and "
                + "directories (the limit). If you trust the archive, unpack it with another program")
    }

    /// More bytes, about to be written.
    mutating func addBytes(_ count: Int64) throws(TowlineError) {
        let (sum, overflow) = bytes.addingReportingOverflow(count)
        bytes = overflow ? .max : sum
        guard bytes > allowedBytes else { return }
        if allowedBytes == limits.bytes {
            let limit = ByteCountText.format(limits.bytes)
            throw .refusing(
                archive,
                "the downloaded archive was not unpacked because its files would exceed \(limit) in total (the limit). "
                    + "If you trust the archive, unpack it with another program")
        }
        throw .refusing(
            archive,
            """
            the downloaded archive was not unpacked because its files would exceed \
            \(ByteCountText.format(allowedBytes)) (limit: \(limits.ratio) times the size of the archive, but at least \
            \(ByteCountText.format(limits.ratioFreeBytes))). If you trust the archive, unpack it with another program
            """)
    }
}

extension TowlineError {
    /// An archive that is not unpacked because of what it would do.
    static func refusing(_ archive: String, _ reason: String) -> TowlineError {
        TowlineError(.archiveRefused, "\(archive): \(reason)")
    }

    /// An archive that cannot be read.
    static func damaged(_ archive: String, _ reason: String) -> TowlineError {
        TowlineError(.archiveDamaged, "\(archive): \(reason)")
    }

    /// A call of the system that failed while unpacking.
    static func unpacking(_ action: String, _ path: String, _ number: Int32) -> TowlineError {
        let cause = "\(action) \(path): \(systemReason(number))"
        let message =
            switch unpackingCode(number) {
            case .diskFull: "the archive was not unpacked (\(cause)). Free some space and try again"
            case .diskPermission: "the archive was not unpacked (\(cause)). Check the permissions and try again"
            case .unusableDestination: "the archive was not unpacked (\(cause)). Check the path and try again"
            default: "the archive was not unpacked (\(cause)). Check the disk and try again"
            }
        return unpackingFailed(message, number)
    }

    /// The same, with the whole message.
    static func unpackingFailed(_ message: String, _ number: Int32) -> TowlineError {
        TowlineError(unpackingCode(number), message, systemError: number)
    }

    /// The system's words for an error number.
    static func systemReason(_ number: Int32) -> String { String(cString: strerror(number)) }

    private static func unpackingCode(_ number: Int32) -> Code {
        switch number {
        case ENOSPC, EDQUOT: .diskFull
        case EACCES, EPERM, EROFS: .diskPermission
        case ENOENT, ENOTDIR, ELOOP: .unusableDestination
        default: .diskFailure
        }
    }
}
