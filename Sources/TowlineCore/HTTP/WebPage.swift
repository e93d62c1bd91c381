/// A web page that arrives instead of a file: a login page, a captive portal, an error page with status 200.
package enum WebPage {
    /// The reason why a web page is refused, for an error message.
    package static let reason =
        "the server sent a web page instead of the file, perhaps a login page"
        + " (log in first, or \(Remedy.webPages) to download the page)"

    /// Returns whether the first bytes of a response must be examined before the response is used: its media type is
    /// that of a page, but the name, the URL or earlier bytes suggest another type of file. The bytes decide because
    /// servers also label other files `text/html`.
    ///
    /// - Parameters:
    ///   - verdict: the verdict on the head of the response.
    ///   - url: the URL of the response, after redirects.
    package static func isPossible(_ verdict: ResponseVerdict, from url: HTTPURL, _ question: ResponseQuestion) -> Bool
    {
        guard !question.acceptsWebPages, let facts = facts(of: verdict, question), facts.isWebPage else { return false }
        if let earlier = question.earlierMediaType, !isPage(mediaType: earlier) { return true }
        // A redirect to a login page gives the file that page's name.
        let name = facts.suggestion == nil ? SafeFileName.ofURL(question.source) : facts.fileName
        let names = [question.fileName, name, SafeFileName.ofURL(url)]
        return names.lazy.compactMap { $0.flatMap(isPage(name:)) }.first == false
    }

    /// Returns whether a page is compressed, so that its first bytes show nothing, and is not too long for a page. The
    /// name says that the file is of another type (`isPossible`).
    package static func isCompressed(_ verdict: ResponseVerdict, length: Int64?, _ question: ResponseQuestion) -> Bool {
        facts(of: verdict, question)?.contentCoding != nil && (length ?? 0) < ResponseFacts.longestError
    }

    /// Returns the parsed head of a response that delivers the file from its first byte; `nil` for other verdicts.
    static func facts(of verdict: ResponseVerdict, _ question: ResponseQuestion) -> ResponseFacts? {
        if case .partial(let range, let facts) = verdict, range.lowerBound == 0, question.known == nil { return facts }
        return verdict.whole
    }

    /// Returns whether a media type, in lower case without parameters, is the type of a web page.
    package static func isPage(mediaType: String) -> Bool {
        mediaType == "text/html" || mediaType == "application/xhtml+xml"
    }

    /// Returns `true` if the extension of a name is that of a page, `false` for another known type of file, and `nil`
    /// for any other extension: `/wiki/Node.js` and `/download.php` may be of any type.
    static func isPage(name: String) -> Bool? {
        guard let dot = name.utf8.lastIndex(of: 0x2E) else { return nil }
        let type = ASCII.lowercased(name[dot...].dropFirst())
        if pageTypes.contains(type) { return true }
        return fileTypes.contains(type) ? false : nil
    }

    private static let pageTypes: Set<String> = ["html", "htm", "xhtml", "xht", "shtml", "mhtml"]
    private static let fileTypes = Set(
        """
        7z ace ar arj br bz2 cab cpio crx deb dmg ear egg gz gzip iso jar lha lz lz4 lzma lzo pkg rar rpm sit tar tbz tbz2 \
        tgz tlz txz tzst udf war whl wim xar xpi xz z zip zst apk aab appimage appx bin cdi com dll elf exe flatpak hex \
        img ipa iso msi msix nrg ova ovf qcow qcow2 raw rom run snap so squashfs swm toast uf2 vdi vhd vhdx vmdk vmlinuz \
        ckpt gguf ggml h5 hdf5 mat model nc npy npz onnx parquet pb pt pth safetensors tflite arrow avro bam bed bgen bib \
        csv db dat fa fasta fastq feather fits gpkg json jsonl kml las laz ndjson orc osm pbf pcap shp sqlite tsv vcf \
        accdb azw3 cbr cbz djvu doc docx dot epub key mdb mobi numbers odp ods odt pages pdf pps ppt pptx ps rtf txt xls \
        xlsx 3gp aac ac3 aif aiff ape avi flac flv m2ts m3u8 m4a m4v mid midi mka mkv mov mp2 mp3 mp4 mpeg mpg mts oga \
        ogg ogv opus ts vob wav weba webm wma wmv avif bmp cr2 dng eps gif heic heif ico jp2 jpeg jpg jxl nef png psd \
        svg tga tif tiff webp xcf otf ttf woff woff2 blend dwg dxf fbx glb gltf obj step stl asc cer crt der gpg md5 \
        meta4 metalink minisig p12 p7s pem pfx pgp sha1 sha256 sha512 sig torrent sh ps1 bat cfg conf ini toml yaml yml \
        patch diff sql bak dump log wasm
        """.split(separator: " ").map(String.init))

    // MARK: The first bytes

    /// The maximum number of bytes at the start of a body that are examined for the signatures of a page.
    package static let mostLooked = 1024

    /// Returns whether a body that begins with `bytes` begins like a page, by the signatures of the WHATWG standard
    /// "MIME Sniffing" §7.1; `nil` if more bytes are needed.
    package static func isPage(_ bytes: [UInt8]) -> Bool? {
        var rest = withoutMark(bytes.prefix(mostLooked))
        skipSpace(&rest)
        if rest.starts(with: "<?xml".utf8) {
            guard let end = rest.firstIndex(of: 0x3E) else { return nil }
            rest = rest[(end + 1)...]
            skipSpace(&rest)
        }
        guard let first = rest.first else { return nil }
        guard first == 0x3C else { return false }
        var needsMore = false
        for signature in signatures {
            let found = rest.prefix(signature.count).map(ASCII.lowercased)
            guard signature.starts(with: found) else { continue }
            guard rest.count > signature.count else {
                needsMore = true
                continue
            }
            let next = rest[rest.startIndex + signature.count]
            if signature == comment || next == 0x3E || next == 0x2F || isSpace(next) { return true }
        }
        return needsMore ? nil : false
    }

    private static let comment = Array("<!--".utf8)
    private static let signatures = [
        "<!doctype html", "<html", "<head", "<body", "<script", "<title", "<meta", "<link", "<style", "<noscript",
        "<iframe",
        "<table", "<div", "<h1", "<h2", "<font", "<form", "<center", "<a", "<b", "<br", "<p", "<!--",
    ].map { Array($0.utf8) }

    /// Returns the first bytes of a body without a byte order mark, to compare them with the signatures of pages.
    /// Removes the zero bytes of UTF-16, which is sufficient for ASCII.
    private static func withoutMark(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return bytes.dropFirst(3) }
        guard bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) else { return bytes }
        return bytes.dropFirst(2).filter { $0 != 0 }[...]
    }

    private static func skipSpace(_ bytes: inout ArraySlice<UInt8>) { bytes = bytes.drop(while: isSpace) }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
