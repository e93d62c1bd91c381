import Foundation
import Testing

@testable import TowlineCurl

/// `tow` sends nothing to a socket of another user.
struct SocketTrustTests {
    /// After su(1), the runtime directory is still that of the previous user.
    @Test(.enabled(if: geteuid() == 0), .timeLimit(.minutes(1))) func aSocketOfAnotherUserGetsNothing() async throws {
        let place = try TestDirectory()
        let socket = place.path("s")
        let listener = try Listener(at: socket, user: 65534)
        defer { listener.stop() }
        let failure = await #expect(throws: SocketExchange.Failure.self) {
            _ = try await SocketExchange(socket: socket).send(.init("POST", "/", body: Array("CANARY".utf8)))
        }
        #expect(failure == .foreignOwner(65534))
        let result = try await CommandRun.run(["list", "--socket", socket])
        #expect(result.status == 1)
        #expect(result.stderr.contains("another user (user ID 65534)"), "\(result.stderr)")
        #expect(listener.received == "")
    }

    /// A listener of this user gets the request.
    @Test(.timeLimit(.minutes(1))) func aSocketOfThisUserIsAsked() async throws {
        let place = try TestDirectory()
        let listener = try Listener(at: place.path("s"), user: geteuid())
        defer { listener.stop() }
        _ = try? await SocketExchange(socket: place.path("s"), timeout: .seconds(2)).send(.init("GET", "/CANARY"))
        #expect(listener.received.contains("/CANARY"))
    }

    /// A runtime directory of another user is ignored, so that the service of this user is found or started.
    @Test(.enabled(if: geteuid() == 0)) func aRuntimeDirectoryOfAnotherUserIsIgnored() async throws {
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("run"), withIntermediateDirectories: true)
        #expect(chown(place.path("run"), 65534, 65534) == 0)
        let result = try await CommandRun.run(
            ["list"], environment: ["XDG_RUNTIME_DIR": place.path("run"), "XDG_STATE_HOME": place.path("state")])
        #expect(result.stderr.contains(place.path("state") + "/towline/towd.sock"), "\(result.stderr)")
    }

    /// A process of the given user that listens and writes what it receives to a file.
    private final class Listener {
        private let process = Process()
        private let file: String

        init(at socket: String, user: uid_t) throws {
            file = socket + ".received"
            let program = """
                import os, socket, sys
                path, user = sys.argv[1], int(sys.argv[2])
                out = open(path + '.received', 'wb', buffering=0)
                if user != os.geteuid():
                    os.chmod(os.path.dirname(path), 0o777); os.setgroups([]); os.setgid(user); os.setuid(user)
                server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen(); print('ready', flush=True)
                while True:
                    client, _ = server.accept(); client.settimeout(0.5)
                    try:
                        while data := client.recv(65536): out.write(data)
                    except OSError: pass
                    client.close()
                """
            process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            process.arguments = ["-c", program, socket, "\(user)"]
            let ready = Pipe()
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = ready
            // A process that outlived the tests with their standard error would keep the runner waiting.
            process.standardError = FileHandle.nullDevice
            try process.run()
            _ = ready.fileHandleForReading.availableData
        }

        var received: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }

        func stop() {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }
}
