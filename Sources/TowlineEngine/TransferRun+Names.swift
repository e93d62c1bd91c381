internal import TowlineCore

/// The numbers of files with the same name.
extension TransferRun {
    /// So many files of one name, each after the first with a number.
    static let mostNumbered = 10_000

    /// The server chose the name: where another download has it, the next free number is taken.
    func openNumbered(_ directory: String, _ plan: PreparePlan) throws(TowlineError) {
        let plain = Place(directory: directory, name: plan.fileName)
        var number = plan.fileName == nameOfURL ? nameNumber : reservedNumber(plain, after: nil)
        while number < Self.mostNumbered {
            let place = plain.numbered(number)
            do throws(TowlineError) {
                // Another transfer of this process may be at it: two URLs, one name, two files.
                let other = services.places.user(of: place) ?? identity
                if other == identity, try open(place, plan, mayYield: true) { return }
            } catch {
                // Two came at once, and this one was later.
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

    /// The number that the entry has among those with the name that the URL gives.
    var nameNumber: Int { item?.nameNumber.load(ordering: .relaxed) ?? 0 }

    /// Returns the number to try first for a name that the server gives, or the one to try after another.
    func reservedNumber(_ place: Place, after number: Int?) -> Int {
        guard let names = services.names else { return number.map { $0 + 1 } ?? 0 }
        return names.reserve(
            place, NameBoard.Terms(options), services.storage, most: Self.mostNumbered, isAgain: number != nil)
    }

    /// Returns whether a name that the server gives has to wait for the names of earlier entries.
    func waitsForName(_ plan: PreparePlan) -> Bool {
        guard let item, let names = services.names, plan.fileName != nameOfURL else { return false }
        return !names.isTurn(of: item.number)
    }

    /// Prepares the file of a response when all earlier entries of the list have their names.
    nonisolated(nonsending) func prepareInTurn(_ plan: PreparePlan) async {
        if let item { await services.names?.turn(of: item.number, mailbox, services.after) }
        // The wait has a time limit, so earlier entries may still have no name.
        if case .file(let directory, nil) = options.target {
            do throws(TowlineError) {
                try openNumbered(directory, plan)
            } catch {
                step(.storageFailed(error))
            }
        }
        if proof == nil { concludeDelivered() }
    }
}

extension NameBoard.Terms {
    init(_ options: DownloadOptions) {
        self.init(
            source: options.url.withoutSecrets, passesFiles: options.existing == .rename && options.checksum == nil)
    }
}
