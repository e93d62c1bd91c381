internal import TowlineCore

/// The numbers of files with the same name in a batch.
extension TransferRun {
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

    /// Goes on with an answer when its name has its turn.
    nonisolated(nonsending) func prepareInTurn(_ plan: PreparePlan) async {
        if let item { await services.names?.turn(of: item.number, mailbox, services.after) }
        // Whether or not its turn has come, it waits no longer.
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
