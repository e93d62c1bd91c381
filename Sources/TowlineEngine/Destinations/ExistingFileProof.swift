internal import TowlineCore

/// An existing file whose checksum must be computed to decide whether it is the requested file. A class, so that a
/// transfer without one stays small.
final class ExistingFileProof: Sendable {
    let place: Place
    let checksum: Checksum
    let length: Int64
    /// The response that needs the destination, which is being prepared; `nil` before the first request.
    let plan: PreparePlan?
    /// `true` if the file is already known to be a finished download of the same URL.
    let isKnown: Bool

    init(place: Place, checksum: Checksum, length: Int64, plan: PreparePlan?, isKnown: Bool) {
        self.place = place
        self.checksum = checksum
        self.length = length
        self.plan = plan
        self.isKnown = isKnown
    }
}
