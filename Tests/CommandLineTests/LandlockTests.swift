import Foundation
import Testing
import TowlineDisk

/// Limits of a process whose libraries were exploited. A preloaded library stands for the exploit: at the first socket
/// it tries to create files and to start a program. Without the limits each attempt returns 0.
@Suite(.enabled(if: Confinement.version != nil, "this kernel does not support Landlock"), .timeLimit(.minutes(2)))
struct LandlockTests {
    /// Writes "PLACE errno" to the file `REPORT` for creating a file in each of `PLACES`, and for starting a program.
    private static let hostile = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <spawn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int socket(int domain, int type, int protocol) {
            const char *report = getenv("REPORT");
            if (report && access(report, F_OK) != 0) {
                FILE *file = fopen(report, "w");
                char *places = strdup(getenv("PLACES")), *state;
                for (char *place = strtok_r(places, ":", &state); file && place; place = strtok_r(NULL, ":", &state)) {
                    int made = open(place, O_WRONLY | O_CREAT, 0600);
                    fprintf(file, "%s %d\\n", strrchr(place, '/') + 1, made < 0 ? errno : 0);
                }
                char *words[] = {"/bin/true", NULL};
                pid_t child;
                if (file) fprintf(file, "program %d\\n", posix_spawn(&child, words[0], NULL, NULL, words, NULL));
                if (file) fclose(file);
            }
            return (int)syscall(SYS_socket, domain, type, protocol);
        }
        """

    /// Compiles the library.
    private func library(in place: TestDirectory) async throws -> String {
        try Data(Self.hostile.utf8).write(to: place.file("hostile.c"))
        let words = ["-shared", "-fPIC", "-o", place.path("hostile.so"), place.path("hostile.c")]
        let result = try await CommandRun(words, program: URL(fileURLWithPath: "/usr/bin/cc")).finish()
        try #require(result.status == 0, "\(result.stderr)")
        return place.path("hostile.so")
    }

    private func findings(_ report: URL) throws -> [String: Int32] {
        let lines = try String(contentsOf: report, encoding: .utf8).split(separator: "\n")
        return Dictionary(
            uniqueKeysWithValues: lines.map { line in
                let words = line.split(separator: " ")
                return (String(words[0]), Int32(words[1]) ?? -1)
            })
    }

    @Test(arguments: [false, true]) func getChangesItsDirectoriesAlone(_ isPlain: Bool) async throws {
        let place = try TestDirectory()
        for name in ["here", "there"] {
            try FileManager.default.createDirectory(at: place.file(name), withIntermediateDirectories: true)
        }
        let places = [place.path("here/inside"), place.path("there/outside"), place.path("beside")]
        let arguments = ["get", "--max-tries", "1", "http://127.0.0.1:9/x"]
        // The second form takes the other way through the parser.
        let target = isPlain ? ["-d", place.path("here")] : ["--output=" + place.path("here/x"), "--progress=none"]
        _ = try await CommandRun.run(
            arguments + target,
            environment: [
                "LD_PRELOAD": try await library(in: place), "REPORT": place.path("here/report"),
                "PLACES": places.joined(separator: ":"),
            ])
        let found = try findings(place.file("here/report"))
        #expect(found == ["inside": 0, "outside": EACCES, "beside": EACCES, "program": EACCES])
    }

    @Test func theServiceChangesItsDirectoriesAlone() async throws {
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("state"), withIntermediateDirectories: true)
        #expect(chmod(place.path("state"), 0o700) == 0)
        let places = [place.path("state/inside"), place.path("downloads/inside-too"), place.path("outside")]
        let service = try ServiceProcess(
            place,
            prefix: [
                "/usr/bin/env", "LD_PRELOAD=" + (try await library(in: place)), "REPORT=" + place.path("state/report"),
                "PLACES=" + places.joined(separator: ":"),
            ])
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
        let found = try findings(place.file("state/report"))
        #expect(found == ["inside": 0, "inside-too": 0, "outside": EACCES, "program": 0])
    }

    /// A ruleset counts for the thread that sets it and for threads that start later, so no thread may start before.
    /// `NoNewPrivs` (proc(5)) shows which threads have a ruleset: towd sets both in one step.
    @Test func everyThreadOfTheServiceIsLimited() async throws {
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        #expect(try await service.tow(["list"]).status == 0)
        let tasks = "/proc/\(try #require(service.number))/task"
        let threads = try FileManager.default.contentsOfDirectory(atPath: tasks)
        #expect(threads.count > 1)
        for thread in threads {
            guard let status = try? String(contentsOfFile: tasks + "/\(thread)/status", encoding: .utf8) else {
                continue
            }
            #expect(status.contains("NoNewPrivs:\t1"), "\(status.prefix(40))")
        }
        service.kill()
    }
}
