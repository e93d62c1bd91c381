// Runs the C code of Towline under AddressSanitizer and UndefinedBehaviorSanitizer; see scripts/test-sanitized.
//
//     sanitized-driver SEED RUNS ARCHIVE...    reads the archives, then RUNS mutated copies of them
//     sanitized-driver control                 makes an error that AddressSanitizer must report
//
// The child's code is part of this program, so that the reader runs without the confinement, whose system call filter
// would stop the sanitizer. Fails if a reader crashes, reports an error of the sanitizers, does not end within 10
// seconds, or writes something that is not a sequence of frames. A failure names the seed and the run, and keeps the
// input.
#include "../Sources/CUnpack/CUnpack.c"

#include "../Sources/CTowline/include/CTowline.h"

#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SANITIZED
#error "compile with -fsanitize=address,undefined"
#endif

enum { time_limit = 10, output_limit = 256 << 20, most_changes = 8, block = 512 };

typedef struct {
    unsigned char *bytes;
    size_t count;
} text;

// SplitMix64, as in the fuzz tests.
static uint64_t state;

static uint64_t next_number(void) {
    uint64_t mixed = state += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}

static size_t below(size_t bound) { return (size_t)(next_number() % bound); }

static _Noreturn void stop(const char *what) {
    fprintf(stderr, "sanitized: %s\n", what);
    exit(1);
}

static text read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) stop(path);
    long count = ftell(file);
    text all = {malloc((size_t)count + 1), (size_t)count};
    rewind(file);
    if (!all.bytes || fread(all.bytes, 1, all.count, file) != all.count) stop(path);
    fclose(file);
    return all;
}

// --- Mutation ---------------------------------------------------------------------------------------------------

// Writes the checksum of a tar header again: otherwise libarchive would look at nothing else in it.
static void seal(unsigned char *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int index = 0; index < block; index++) sum += header[index];
    snprintf((char *)header + 148, 8, "%06o", sum & 0777777);
}

// Returns a copy of an archive with a few changes: bytes, numbers at the edge, removed, repeated and exchanged parts.
static text mutate(text original) {
    static const uint64_t edges[] = {0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, INT64_MAX, UINT64_MAX};
    static const char *const digits[] = {"77777777777", "00000000000", "-0000000001", "\x80\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"};
    text copy = {malloc(original.count + 1), original.count};
    if (!copy.bytes) stop("out of memory");
    memcpy(copy.bytes, original.bytes, original.count);
    for (size_t change = 0, changes = 1 + below(most_changes); change < changes && copy.count > 0; change++) {
        size_t place = below(copy.count), rest = copy.count - place, length = 1 + below(rest < 32 ? rest : 32);
        switch (below(8)) {
        case 0: copy.bytes[place] ^= (unsigned char)(1 << below(8)); break;
        case 1: copy.bytes[place] = (unsigned char)next_number(); break;
        case 2: memcpy(copy.bytes + place, edges + below(10), length < 8 ? length : 8); break;
        case 3: copy.bytes[place] = (unsigned char)(copy.bytes[place] + (below(2) ? 1 : -1)); break;
        case 4: memset(copy.bytes + place, below(2) ? 0xFF : 0, length); break;
        case 5: memmove(copy.bytes + place, copy.bytes + below(copy.count - length + 1), length); break;
        case 6:
            // The size of a tar entry.
            if (place / block * block + 136 < copy.count) memcpy(copy.bytes + place / block * block + 124, digits[below(4)], 11);
            break;
        default:
            if (below(4) == 0) copy.count = place;
        }
        // Half of the changed blocks get a checksum as if they were headers.
        size_t start = place / block * block;
        if (below(2) && start + block <= copy.count) seal(copy.bytes + start);
    }
    return copy;
}

// --- Reading ----------------------------------------------------------------------------------------------------

static int memory_file(text archive) {
    int file = memfd_create("archive", MFD_CLOEXEC);
    if (file < 0 || write(file, archive.bytes, archive.count) != (ssize_t)archive.count || lseek(file, 0, SEEK_SET) != 0)
        stop("cannot create a file in memory");
    return file;
}

static pid_t start_reader(int archive, int *output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) stop("cannot create a pipe");
    pid_t process = fork();
    if (process < 0) stop("cannot start a process");
    if (process == 0) {
        int first = fcntl(archive, F_DUPFD, 10), second = fcntl(ends[1], F_DUPFD, 10);
        if (dup2(first, archive_descriptor) < 0 || dup2(second, output_descriptor) < 0) _exit(2);
        read_archive();
    }
    close(ends[1]);
    *output = ends[0];
    return process;
}

typedef struct {
    int entries;
    uint64_t bytes;
    uint32_t last, detail;
} summary;

// Reads `count` bytes before the deadline. Returns 0 at the end of the output.
static int take(int output, void *bytes, size_t count, time_t deadline, const char **problem) {
    char *next = bytes;
    for (size_t left = count; left > 0;) {
        time_t now = time(NULL);
        struct pollfd one = {.fd = output, .events = POLLIN};
        if (now >= deadline || poll(&one, 1, (int)(deadline - now) * 1000) == 0) {
            *problem = "the reader did not end in time";
            return 0;
        }
        ssize_t got = read(output, next, left);
        if (got <= 0) {
            if (left < count) *problem = "the output ends inside a frame";
            return 0;
        }
        next += got;
        left -= (size_t)got;
    }
    return 1;
}

// Reads all frames. Returns what is wrong with them, or NULL.
static const char *read_frames(int output, summary *found) {
    static char bytes[TOWLINE_UNPACK_BYTES];
    time_t deadline = time(NULL) + time_limit;
    const char *problem = NULL;
    towline_unpack_frame frame;
    while (take(output, &frame, sizeof frame, deadline, &problem)) {
        int is_in_entry = found->last == TOWLINE_UNPACK_HEAD || found->last == TOWLINE_UNPACK_DATA;
        if (found->last == TOWLINE_UNPACK_END || found->last == TOWLINE_UNPACK_ERROR) return "a frame after the last one";
        if (frame.kind < TOWLINE_UNPACK_HEAD || frame.kind > TOWLINE_UNPACK_ERROR) return "a frame of an unknown kind";
        if ((uint64_t)frame.path + frame.target > sizeof bytes) return "a frame that is too long";
        if (frame.kind == TOWLINE_UNPACK_HEAD && is_in_entry) return "a head in an entry";
        if ((frame.kind == TOWLINE_UNPACK_DATA || frame.kind == TOWLINE_UNPACK_END_OF_ENTRY) && !is_in_entry)
            return "data outside an entry";
        if (frame.path + frame.target > 0 && !take(output, bytes, frame.path + frame.target, deadline, &problem))
            return problem ? problem : "the output ends inside a frame";
        if (frame.kind == TOWLINE_UNPACK_HEAD && memchr(bytes, 0, frame.path + frame.target)) return "a NUL in a name";
        if (frame.kind == TOWLINE_UNPACK_HEAD) found->entries++;
        if (frame.kind == TOWLINE_UNPACK_DATA) found->bytes += frame.path;
        found->last = frame.kind;
        found->detail = frame.detail;
        if (found->bytes > output_limit) return NULL;
    }
    if (problem) return problem;
    return found->last == TOWLINE_UNPACK_END || found->last == TOWLINE_UNPACK_ERROR ? NULL : "the output has no last frame";
}

// Reads an archive in a process of its own. Returns what is wrong, or NULL.
static const char *read_one(text archive, int is_spawned, summary *found) {
    int file = memory_file(archive), output = -1, status = 0;
    pid_t process = is_spawned ? towline_unpack_start(file, 256 << 20, &output) : start_reader(file, &output);
    if (process <= 0) stop("cannot start the reader");
    const char *problem = read_frames(output, found);
    int is_cut = found->last != TOWLINE_UNPACK_END && found->last != TOWLINE_UNPACK_ERROR;
    close(output);
    // Too much output is no problem. A reader whose output was not read to its end may still run, and may still write a
    // report of the sanitizers.
    int has_ended = 0;
    for (int wait = 0; is_cut && !has_ended && wait < 100; wait++) {
        has_ended = waitpid(process, &status, WNOHANG) == process;
        if (!has_ended) usleep(10000);
    }
    if (is_cut && !has_ended) kill(process, SIGKILL);
    if (!has_ended) waitpid(process, &status, 0);
    close(file);
    if (problem) return problem;
    if (!is_cut && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) return "the reader ended with an error status";
    return NULL;
}

// --- The other C code -------------------------------------------------------------------------------------------

// Every length and alignment up to two steps: reading one byte too many is an error of the sanitizer.
static void check_checksums(void) {
    for (size_t count = 0; count < 64; count++) {
        for (size_t start = 0; start < 8; start++) {
            unsigned char *bytes = malloc(start + count + (start + count == 0));
            for (size_t index = 0; index < start + count; index++) bytes[index] = (unsigned char)next_number();
            uint32_t expected = towline_crc32c_table(7, bytes + start, count);
            if (towline_crc32c(7, bytes + start, count) != expected) stop("the two CRC-32C differ");
            size_t half = count / 2;
            if (towline_crc32c(towline_crc32c(7, bytes + start, half), bytes + start + half, count - half) != expected)
                stop("a CRC-32C in two steps differs");
            free(bytes);
        }
    }
    if (towline_crc32c(0, "123456789", 9) != 0xE3069283) stop("the CRC-32C of RFC 3720 differs");
}

static void check_calls(void) {
    towline_status status;
    towline_space space;
    int ends[2];
    if (towline_statx(AT_FDCWD, "/", &status) != 0 || towline_statx(AT_FDCWD, "/none", &status) != -ENOENT) stop("statx");
    int root = open("/", O_RDONLY | O_CLOEXEC);
    if (towline_fstatfs(root, &space) != 0 || space.available < 0) stop("fstatfs");
    close(root);
    if (towline_pipe(ends, 4096) != 0) stop("pipe");
    char *arguments[] = {"/bin/echo", "x", NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    int process = towline_spawn(arguments, environment, ends[1], "/", towline_new_group), code = 0, result = 0, passed = 0;
    if (process <= 0) stop("spawn");
    while (!(passed = towline_peek_end(process, &code, &result))) usleep(1000);
    if (passed != 1 || code != CLD_EXITED || result != 0) stop("the end of a program");
    waitpid(process, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    int count = 0;
    if (!towline_arguments(&count) || count < 2) stop("the arguments");
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "control") == 0) {
        unsigned char *bytes = malloc(9);
        memset(bytes, 1, 9);
        // One byte too many.
        printf("%08x\n", towline_crc32c_table(0, bytes, 10));
        free(bytes);
        return 0;
    }
    if (count < 4) stop("expected SEED RUNS ARCHIVE...");
    setlocale(LC_CTYPE, "C.UTF-8");
    uint64_t seed = strtoull(arguments[1], NULL, 10);
    int runs = atoi(arguments[2]), archives = count - 3, complete = 0;
    uint64_t entries = 0;
    state = seed;
    check_checksums();
    check_calls();
    text *all = calloc((size_t)archives, sizeof *all);
    for (int index = 0; index < archives; index++) {
        all[index] = read_file(arguments[index + 3]);
        for (int is_spawned = 0; is_spawned < 2; is_spawned++) {
            summary found = {0};
            const char *problem = read_one(all[index], is_spawned, &found);
            if (problem || found.last != TOWLINE_UNPACK_END || found.entries == 0) {
                fprintf(stderr, "sanitized: %s: %s (%d entries, detail %u)\n", arguments[index + 3],
                        problem ? problem : "a valid archive was not read to its end", found.entries, found.detail);
                return 1;
            }
        }
    }
    for (int run = 0; run < runs; run++) {
        // A state of each run's own: a failure can be repeated without those before it.
        state = seed + (uint64_t)run * 0x9E3779B97F4A7C15 * 3;
        text changed = mutate(all[below((size_t)archives)]);
        summary found = {0};
        const char *problem = read_one(changed, 0, &found);
        if (problem) {
            FILE *kept = fopen("sanitized-input", "wb");
            if (kept) {
                fwrite(changed.bytes, 1, changed.count, kept);
                fclose(kept);
            }
            fprintf(stderr, "sanitized: seed %llu, run %d: %s; the input is in sanitized-input\n", (unsigned long long)seed, run, problem);
            return 1;
        }
        complete += found.last == TOWLINE_UNPACK_END;
        entries += (uint64_t)found.entries;
        free(changed.bytes);
    }
    for (int index = 0; index < archives; index++) free(all[index].bytes);
    free(all);
    printf("sanitized: %d archives and %d mutated copies: %d read to the end, %llu entries\n", archives, runs, complete,
           (unsigned long long)entries);
    // Mutation that leaves nothing to read would find nothing.
    if (complete < runs / 50 || complete > runs * 49 / 50) stop("almost no mutated copy is accepted, or refused");
    return 0;
}
