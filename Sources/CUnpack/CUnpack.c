#define _GNU_SOURCE
#include "include/CUnpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if ARCHIVE_VERSION_NUMBER < 3006000
#error "libarchive 3.6.0 or newer is needed"
#endif

// The first argument of the child, which no program is started with by accident.
static const char name[] = "towline-unpack-archive";
enum { archive_descriptor = 3, output_descriptor = 4 };

int towline_unpack_start(int archive, int64_t memory, int *output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) goto closed;
    if ((code = posix_spawnattr_init(&attributes))) goto destroyed;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    char limit[24];
    snprintf(limit, sizeof limit, "%lld", (long long)memory);
    char *arguments[] = {(char *)name, limit, NULL};
    char *environment[] = {NULL};
    pid_t process = 0;
    // Both descriptors may have the numbers that the child expects: copies above them come first.
    int first = fcntl(archive, F_DUPFD_CLOEXEC, 10), second = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    if (first < 0 || second < 0) {
        code = errno;
    } else {
        (code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0)) ||
            (code = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO)) ||
            (code = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO)) ||
            (code = posix_spawn_file_actions_adddup2(&actions, first, archive_descriptor)) ||
            (code = posix_spawn_file_actions_adddup2(&actions, second, output_descriptor)) ||
            (code = posix_spawn_file_actions_addclosefrom_np(&actions, output_descriptor + 1)) ||
            (code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)) ||
            (code = posix_spawnattr_setsigdefault(&attributes, &all)) ||
            (code = posix_spawnattr_setsigmask(&attributes, &none)) ||
            (code = posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments, environment));
    }
    if (first >= 0) close(first);
    if (second >= 0) close(second);
    posix_spawnattr_destroy(&attributes);
destroyed:
    posix_spawn_file_actions_destroy(&actions);
closed:
    close(ends[1]);
    if (code) {
        close(ends[0]);
        return -code;
    }
    *output = ends[0];
    return process;
}

// --- The child --------------------------------------------------------------------------------------------------

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// Every call that is not listed fails with EPERM. Where the kernel has no filters, the limits alone hold.
static void confine(long long memory) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifndef SANITIZED
    struct rlimit data = {(rlim_t)memory, (rlim_t)memory};
    setrlimit(RLIMIT_DATA, &data);
    // Shared mappings do not count as data.
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%ld", &pages) == 1) {
        struct rlimit all = {(rlim_t)(pages * sysconf(_SC_PAGESIZE) + memory), (rlim_t)(pages * sysconf(_SC_PAGESIZE) + memory)};
        setrlimit(RLIMIT_AS, &all);
    }
    if (file) fclose(file);
#ifdef ARCHITECTURE
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(lseek),
        ALLOW(fstat),
#ifdef SYS_newfstatat
        ALLOW(newfstatat),
#endif
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(brk),
        ALLOW(madvise),
        ALLOW(futex),
        ALLOW(getrandom),
        ALLOW(clock_gettime),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigprocmask),
        ALLOW(restart_syscall),
        ALLOW(close),
        ALLOW(exit),
        ALLOW(exit_group),
        // Memory, but none that can be executed.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#endif
#endif
}

static void put(const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        ssize_t written = write(output_descriptor, next, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1);
        next += written;
        count -= (size_t)written;
    }
}

static void put_frame(towline_unpack_frame frame, const char *path, const char *target) {
    put(&frame, sizeof frame);
    if (frame.path) put(path, frame.path);
    if (frame.target) put(target, frame.target);
}

static _Noreturn void fail(uint32_t detail, const char *text) {
    size_t length = text ? strnlen(text, 1000) : 0;
    put_frame((towline_unpack_frame){.kind = TOWLINE_UNPACK_ERROR, .detail = detail, .path = (uint32_t)length}, text, NULL);
    _exit(0);
}

static _Noreturn void fail_by(struct archive *archive) {
    fail(archive_errno(archive) == ENOMEM ? TOWLINE_UNPACK_MEMORY : TOWLINE_UNPACK_DAMAGED, archive_error_string(archive));
}

static void put_head(struct archive *archive, struct archive_entry *entry) {
    const char *path = archive_entry_pathname(entry), *target = NULL;
    if (!path) path = archive_entry_pathname_utf8(entry);
    if (!path) fail(TOWLINE_UNPACK_NO_NAME, NULL);
    towline_unpack_frame frame = {.kind = TOWLINE_UNPACK_HEAD, .detail = TOWLINE_UNPACK_OTHER};
    if ((target = archive_entry_hardlink(entry)) || (target = archive_entry_hardlink_utf8(entry))) {
        frame.detail = TOWLINE_UNPACK_HARD_LINK;
    } else {
        switch (archive_entry_filetype(entry) & S_IFMT) {
        case S_IFREG:
            frame.detail = archive_entry_perm(entry) & S_IXUSR ? TOWLINE_UNPACK_PROGRAM : TOWLINE_UNPACK_FILE;
            break;
        case S_IFDIR: frame.detail = TOWLINE_UNPACK_DIRECTORY; break;
        case S_IFLNK:
            if ((target = archive_entry_symlink(entry)) || (target = archive_entry_symlink_utf8(entry)))
                frame.detail = TOWLINE_UNPACK_SYMBOLIC_LINK;
            break;
        }
    }
    size_t path_length = strlen(path), target_length = target ? strlen(target) : 0;
    if (path_length + target_length > TOWLINE_UNPACK_BYTES) fail(TOWLINE_UNPACK_NO_NAME, NULL);
    frame.number = archive_entry_size(entry);
    frame.stream = archive_filter_bytes(archive, 0);
    frame.has_time = archive_entry_mtime_is_set(entry) != 0;
    frame.time = frame.has_time ? archive_entry_mtime(entry) : 0;
    frame.path = (uint32_t)path_length;
    frame.target = (uint32_t)target_length;
    put_frame(frame, path, target);
}

// All of an entry's data: what libarchive would skip, nobody would count.
static void put_data(struct archive *archive) {
    const void *block;
    size_t count;
    la_int64_t offset;
    int code;
    while ((code = archive_read_data_block(archive, &block, &count, &offset)) == ARCHIVE_OK) {
        const char *next = block;
        do {
            uint32_t part = count > TOWLINE_UNPACK_BYTES ? TOWLINE_UNPACK_BYTES : (uint32_t)count;
            put_frame((towline_unpack_frame){.kind = TOWLINE_UNPACK_DATA, .number = offset, .path = part}, next, NULL);
            next += part;
            offset += part;
            count -= part;
        } while (count > 0);
    }
    // A warning is about a size or a checksum that does not fit.
    if (code != ARCHIVE_EOF) fail_by(archive);
    put_frame((towline_unpack_frame){.kind = TOWLINE_UNPACK_END_OF_ENTRY}, NULL, NULL);
}

static _Noreturn void read_archive(void) {
    struct archive *archive = archive_read_new();
    if (!archive) fail(TOWLINE_UNPACK_MEMORY, NULL);
    // ARCHIVE_WARN: only by running another program. Zip by its central directory alone: local headers may differ.
    if (archive_read_support_filter_gzip(archive) != ARCHIVE_OK || archive_read_support_filter_xz(archive) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(archive) != ARCHIVE_OK || archive_read_support_format_tar(archive) != ARCHIVE_OK ||
        archive_read_support_format_zip_seekable(archive) != ARCHIVE_OK)
        fail(TOWLINE_UNPACK_UNSUPPORTED, NULL);
    if (archive_read_open_fd(archive, archive_descriptor, 256 << 10) != ARCHIVE_OK) fail_by(archive);
    // The last filter is the plain file.
    if (archive_filter_count(archive) > 2) fail(TOWLINE_UNPACK_LAYERS, NULL);
    struct archive_entry *entry;
    int code;
    // A warning may be about a name that could be kept as it is; an entry without a name is refused.
    while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || code == ARCHIVE_WARN) {
        if (archive_entry_is_encrypted(entry)) fail(TOWLINE_UNPACK_ENCRYPTED, NULL);
        put_head(archive, entry);
        put_data(archive);
    }
    if (code != ARCHIVE_EOF) fail_by(archive);
    put_frame((towline_unpack_frame){.kind = TOWLINE_UNPACK_END}, NULL, NULL);
    _exit(0);
}

// Runs before anything else of the program does.
__attribute__((constructor)) static void become_child(int count, char **arguments) {
    if (count != 2 || strcmp(arguments[0], name) != 0) return;
    // libarchive reads names by the locale.
    setlocale(LC_CTYPE, "C.UTF-8");
    long long memory = atoll(arguments[1]);
    confine(memory > 0 ? memory : 64 << 20);
    if (memory > 0) read_archive();
    // The call succeeds in a process without the filter.
    int is_confined = socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM;
    put_frame((towline_unpack_frame){.kind = is_confined ? TOWLINE_UNPACK_END : TOWLINE_UNPACK_ERROR}, NULL, NULL);
    _exit(0);
}

const char *towline_archive_version(void) { return archive_version_details(); }
