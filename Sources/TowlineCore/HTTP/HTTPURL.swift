/// A strict `http` or `https` URL. Minimal for now.
package struct HTTPURL: Hashable, Sendable {
    package let text: String

    /// What goes to the wire: the whole URL without user info.
    package var requestText: String { text }

    /// Makes one; nothing is checked.
    package init(text: String) { self.text = text }
}
