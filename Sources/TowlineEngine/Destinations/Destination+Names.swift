internal import TowlineCore

/// The functions of `Destination` that number files with the same name in one directory: `NAME`, `NAME (1)` and so on.
extension Destination {
    /// The maximum number of files with one name in a directory: one without a number, the others numbered, as in `NAME
    /// (1)`.
    static let mostNumbered = 10_000

    /// Creates the part file for a name that the server chose. If another download has the name, adds the next free
    /// number, as in `NAME (1)`; throws if no number is free.
    func openNumbered(
        _ directory: String, _ plan: PreparePlan, isAtHand: Bool
    ) throws(TowlineError) -> Preparation {
        let (plain, own) = (Place(directory: directory, name: plan.fileName), key.link.exact)
        var number = plan.fileName == key.nameOfURL ? nameNumber : reservedNumber(plain, after: nil)
        while number < Self.mostNumbered {
            let place = plain.numbered(number)
            do throws(TowlineError) {
                // Another transfer of this process may use the place: two URLs, one name, two files.
                let isTaken = services.places.isTaken(place, besides: own)
                if !isTaken, let made = try open(place, plan, isAtHand: isAtHand, mayYield: true) { return made }
            } catch {
                // Two transfers opened the place at the same time, and this one was later.
                guard error.code == .destinationBusy, services.places.isTaken(place, besides: own) else { throw error }
            }
            number = reservedNumber(plain, after: number)
        }
        throw TowlineError(
            .unusableDestination,
            "\(directory)/\(plan.fileName) and \(Self.mostNumbered - 1) numbered variants of this name already exist."
                + " \(Remedy.anotherName.sentence)"
        )
    }

    /// The number of this file among those of the batch with the same name in their URLs, as in `NAME (1)`; 0: the name
    /// without a number.
    var nameNumber: Int { item?.nameNumber.load(ordering: .relaxed) ?? 0 }

    /// Returns the number to try next for the file name of `place`, as in `NAME (1)`: after `number`, or the first one
    /// if `number` is `nil`.
    private func reservedNumber(_ place: Place, after number: Int?) -> Int {
        guard let names = services.names else { return number.map { $0 + 1 } ?? 0 }
        return names.reserve(
            place, NameBoard.Terms(options), services.storage, most: Self.mostNumbered, isAgain: number != nil
        ).number
    }

    /// Returns whether the download must wait until earlier entries of the batch have their file names, because the
    /// server sent the name and files with the same name are numbered in the order of the list.
    func waitsForName(_ plan: PreparePlan) -> Bool {
        guard let item, let names = services.names, plan.fileName != key.nameOfURL else { return false }
        return !names.isTurn(of: item.number)
    }

    /// Waits until all earlier entries of the batch have their file names, at most for a few seconds.
    nonisolated(nonsending) func turn() async {
        if let item { await services.names?.turn(of: item.number, mailbox, services.after) }
    }
}

extension NameBoard.Terms {
    init(_ options: DownloadOptions) {
        self.init(
            link: LinkIdentity(options.url), passesFiles: options.existing == .rename && options.checksum == nil)
    }
}
