import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineThreads
import TowlineWire

struct PageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "page",
        abstract: "Open the web page of towd and print a link to it that signs a browser in.",
        discussion: """
            In a terminal of a desktop session, the page also opens in the default browser, signed in.

            The printed link signs in once, within an hour. The access token is not part of the link, so the link in \
            the history of a browser is worth nothing. If towd is not running, 'tow page' starts it.
            """)

    @Flag(help: "Only print the link.")
    var noOpen = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let code = try await service.askStarting { try await $0.makeSignInCode().code }
        let pages = try await service.pages
        guard let page = pages.first else {
            throw TowlineError(
                .commandFailed,
                "towd serves no web page. Its port may be in use; start towd with --listen and a free HOST:PORT")
        }
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(pages.map { TerminalSafeText.make("\($0)#code=\(code)") + "\n" }.joined())
        guard !noOpen, isatty(STDOUT_FILENO) == 1, DesktopBrowser.isAvailable else { return }
        // The printed link stays valid: the browser gets a code of its own.
        let second = try await service.client.makeSignInCode().code
        try DesktopBrowser.open("\(page)#code=\(second)", in: service.places.stateDirectory)
    }
}

/// The default browser of a desktop session.
enum DesktopBrowser {
    /// `true` in a desktop session (X11 or Wayland).
    static var isAvailable: Bool {
        Environment.variables(["DISPLAY", "WAYLAND_DISPLAY"]).values.contains { !$0.isEmpty }
    }

    /// Opens a link with `xdg-open` in the background. Does nothing if `xdg-open` is not installed.
    ///
    /// The browser gets the path of a private file that leads to the link: other users of the machine can read the
    /// arguments of a program.
    static func open(_ link: String, in directory: String) throws(TowlineError) {
        let path = directory + "/open-page.html"
        unlink(path)
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        let isWritten = file >= 0 && OutputDescriptor.writeAll(Array(document(link).utf8), to: file)
        let reason = String(cString: strerror(errno))
        if file >= 0 { close(file) }
        guard isWritten else {
            throw TowlineError(
                .commandFailed,
                "cannot write the file \(TerminalSafeText.make(path)): \(reason). Open the printed link in a browser")
        }
        let nowhere = Glibc.open("/dev/null", O_WRONLY | O_CLOEXEC)
        _ = ChildProcess.start(["xdg-open", path], output: nowhere, group: .newSession)
        close(nowhere)
    }

    private static func document(_ link: String) -> String {
        var escaped = ""
        for character in link {
            switch character {
            case "&": escaped += "&amp;"
            case "\"": escaped += "&quot;"
            case "<": escaped += "&lt;"
            default: escaped.append(character)
            }
        }
        return """
            <!DOCTYPE html>
            <meta charset="utf-8">
            <meta name="referrer" content="no-referrer">
            <meta http-equiv="refresh" content="0; url=\(escaped)">
            <title>towd</title>
            <p><a href="\(escaped)">Open the web page of towd</a></p>

            """
    }
}
