internal import TowlineCore

/// The numbers of files with the same name.
extension Destination {
    /// The most files of one name, each after the first with a number.
    static let mostNumbered = 10_000

    /// Prepares a file whose name the server chose. If another download has the name, the next free number is taken.
    func openNumbered(
        _ directory: String, _ plan: PreparePlan, isAtHand: Bool
    ) throws(TowlineError) -> Preparation {
        let plain = Place(directory: directory, name: plan.fileName)
        var number = plan.fileName == nameOfURL ? nameNumber : reservedNumber(plain, after: nil)
        while number < Self.mostNumbered {
            let place = plain.numbered(number)
            do throws(TowlineError) {
                // Another transfer of this process may use the place: two URLs, one name, two files.
                let other = services.places.user(of: place) ?? identity
                if other == identity, let made = try open(place, plan, isAtHand: isAtHand, mayYield: true) {
                    return made
                }
            } catch {
                // Two transfers opened the place at the same time, and this one was later.
                guard error.code == .destinationBusy, services.places.user(of: place) ?? identity != identity else {
                    throw error
                }
            }
            number = reservedNumber(plain, after: number)
        }
        throw TowlineError(
            .unusableDestination,
            "\(directory)/\(plan.fileName) and \(Self.mostNumbered - 1) numbered variants of this name already exist."
                + " Choose another name with --output"
        )
    }

    /// The number of the file among those with the same name from the URL; 0: the plain name.
    var nameNumber: Int { item?.nameNumber.load(ordering: .relaxed) ?? 0 }

    /// Returns the number to try first for a name that the server gives, or the one to try after another.
    private func reservedNumber(_ place: Place, after number: Int?) -> Int {
        guard let names = services.names else { return number.map { $0 + 1 } ?? 0 }
        return names.reserve(
            place, NameBoard.Terms(options), services.storage, most: Self.mostNumbered, isAgain: number != nil)
    }

    /// Returns whether a name that the server gives has to wait for the names of earlier entries.
    func waitsForName(_ plan: PreparePlan) -> Bool {
        guard let item, let names = services.names, plan.fileName != nameOfURL else { return false }
        return !names.isTurn(of: item.number)
    }

    /// Waits until all earlier entries of the list have their names, up to a time limit.
    nonisolated(nonsending) func turn() async {
        if let item { await services.names?.turn(of: item.number, mailbox, services.after) }
    }
}

extension NameBoard.Terms {
    init(_ options: DownloadOptions) {
        self.init(
            source: options.url.withoutSecrets, passesFiles: options.existing == .rename && options.checksum == nil)
    }
}
