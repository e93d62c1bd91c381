// System calls that Swift cannot call, because Glibc's module hides the declarations that need _GNU_SOURCE.
//
// Functions return a result that is not negative, or the negated errno, like the kernel.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The result of statx(2) for a file. The birth time is zero if the file system does not store it.
typedef struct {
    uint64_t device;
    uint64_t inode;
    int64_t birth_seconds;
    int64_t modified_seconds;
    int64_t changed_seconds;
    int64_t size;
    uint64_t blocks;
    uint32_t birth_nanoseconds;
    uint32_t modified_nanoseconds;
    uint32_t changed_nanoseconds;
    uint32_t links;
    uint32_t mode;
    uint32_t owner;
    uint32_t device_major;
    uint32_t device_minor;
} towline_status;

/// The sizes of a file system in bytes (fstatfs(2)): available to an ordinary user, and total; its type and its f_fsid.
typedef struct {
    int64_t available;
    int64_t total;
    int64_t type;
    uint64_t id;
} towline_space;

/// statx(2) without following a link; an empty path means the descriptor itself.
int towline_statx(int directory, const char *path, towline_status *status);
/// Return the major and the minor number of `device`.
uint32_t towline_major(uint64_t device);
uint32_t towline_minor(uint64_t device);
int towline_fstatfs(int descriptor, towline_space *space);
/// statx(2), STATX_ATTR_MOUNT_ROOT: 1 if a file system is mounted at `path`, 0 if not or if unknown (before Linux 5.8).
int towline_is_mount_point(int directory, const char *path);
int towline_fallocate(int descriptor, int mode, int64_t offset, int64_t length);
int towline_syncfs(int descriptor);
/// sync_file_range(2) with WRITE only: starts to write dirty pages, does not wait, reports no write-back error.
int towline_start_writeback(int descriptor);
/// sync_file_range(2) with WAIT_BEFORE only: waits for started writes, starts none, reports the file's write-back
/// errors.
int towline_wait_for_writeback(int descriptor);
/// renameat2(2) from one directory to another; `keeps` means RENAME_NOREPLACE.
int towline_rename(int source, const char *from, int target, const char *to, int keeps);
/// open(2) with O_TMPFILE: creates a file without a name in the file system of `directory`. -EOPNOTSUPP also if the
/// file could not be named later, and before Linux 6.0.
int towline_open_unnamed(int directory, unsigned mode);
/// linkat(2): gives a file without a name its first name, which must be free.
int towline_name(int descriptor, int directory, const char *name);
/// dup3(2): makes `descriptor` refer to the open file of `other`.
int towline_become(int other, int descriptor);
/// flock(2) without waiting or, if flock is not supported, a lock of the open file (fcntl(2)). -EWOULDBLOCK if another
/// open file holds the lock.
int towline_lock(int descriptor);
int towline_fsetxattr(int descriptor, const char *name, const void *value, size_t size);
int64_t towline_fgetxattr(int descriptor, const char *name, void *value, size_t size);
/// pipe2(2): creates a nonblocking pipe that children do not inherit, with room for `size` bytes. -ENOBUFS if that is
/// more than the system allows.
int towline_pipe(int *ends, int size);
/// splice(2): moves up to `count` received bytes from a socket to a pipe, without waiting. Returns the number of bytes;
/// 0 at the end.
int64_t towline_receive(int socket, int pipe, size_t count);
/// splice(2): moves up to `count` bytes from a pipe to an offset in a file. Returns the number of bytes.
int64_t towline_write_from_pipe(int file, int pipe, size_t count, int64_t offset);
/// Returns the number of bytes that were read from a TCP connection since its start. -EAGAIN if bytes arrive too fast
/// for an exact count.
int64_t towline_taken(int socket);
/// The number of unread bytes of a TCP connection, and its round-trip time in microseconds: the larger one of the times
/// that the kernel measured as a sender and as a receiver.
typedef struct {
    int64_t unread;
    int64_t round_trip;
} towline_receive_buffer;
int towline_read_receive_buffer(int socket, towline_receive_buffer *buffer);
/// Sets the size of a TCP connection's receive buffer, in bytes. The system limits the size to twice
/// net.core.rmem_max. 0 lets the system choose again (SO_BUF_LOCK), which needs Linux 5.14.
int towline_set_receive_buffer(int socket, int size);
/// Returns the umask(2) without changing it; 077 if /proc does not report it.
uint32_t towline_umask(void);
/// lseek(2) with SEEK_DATA or, if `hole` is not zero, SEEK_HOLE.
int64_t towline_seek(int descriptor, int64_t offset, int hole);

/// The process group of a program that `towline_spawn` starts.
enum towline_group { towline_same_group, towline_new_group, towline_new_session };
/// Starts a program without a shell, but searches PATH for `arguments[0]`. The program reads from /dev/null, writes to
/// `output`, and inherits no other descriptor and only default signal handling. `environment` and `directory`: NULL
/// for those of this process. Returns the process id.
int towline_spawn(char *const *arguments, char *const *environment, int output, const char *directory,
                  enum towline_group group);
/// Returns 1 if a process has ended, with `si_code` and `si_status` of waitid(2), and 0 if the process runs. The
/// process stays a zombie.
int towline_peek_end(int process, int *code, int *status);

/// Returns a nonblocking netlink socket that reports every change of links, addresses and routes.
int towline_watch_network(void);
/// Returns 1 if an interface other than loopback is up, has a carrier and has a route, 0 if not, and -errno if the routes
/// of the network namespace of this thread cannot be read. IPv6 link-local and multicast routes do not count.
int towline_has_network(void);
/// Returns 1 if the kernel delivers packets for an address to this machine (a route of type local, broadcast, anycast
/// or multicast), 0 if not, and -errno if the query fails. `address`: 4 or 16 bytes.
int towline_is_delivered_here(int family, const void *address);

/// Returns the version of Landlock that the kernel supports (landlock(7)); 0 without Landlock.
int towline_landlock_version(void);
/// Limits this thread, and threads and processes that it starts: they can change files only below the `writable` paths
/// (a list that ends with NULL), and cannot start programs unless `runs_programs`. The limits are permanent. Returns
/// the version of Landlock, 0 if the kernel does not support it, or -errno: -EBUSY if other threads run, because they
/// would not be limited.
int towline_confine(char *const *writable, int runs_programs);

/// Sets malloc to keep up to `bytes` freed bytes at the end of its heap instead of returning them (mallopt(3)).
void towline_keep_freed_memory(int bytes);

/// Protects the memory of this process from other processes without privileges: it leaves no core file, and no process
/// of the same user can trace it or read its memory, environment and descriptors. Children become readable again when
/// they execute a program, and can raise their limit of core files again.
void towline_protect_memory(void);
/// Returns 1 if the kernel has applied the limits of `towline_protect_memory` to this process.
int towline_memory_is_protected(void);
/// Returns 1 unless this process is in the initial user namespace. In other namespaces, users without a mapped number
/// share one number (user_namespaces(7)).
int towline_is_in_user_namespace(void);

/// Returns the command-line arguments in the original memory of the process, which glibc passes to constructors; NULL
/// with other C libraries.
char **towline_arguments(int *count);

/// Return and set a pointer of the calling thread; NULL until it is set.
void *towline_thread_local(void);
void towline_set_thread_local(void *value);

/// Continues a CRC-32C (RFC 3720 appendix B.4); start with 0. Uses the processor's instruction if available.
uint32_t towline_crc32c(uint32_t crc, const void *bytes, size_t count);
/// Continues a CRC-32C with a table only, as a reference for tests.
uint32_t towline_crc32c_table(uint32_t crc, const void *bytes, size_t count);
