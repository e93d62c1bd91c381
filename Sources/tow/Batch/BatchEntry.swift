/// A URL of a list, with its options.
struct BatchEntry: Hashable {
    /// An option below a URL.
    struct Line: Hashable {
        /// The name as written in the list.
        var name: String
        /// The value; empty if the line has no value.
        var value: String
        /// The number of the line, from 1.
        var number: Int
    }

    /// The URL as written in the list.
    var url: String
    /// The number of the line, from 1.
    var number: Int
    /// The options, in order.
    var options: [Line] = []
    /// The error in the text of the entry, or `nil`. An entry with an error fails; the others are not affected.
    var problem: Problem?

    /// The errors in the text of an entry.
    enum Problem: Hashable {
        /// An option before any URL.
        case optionWithoutURL
        /// An option in a line without indentation.
        case optionNotIndented(Line)
        /// A URL in an indented line, which must contain an option.
        case indentedURL
        /// A line that is longer than `BatchLineSplitter.maximumLength`.
        case lineTooLong(number: Int)
        /// A failed read, after which the rest of the list is unknown. Contains `errno`.
        case unreadable(Int32)
    }
}
