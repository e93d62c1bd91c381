/// The version of Towline.
package enum TowlineVersion {
    /// The version number as `tow --version` and the `User-Agent` header show it.
    package static let text = "0.1.0"
}
