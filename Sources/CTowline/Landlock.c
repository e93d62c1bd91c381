#define _GNU_SOURCE
#include "CTowline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Landlock (landlock(7)), with its own constants: the kernel that runs the program may be newer than these headers.
enum {
    VERSION_FLAG = 1,
    PATH_BENEATH = 1,
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,    // version 2
    TRUNCATE = 1 << 14, // version 3
    SCOPES = 3,         // version 6: abstract Unix sockets and signals
};

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

struct ruleset {
    uint64_t files, network, scopes;
};

struct rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

int towline_landlock_version(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG);
    return version < 0 ? 0 : (int)version;
}

static uint64_t changes(int version) {
    uint64_t rights = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO |
        MAKE_BLOCK | MAKE_SYM;
    if (version >= 2) rights |= REFER;
    if (version >= 3) rights |= TRUNCATE;
    return rights;
}

// Skips a path that does not exist or cannot be opened: its use fails with or without a ruleset.
static int allow(int ruleset, const char *path, int version) {
    // Without O_PATH first: a directory that is mounted when it is used (autofs) is mounted now. A rule
    // applies to the directory that is mounted when the rule is added.
    int place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return 0;
    struct stat status;
    uint64_t rights = changes(version) & ~(uint64_t)(MAKE_CHAR | MAKE_BLOCK);
    if (fstat(place, &status) < 0 || !S_ISDIR(status.st_mode)) rights &= WRITE_FILE | TRUNCATE;
    struct rule rule = {.allowed = rights, .parent = place};
    int code = syscall(SYS_landlock_add_rule, ruleset, PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
    // A pipe without a name (/proc/PID/fd/N) cannot be in a rule, and is never limited.
    if (code == -EBADFD) code = 0;
    close(place);
    return code;
}

// Returns true if other threads run: a ruleset applies only to the thread that sets it, and to the threads that this
// thread starts afterwards.
static int has_other_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    int count = 0;
    for (struct dirent *task; (task = readdir(tasks));) count += task->d_name[0] != '.';
    closedir(tasks);
    return count > 1;
}

int towline_confine(char *const *writable, int runs_programs) {
    int version = towline_landlock_version();
    if (version < 1) return 0;
    if (has_other_threads()) return -EBUSY;
    struct ruleset rules = {.files = changes(version) | (runs_programs ? 0 : EXECUTE)};
    if (version >= 6) rules.scopes = SCOPES;
    size_t size = version >= 6 ? sizeof rules : sizeof rules.files;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (ruleset < 0) return -errno;
    int code = allow(ruleset, "/dev/null", version);
    for (; code == 0 && *writable; writable++) code = allow(ruleset, *writable, version);
    if (code == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) code = -errno;
    if (code == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) code = -errno;
    close(ruleset);
    return code < 0 ? code : version;
}
