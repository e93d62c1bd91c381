import CCurl
import Glibc

/// The system's certificate authorities: by default, one file with all certificates and a directory with one link per
/// certificate, named by its hash (`openssl-rehash(1)`).
enum SystemAuthorities {
    /// The path of the system's file with all certificates; `nil` without a file, or with a TLS library other than
    /// OpenSSL.
    static let file = ccurl_openssl_authorities()?.pointee.cainfo.map { String(cString: $0) }

    /// `true` if libcurl needs only the directory, because the system's file has no further certificates.
    ///
    /// If libcurl has both, it reads the whole file again for each connection, which takes longer than the rest of the
    /// TLS handshake. OpenSSL reads only the needed certificates of a directory.
    static let directorySuffices: Bool = {
        guard let info = ccurl_openssl_authorities()?.pointee, let directory = info.capath else { return false }
        let links = linkCount(in: directory)
        return links > 0 && (info.cainfo.map(certificateCount) ?? 0) <= links
    }()

    /// Returns the number of certificate links, such as `5ed36f99.0`, in a directory; 0 if the directory cannot be
    /// read.
    private static func linkCount(in directory: UnsafePointer<CChar>) -> Int {
        var paths = glob_t()
        defer { globfree(&paths) }
        let digits = String(repeating: "[0-9a-f]", count: 8)
        let isFound = glob("\(String(cString: directory))/\(digits).[0-9]*", GLOB_NOSORT, nil, &paths) == 0
        return isFound ? Int(paths.gl_pathc) : 0
    }

    /// Returns the number of certificates in a PEM file; 0 if the file cannot be read.
    private static func certificateCount(in file: UnsafePointer<CChar>) -> Int {
        guard let file = fopen(file, "re") else { return 0 }
        defer { fclose(file) }
        var (line, capacity, count) = (UnsafeMutablePointer<CChar>?.none, 0, 0)
        defer { free(line) }
        while getline(&line, &capacity, file) > 0 {
            if let line, strncmp(line, "-----BEGIN ", 11) == 0 { count += 1 }
        }
        return count
    }
}
