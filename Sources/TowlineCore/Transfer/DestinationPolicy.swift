/// Decides how a download treats the file or the unfinished download that its destination already has.
///
/// A pure function of four things: what exists, the user's choice, whether a checksum can identify the file, and who
/// chose the name.
package struct DestinationPolicy: Hashable, Sendable {
    /// An existing file or unfinished download under the destination name.
    package enum Occupant: Hashable, Sendable {
        /// An unfinished download. `isOurs`: this download may resume it (`ContinuationPolicy`).
        case unfinished(isOurs: Bool)
        /// A finished download. `isThis`: it came from the same URL and is the version that the server offers, as far
        /// as that is known.
        case finished(isThis: Bool)
        /// Any other file, directory or special file under the destination name. `isFile`: a regular file, whose bytes
        /// can be read, for example to compute a checksum.
        case other(isFile: Bool)
    }

    /// The next step of a download whose destination name is taken.
    package enum Step: Hashable, Sendable {
        /// Download the file. An existing file is replaced when the new one is complete.
        case download
        /// Resume the unfinished download with the bytes in its part file.
        case resume
        /// Resume the unfinished download, unless another file already has its final name.
        case resumeIfNameIsFree
        /// Download the file from the first byte, in place of the unfinished download of another URL.
        case replaceUnfinished
        /// Keep the existing file and report success without a download: it is the requested file.
        case keep
        /// Keep the existing file and report the download as done, although it may be another file.
        case skip
        /// Ask the server whether its version differs from the existing file. Download the file only if it does.
        case compare
        /// Read the existing file and compare its checksum with the user's. If they differ, `step(for:isRefuted:)`
        /// decides again. `isKnown`: the file is a finished download of this URL.
        case prove(isKnown: Bool)
        /// Look for this download under the numbered names, such as `NAME (1)`. If it is not there, read the existing
        /// file and compare its checksum (`elseProve`), or download under a numbered name.
        case findNumbered(elseProve: Bool)
        /// Fail with the error `destinationExists`, because another file has the name.
        case refuse
    }

    /// The user's choice for an existing file.
    package var existing: ExistingPolicy
    /// `true` if the user gave a checksum of the whole file, which can identify an existing file as the requested one.
    package var hasChecksum: Bool
    /// `true` if the user chose the name: as a file name, or as the last path component of the URL before any redirect.
    /// A name that the server chose replaces only a finished download of the same URL.
    package var isUsersName: Bool

    /// Creates a policy from the user's choice for existing files, whether a checksum was given, and who chose the name.
    package init(existing: ExistingPolicy, hasChecksum: Bool, isUsersName: Bool = true) {
        self.existing = existing
        self.hasChecksum = hasChecksum
        self.isUsersName = isUsersName
    }

    /// The policy for every file except a finished download of the same URL.
    package var forOtherFiles: ExistingPolicy { existing.forOtherFiles(isUsersName: isUsersName) }

    /// `true` if the unfinished download of another URL is replaced.
    package var replacesOtherParts: Bool { step(for: .unfinished(isOurs: false)) == .replaceUnfinished }

    /// Returns the next step of a download whose destination name is taken by `occupant`.
    ///
    /// - Parameter isRefuted: `true` if the existing file was read and its checksum differs from the user's.
    package func step(for occupant: Occupant, isRefuted: Bool = false) -> Step {
        switch occupant {
        case .unfinished(isOurs: false): forOtherFiles == .overwrite ? .replaceUnfinished : .refuse
        case .unfinished(isOurs: true): [.fail, .skip].contains(forOtherFiles) ? .resumeIfNameIsFree : .resume
        case .finished(isThis: true) where existing == .overwrite: .download
        case .finished(isThis: true) where !hasChecksum: existing == .update ? .compare : .keep
        case .finished(isThis: true) where !isRefuted: .prove(isKnown: true)
        case .finished(isThis: true): step(existing, isReadable: true, isRefuted)
        case .finished: step(forOtherFiles, isReadable: true, isRefuted)
        case .other(let isFile): step(forOtherFiles, isReadable: isFile, isRefuted)
        }
    }

    /// Returns the step for an existing file that is not the requested one as far as known. `isReadable`: it is a regular
    /// file.
    private func step(_ existing: ExistingPolicy, isReadable: Bool, _ isRefuted: Bool) -> Step {
        let isProvable = hasChecksum && isReadable && !isRefuted
        return switch existing {
        case .skip: .skip
        case .overwrite: .download
        // A file with another checksum is replaced without asking the server.
        case .update: isProvable ? .prove(isKnown: false) : isReadable && !hasChecksum ? .compare : .download
        case .rename: .findNumbered(elseProve: isProvable)
        case .fail: isProvable ? .prove(isKnown: false) : .refuse
        }
    }
}
