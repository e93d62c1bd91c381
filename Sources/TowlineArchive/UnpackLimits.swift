import Glibc
internal import TowlineCore

/// The limits for the contents of an archive. Names and declared sizes in an archive are not trusted: entries and
/// bytes are counted during unpacking, and the first one over a limit ends the unpacking.
package struct UnpackLimits: Hashable, Sendable {
    /// The maximum number of files, links and directories, including parent directories without an entry of their own.
    package var entries = 500_000
    /// The maximum number of unpacked bytes, including the holes of sparse files.
    package var bytes: Int64 = 1 << 40
    /// The maximum number of unpacked bytes for each byte of the archive. Text rarely exceeds 50. A ratio above 1,000
    /// is a sign of an attack.
    package var ratio: Int64 = 200
    /// The number of bytes that are allowed at any ratio, because a few small files of zeros are harmless.
    package var ratioFreeBytes: Int64 = 64 << 20
    /// The maximum number of names in a path.
    package var depth = 100
    /// The CPU time that the process that reads an archive may use for any archive.
    package var processorTime = Duration.seconds(10)
    /// The CPU time for each MiB of the archive and of its unpacked bytes. A slow machine needs 0.2 s.
    package var processorTimePerMiB = Duration.seconds(1)

    /// Creates the default limits.
    package init() {}
}

/// A counter of unpacked entries and bytes that enforces the limits.
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

    /// Counts an entry. Throws `archiveRefused` if the limit is exceeded.
    mutating func addEntry() throws(TowlineError) {
        entries += 1
        guard entries > limits.entries else { return }
        throw .refusing(
            archive,
            "the downloaded archive was not unpacked because it contains more than \(limits.entries) files and "
                + "directories (the limit). If you trust the archive, unpack it with another program")
    }

    /// Counts bytes before they are written. Throws `archiveRefused` if a limit is exceeded.
    mutating func addBytes(_ count: Int64) throws(TowlineError) {
        let (sum, overflow) = bytes.addingReportingOverflow(count)
        bytes = overflow ? .max : sum
        try check(bytes)
    }

    /// Checks a number of unpacked bytes: those of the files, or those of the decompressed archive with its headers.
    /// Throws `archiveRefused` if a limit is exceeded.
    func check(_ bytes: Int64) throws(TowlineError) {
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
    /// Returns the error for an archive that is refused because of its contents.
    static func refusing(_ archive: String, _ reason: String) -> TowlineError {
        TowlineError(.archiveRefused, "\(archive): \(reason)")
    }

    /// Returns the error for an archive that cannot be read.
    static func damaged(_ archive: String, _ reason: String) -> TowlineError {
        TowlineError(.archiveDamaged, "\(archive): \(reason)")
    }

    /// Returns the error for a failed system call during unpacking.
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

    /// Returns the error for a failed system call, with a complete message.
    static func unpackingFailed(_ message: String, _ number: Int32) -> TowlineError {
        TowlineError(unpackingCode(number), message, systemError: number)
    }

    /// Returns the system's description of an error number.
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
