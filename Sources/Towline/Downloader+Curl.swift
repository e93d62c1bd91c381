#if Library
    public import Foundation
    public import TowlineCore
    import TowlineCurl
    public import TowlineEngine

    extension Downloader {
        /// Opens the list in a state directory and resumes the downloads that were running, over libcurl.
        ///
        /// - Parameters:
        ///   - stateDirectory: the directory of the list. Only one downloader can open it at a time.
        ///   - configuration: the limits and intervals of the downloader.
        /// - Throws: the errors of ``init(stateDirectory:configuration:transport:)``.
        public convenience init(
            stateDirectory: URL, configuration: Configuration = Configuration()
        ) async throws(TowlineError) {
            try await self.init(stateDirectory: stateDirectory, configuration: configuration, transport: .curl)
        }
    }

    extension DownloadTransport {
        /// The transport over libcurl, the default: HTTP/1.1 and HTTP/2, proxies, cookies and the certificates of the
        /// system. Requires the package trait `Library`.
        public static var curl: DownloadTransport { DownloadTransport { CurlTransport() } }
    }
#endif
