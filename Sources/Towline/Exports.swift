// The core defines errors, states, identifiers of downloads and checksums. The library exports them to its importers.
@_exported public import TowlineCore
@_exported public import struct TowlineEngine.DownloadTransport
