// The core defines errors, states, identifiers of downloads and checksums. The library exports them to its importers.
@_exported public import TowlineCore
