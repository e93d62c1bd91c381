// The calls of the system that Swift cannot spell: Glibc's module hides what _GNU_SOURCE shows.
//
// Calls answer as the kernel does: a result that is not negative, or the negated errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// What statx(2) tells of a file. Birth time is zero where the file system keeps none.
typedef struct {
    uint64_t device;
    uint64_t inode;
    int64_t birth_seconds;
    int64_t modified_seconds;
    int64_t size;
    uint64_t blocks;
    uint32_t birth_nanoseconds;
    uint32_t modified_nanoseconds;
    uint32_t links;
    uint32_t mode;
    uint32_t owner;
    uint32_t device_major;
    uint32_t device_minor;
} towline_status;

/// The sizes of a file system in bytes (fstatfs(2)): free for an ordinary user, and total.
typedef struct {
    int64_t available;
    int64_t total;
    int64_t type;
} towline_space;

/// statx(2) without following a link; an empty path asks for the descriptor itself.
int towline_statx(int directory, const char *path, towline_status *status);
/// The two halves of `device`.
uint32_t towline_major(uint64_t device);
uint32_t towline_minor(uint64_t device);
int towline_fstatfs(int descriptor, towline_space *space);
int towline_fallocate(int descriptor, int mode, int64_t offset, int64_t length);
int towline_syncfs(int descriptor);
/// sync_file_range(2) with WRITE alone: begins to write what is dirty, waits for nothing, reports no error of it.
int towline_start_writeback(int descriptor);
/// sync_file_range(2) with WAIT_BEFORE alone: starts no writing, reports the file's write-back errors.
int towline_wait_for_writeback(int descriptor);
/// renameat2(2) from one directory to another; `keeps` is RENAME_NOREPLACE.
int towline_rename(int source, const char *from, int target, const char *to, int keeps);
/// open(2) with O_TMPFILE: a new file without a name, in the file system of `directory`. EOPNOTSUPP also where it could
/// not be given a name later, and before Linux 6.0.
int towline_open_unnamed(int directory, unsigned mode);
/// linkat(2): gives a file without a name its first one, which must be free.
int towline_name(int descriptor, int directory, const char *name);
/// dup3(2): makes `descriptor` another number of the open file of `other`.
int towline_become(int other, int descriptor);
/// flock(2) without waiting, or where that is not offered, a lock of the open file (fcntl(2)). -EWOULDBLOCK if it is
/// taken.
int towline_lock(int descriptor);
int towline_fsetxattr(int descriptor, const char *name, const void *value, size_t size);
int64_t towline_fgetxattr(int descriptor, const char *name, void *value, size_t size);
/// pipe2(2): two ends that nobody waits at and no child gets, with room for `size` bytes. -ENOBUFS if that is too much.
int towline_pipe(int *ends, int size);
/// splice(2): moves up to `count` bytes, at least one, that came to a socket into a pipe, waiting for none. How many; 0 at the
/// end.
int64_t towline_receive(int socket, int pipe, size_t count);
/// splice(2): moves up to `count` bytes that are in a pipe to a place in a file. How many.
int64_t towline_write_from_pipe(int file, int pipe, size_t count, int64_t offset);
/// How many bytes of a TCP connection were taken from its socket, since it began. -EAGAIN if they come too fast to tell.
int64_t towline_taken(int socket);
/// The mask that new files get (umask(2)), without changing it; 077 where /proc does not tell.
uint32_t towline_umask(void);
/// lseek(2) with SEEK_DATA or, if `hole` is not zero, SEEK_HOLE.
int64_t towline_seek(int descriptor, int64_t offset, int hole);

/// Starts a program: `arguments[0]` is looked for as a shell would, nothing else of a shell. It leads a process group
/// of its own and works in `/`, reads nothing, writes to `output` alone, has no other descriptor of ours, and signals
/// as they are by default. Answers the process id.
int towline_spawn(char *const *arguments, char *const *environment, int output);
/// A process's end, if it came: 1, and the code of waitid(2) and what it means; the process stays a zombie. 0: it runs.
int towline_peek_end(int process, int *code, int *status);

/// renameat2(2) with RENAME_NOREPLACE, between any two directories of one file system.
int towline_move(const char *from, const char *to);

/// A netlink socket that hears of every change of links, addresses and routes; it does not block.
int towline_watch_network(void);
/// Returns 1 if the kernel delivers packets for an address to this machine (a route of type local, broadcast, anycast
/// or multicast), 0 if it sends them elsewhere or nowhere, and -errno if it does not say. `address`: 4 or 16 bytes.
int towline_is_delivered_here(int family, const void *address);
/// Whether an interface other than the loopback is up, has a carrier, and an address that is not link-local.
int towline_has_address(void);

/// The version of Landlock that the kernel supports (landlock(7)); 0 without it.
int towline_landlock_version(void);
/// Limits this thread, and threads and processes that it starts: they can change files only below the `writable` paths
/// (a list that ends with NULL), and cannot start programs unless `runs_programs`. The limits are permanent. Returns
/// the version of Landlock, 0 if the kernel does not support it, or -errno: -EBUSY if other threads run, because they
/// would not be limited.
int towline_confine(char *const *writable, int runs_programs);

/// Keeps up to `kept` freed bytes of each of `arenas` arenas, and takes blocks of up to `largest` from them (mallopt(3)).
void towline_keep_freed_memory(int kept, int largest, int arenas);

/// Runs `body` on a detached thread of its own.
int towline_run_detached(void (*body)(void *argument), void *argument);

/// Keeps the memory of this process from others without privileges: it leaves no core file, and no other process of the
/// same user can trace it or read its memory, environment and descriptors. Children become readable again when they
/// execute a program, and can raise their limit of core files again.
void towline_protect_memory(void);
/// Returns 1 unless this process is in the first user namespace. In the others, all users without a number in the
/// namespace share one number (user_namespaces(7)).
int towline_is_in_user_namespace(void);

/// The words that the process was started with, in its own memory, where glibc hands them to what runs before `main`;
/// NULL elsewhere.
char **towline_arguments(int *count);

/// What belongs to the calling thread alone; NULL until it is set.
void *towline_thread_local(void);
void towline_set_thread_local(void *value);

/// Continues a CRC-32C (RFC 3720 appendix B.4); start with 0. Uses the processor's instruction where there is one.
uint32_t towline_crc32c(uint32_t crc, const void *bytes, size_t count);
/// The same from a table alone, for tests to compare with.
uint32_t towline_crc32c_table(uint32_t crc, const void *bytes, size_t count);
