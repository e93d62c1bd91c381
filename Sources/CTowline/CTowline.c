#define _GNU_SOURCE
#include "CTowline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static char **arguments;
static int argument_count;

// glibc calls constructors with the arguments of main (csu/init-first.c); other C libraries pass no arguments.
#ifdef __GLIBC__
__attribute__((constructor)) static void keep_arguments(int count, char **words) {
    argument_count = count;
    arguments = words;
}
#endif

char **towline_arguments(int *count) {
    *count = argument_count;
    return arguments;
}

static int result(int value) { return value < 0 ? -errno : value; }

uint32_t towline_umask(void) {
    // umask(2) returns the mask only by changing the mask, for all threads.
    FILE *status = fopen("/proc/self/status", "re");
    if (!status) return 077;
    unsigned mask = 077;
    char line[256];
    while (fgets(line, sizeof line, status) && sscanf(line, "Umask: %o", &mask) != 1) {}
    fclose(status);
    return mask;
}

int towline_statx(int directory, const char *path, towline_status *status) {
    struct statx raw;
    memset(&raw, 0, sizeof raw);
    int flags = AT_SYMLINK_NOFOLLOW | (path[0] ? 0 : AT_EMPTY_PATH);
    if (statx(directory, path, flags, STATX_BASIC_STATS | STATX_BTIME, &raw) < 0) return -errno;
    memset(status, 0, sizeof *status);
    status->device = makedev(raw.stx_dev_major, raw.stx_dev_minor);
    status->device_major = raw.stx_dev_major;
    status->device_minor = raw.stx_dev_minor;
    status->inode = raw.stx_ino;
    if (raw.stx_mask & STATX_BTIME) {
        status->birth_seconds = raw.stx_btime.tv_sec;
        status->birth_nanoseconds = raw.stx_btime.tv_nsec;
    }
    status->modified_seconds = raw.stx_mtime.tv_sec;
    status->modified_nanoseconds = raw.stx_mtime.tv_nsec;
    status->changed_seconds = raw.stx_ctime.tv_sec;
    status->changed_nanoseconds = raw.stx_ctime.tv_nsec;
    status->size = (int64_t)raw.stx_size;
    status->blocks = raw.stx_blocks;
    status->links = raw.stx_nlink;
    status->mode = raw.stx_mode;
    status->owner = raw.stx_uid;
    return 0;
}

int towline_is_mount_point(int directory, const char *path) {
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx raw;
    memset(&raw, 0, sizeof raw);
    if (statx(directory, path, AT_SYMLINK_NOFOLLOW, 0, &raw) < 0) return -errno;
    return (raw.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
    (void)directory;
    (void)path;
    return 0;
#endif
}

int towline_fstatfs(int descriptor, towline_space *space) {
    struct statfs raw;
    if (fstatfs(descriptor, &raw) < 0) return -errno;
    space->type = (int64_t)raw.f_type;
    memcpy(&space->id, &raw.f_fsid, sizeof space->id);
    // Some network file systems report absurd sizes: an overflow means "plenty". A file system that reports no blocks
    // does not count them (proc, some of FUSE) and is not full; a write reports the lack of space.
    if (raw.f_blocks == 0 ||
        __builtin_mul_overflow((int64_t)raw.f_bavail, (int64_t)raw.f_bsize, &space->available))
        space->available = INT64_MAX;
    if (raw.f_blocks == 0 || __builtin_mul_overflow((int64_t)raw.f_blocks, (int64_t)raw.f_bsize, &space->total))
        space->total = INT64_MAX;
    return 0;
}

int towline_fallocate(int descriptor, int mode, int64_t offset, int64_t length) {
    return result(fallocate(descriptor, mode, offset, length));
}

int towline_syncfs(int descriptor) { return result(syncfs(descriptor)); }

int towline_start_writeback(int descriptor) {
    return result(sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE));
}

int towline_wait_for_writeback(int descriptor) {
    return result(sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE));
}

int towline_rename(int source, const char *from, int target, const char *to, int keeps) {
    return result(keeps ? renameat2(source, from, target, to, RENAME_NOREPLACE)
                        : renameat(source, from, target, to));
}

// The path to a file without a name, for a process without privileges (open(2), O_TMPFILE).
static const char descriptors[] = "/proc/self/fd";

int towline_open_unnamed(int directory, unsigned mode) {
    static atomic_int leads_there; // 0: not checked yet, 1: yes, -1: no
    int known = atomic_load_explicit(&leads_there, memory_order_relaxed);
    if (known == 0) {
        // Before Linux 6.0 such a file could escape the umask (fs/namei.c, vfs_tmpfile).
        struct utsname kernel;
        int isNew = uname(&kernel) == 0 && atoi(kernel.release) >= 6;
        known = isNew && faccessat(AT_FDCWD, descriptors, X_OK, 0) == 0 ? 1 : -1;
        atomic_store_explicit(&leads_there, known, memory_order_relaxed);
    }
    if (known < 0) return -EOPNOTSUPP;
    return result(openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, (mode_t)mode));
}

int towline_name(int descriptor, int directory, const char *name) {
    // Since Linux 6.10 this needs no privilege if the process opened the file (link(2)).
    if (linkat(descriptor, "", directory, name, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT) return -errno;
    char path[sizeof descriptors + 16];
    snprintf(path, sizeof path, "%s/%d", descriptors, descriptor);
    return result(linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW));
}

int towline_fsetxattr(int descriptor, const char *name, const void *value, size_t size) {
    return result(fsetxattr(descriptor, name, value, size, 0));
}

int64_t towline_fgetxattr(int descriptor, const char *name, void *value, size_t size) {
    ssize_t length = fgetxattr(descriptor, name, value, size);
    if (length < 0 && errno == EBADF) {
        // A directory that is not readable is open with O_PATH, which does not permit fgetxattr(2).
        char path[64];
        snprintf(path, sizeof path, "%s/%d", descriptors, descriptor);
        length = getxattr(path, name, value, size);
    }
    return length < 0 ? -errno : length;
}

// Lustre may lack flock(2) and support locks of open files (fcntl(2)).
int towline_lock(int descriptor) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != ENOSYS && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOLCK) return -errno;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return 0;
    return errno == EACCES ? -EWOULDBLOCK : -errno;
}

int towline_become(int other, int descriptor) { return result(dup3(other, descriptor, O_CLOEXEC)); }

int64_t towline_seek(int descriptor, int64_t offset, int hole) {
    off_t position = lseek(descriptor, offset, hole ? SEEK_HOLE : SEEK_DATA);
    return position < 0 ? -errno : position;
}

static _Thread_local void *thread_local_value;

void *towline_thread_local(void) { return thread_local_value; }

void towline_set_thread_local(void *value) { thread_local_value = value; }

uint32_t towline_major(uint64_t device) { return major(device); }

uint32_t towline_minor(uint64_t device) { return minor(device); }
