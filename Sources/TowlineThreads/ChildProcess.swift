import CTowline
import Glibc

/// A starter of other programs, without a shell.
package enum ChildProcess {
    /// The process group of a program.
    package enum Group {
        /// The group of this process: a signal from the terminal, such as Ctrl-C, reaches both.
        case same
        /// A new group, which can be ended as a whole.
        case new
        /// A new session without a terminal.
        case newSession
    }

    /// Starts the program `arguments[0]`, which is searched in `PATH` if it has no slash. The program has no input, its
    /// output and errors go to the descriptor `output`, and it inherits no other descriptor and only default signal
    /// handling.
    ///
    /// - Parameter environment: the variables in the form `NAME=VALUE`; `nil` for those of this process.
    /// - Parameter directory: the working directory; `nil` for that of this process.
    /// - Returns: the process id, or the negated `errno`.
    package static func start(
        _ arguments: [String], environment: [String]? = nil, output: Int32, directory: String? = nil, group: Group
    ) -> pid_t {
        let words = arguments.map { strdup($0) } + [nil]
        let variables = environment.map { $0.map { strdup($0) } + [nil] }
        defer { for text in words + (variables ?? []) { free(text) } }
        let kind =
            switch group {
            case .same: towline_same_group
            case .new: towline_new_group
            case .newSession: towline_new_session
            }
        return towline_spawn(words, variables, output, directory, kind)
    }
}
