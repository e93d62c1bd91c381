/// The version of Towline.
package enum TowlineVersion {
    /// As `tow --version` and `User-Agent` show it.
    package static let text = "0.1.0"
}
