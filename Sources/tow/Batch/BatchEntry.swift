/// A URL of a list, with what the list says of it.
struct BatchEntry: Hashable {
    /// An option below a URL.
    struct Line: Hashable {
        /// As it stands there.
        var name: String
        /// Empty if there is none.
        var value: String
        /// The line's number, from 1.
        var number: Int
    }

    /// As it stands there.
    var url: String
    /// The line's number, from 1.
    var number: Int
    /// Options, in order.
    var options: [Line] = []
    /// What is wrong with the entry as text: such an entry fails, the others go on.
    var problem: Problem?

    /// What can be wrong with it.
    enum Problem: Hashable {
        /// An option before any URL.
        case optionWithoutURL
        /// An option that begins at the line's beginning.
        case optionNotIndented(Line)
        /// A URL where only options can be.
        case indentedURL
        /// A line that is longer than `BatchLineSplitter.maximumLength`.
        case lineTooLong(number: Int)
        /// The list cannot be read from here on: `errno`.
        case unreadable(Int32)
    }
}
