/// A strict `http` or `https` URL. Minimal for now.
package struct HTTPURL: Hashable, Sendable {
    package let text: String
}
