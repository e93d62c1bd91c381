import Foundation
import Testing

/// Replaces the wall clock of a program: the dates that the program reads are off by a number of seconds, which can
/// change while it runs. Clocks that cannot be set (`CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`) and the kernel's timers stay
/// unchanged, as on a machine whose clock is set.
///
/// libfaketime is unsuitable: it also moves the times of timers on the monotonic clocks, even when it is configured to
/// leave those clocks unchanged, so that every wait is an hour too long.
final class WallClock: Sendable {
    private let scratch: Scratch

    /// Builds the library that is loaded before the program's own. Fails if there is no C compiler.
    init() async throws {
        scratch = try Scratch()
        let source = try scratch.write("clock.c", Self.source)
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        let compilers = (folders + ["/usr/bin"]).flatMap { [$0 + "/clang", $0 + "/cc", $0 + "/gcc"] }
        let compiler = try #require(
            compilers.first { FileManager.default.isExecutableFile(atPath: $0) }, "a compiler for C is needed")
        try await ChildRun.tool(compiler, "-shared", "-fPIC", "-O1", "-o", scratch.file("clock.so"), source)
        try set(0)
        // The library must work, or the tests would prove nothing.
        let now = Int64(Date().timeIntervalSince1970)
        try set(86_400)
        let shown = try await ChildRun.run(["/usr/bin/date", "+%s"], environment: environment).stdout
        let date = try #require(Int64(String(decoding: shown, as: UTF8.self).trimmingCharacters(in: .newlines)))
        try #require(abs(date - now - 86_400) < 60, "the clock of a child is \(date - now) s ahead")
        try set(0)
    }

    /// Sets how far the clock is ahead from now on, in seconds.
    func set(_ seconds: Int64) throws {
        // The write is atomic: a reader sees the old number or the new one.
        try String(seconds).write(toFile: scratch.file("ahead"), atomically: true, encoding: .utf8)
    }

    /// The environment variables with which a program sees this clock.
    var environment: [String: String] {
        ["LD_PRELOAD": scratch.file("clock.so"), "WALL_CLOCK_AHEAD": scratch.file("ahead")]
    }

    /// The source of `clock_gettime(2)`, `gettimeofday(2)` and `time(2)` that add the seconds from a file.
    private static let source = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static const char *path;

        __attribute__((constructor)) static void begin(void) { path = getenv("WALL_CLOCK_AHEAD"); }

        static time_t ahead(void) {
            char text[32] = {0};
            int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            if (file < 0) return 0;
            ssize_t count = read(file, text, sizeof text - 1);
            close(file);
            return count > 0 ? atoll(text) : 0;
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            int code = (int)syscall(SYS_clock_gettime, clock, time);
            if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
                time->tv_sec += ahead();
            return code;
        }

        int gettimeofday(struct timeval *restrict time, void *restrict zone) {
            int code = (int)syscall(SYS_gettimeofday, time, zone);
            if (code == 0 && time) time->tv_sec += ahead();
            return code;
        }

        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """
}
