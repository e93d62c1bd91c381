/// The choice for a destination name that is taken (`--if-exists`).
package enum ExistingPolicy: String, Sendable, CaseIterable {
    /// Keep the existing file, and report the download as done.
    case skip
    /// Keep the existing file, and fail.
    case fail
    /// Replace the existing file once the new one is complete.
    case overwrite
    /// Give the new file a number: `NAME (1)` and so on.
    case rename
    /// Replace the existing file once the new one is complete, if the server has another version.
    case update

    /// Returns true if the new file may take the place of the existing file.
    package var replaces: Bool { self == .overwrite || self == .update }
}

/// Decides how a download treats the file or the unfinished download that its destination already has.
///
/// A pure function of three things: what exists, the user's choice, and whether a checksum can identify the file.
package struct DestinationPolicy: Hashable, Sendable {
    /// An existing file or unfinished download.
    package enum Occupant: Hashable, Sendable {
        /// An unfinished download. `isOurs` if this download may resume it (`ContinuationPolicy`).
        case unfinished(isOurs: Bool)
        /// A finished download. `isThis` if it came from the same URL and is the version that the server offers, as far
        /// as that is known.
        case finished(isThis: Bool)
        /// Anything else. `isFile` if it is a regular file, whose bytes can be read.
        case other(isFile: Bool)
    }

    /// The next step of the download.
    package enum Step: Hashable, Sendable {
        /// Download the file. An existing file is replaced when the new one is complete.
        case download
        /// Resume the unfinished download.
        case resume
        /// Resume the unfinished download, unless its final name is taken.
        case resumeIfNameIsFree
        /// Start over in place of the unfinished download of another URL.
        case replaceUnfinished
        /// Keep the existing file; nothing needs to be downloaded, because it is the same file.
        case keep
        /// Keep the existing file, whatever it is.
        case skip
        /// Ask the server whether it has another version than the existing file.
        case compare
        /// Read the existing file and compare its checksum. `isKnown` if it is a finished download of this URL.
        case prove(isKnown: Bool)
        /// Look for this download under the numbered names. If it is not there, read the existing file and compare its
        /// checksum (`elseProve`), or download under a numbered name.
        case findNumbered(elseProve: Bool)
        /// Fail with `destinationExists`.
        case refuse
    }

    /// The user's choice.
    package var existing: ExistingPolicy
    /// `true` if the user gave a checksum of the whole file.
    package var hasChecksum: Bool

    /// Creates a policy.
    package init(existing: ExistingPolicy, hasChecksum: Bool) {
        self.existing = existing
        self.hasChecksum = hasChecksum
    }

    /// Returns the next step.
    ///
    /// - Parameter isRefuted: `true` if the existing file was read and has another checksum.
    package func step(for occupant: Occupant, isRefuted: Bool = false) -> Step {
        switch occupant {
        case .unfinished(isOurs: false): existing == .overwrite ? .replaceUnfinished : .refuse
        case .unfinished(isOurs: true): existing == .fail || existing == .skip ? .resumeIfNameIsFree : .resume
        case .finished(isThis: true) where existing == .overwrite: .download
        case .finished(isThis: true) where !hasChecksum: existing == .update ? .compare : .keep
        case .finished(isThis: true) where !isRefuted: .prove(isKnown: true)
        case .finished: step(isReadable: true, isRefuted)
        case .other(let isFile): step(isReadable: isFile, isRefuted)
        }
    }

    /// Returns the step for something that is not known to be this download.
    private func step(isReadable: Bool, _ isRefuted: Bool) -> Step {
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
