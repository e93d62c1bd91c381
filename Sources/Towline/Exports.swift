// Errors, states, names of downloads and checksums are the core's; whoever imports the library has them.
@_exported public import TowlineCore
