// Reads an archive in a confined child process: libarchive parses bytes that come from anybody.
//
// The child is this program again, started through /proc/self/exe, so it shares no memory with this process. The child may read
// the archive and write frames to a pipe, and nothing else: no files, no sockets, no programs (seccomp(2)), and a limited
// amount of memory (setrlimit(2)). The parent makes the files and trusts no frame.
#pragma once

#include <stdint.h>

/// A frame: this head, then `path` bytes and `target` bytes. A frame has at most `TOWLINE_UNPACK_BYTES` of both together.
typedef struct {
    uint32_t kind;
    /// Head: one of `TOWLINE_UNPACK_FILE` and so on. Error: one of `TOWLINE_UNPACK_DAMAGED` and so on.
    uint32_t detail;
    /// Head: the declared size. Data: the offset in the file.
    int64_t number;
    /// Head: the bytes of the decompressed archive up to the entry's data, headers included.
    int64_t stream;
    /// Head: the modification time in seconds since 1970, if `has_time`.
    int64_t time;
    uint32_t has_time;
    /// Head: the length of the path. Data: of the data. Error: of the text.
    uint32_t path;
    /// Head: the length of the target of a link.
    uint32_t target;
    uint32_t reserved;
} towline_unpack_frame;

enum {
    TOWLINE_UNPACK_HEAD = 1,
    TOWLINE_UNPACK_DATA = 2,
    TOWLINE_UNPACK_END_OF_ENTRY = 3,
    TOWLINE_UNPACK_END = 4,
    TOWLINE_UNPACK_ERROR = 5,
};

enum {
    TOWLINE_UNPACK_FILE = 1,
    TOWLINE_UNPACK_PROGRAM = 2,
    TOWLINE_UNPACK_DIRECTORY = 3,
    TOWLINE_UNPACK_SYMBOLIC_LINK = 4,
    TOWLINE_UNPACK_HARD_LINK = 5,
    TOWLINE_UNPACK_OTHER = 6,
};

enum {
    TOWLINE_UNPACK_DAMAGED = 1,
    TOWLINE_UNPACK_ENCRYPTED = 2,
    TOWLINE_UNPACK_NO_NAME = 3,
    TOWLINE_UNPACK_LAYERS = 4,
    TOWLINE_UNPACK_UNSUPPORTED = 5,
    TOWLINE_UNPACK_MEMORY = 6,
};

#define TOWLINE_UNPACK_BYTES (256 << 10)

/// libarchive and the libraries that it uses, each as NAME VERSION or NAME/VERSION.
const char *towline_archive_version(void);

/// Starts the child.
///
/// - `archive`: a descriptor of the archive, at its beginning.
/// - `memory`: the limit of the child's data in bytes. If it is 0, the child only tests its limits, and sends a frame
///   of the kind `TOWLINE_UNPACK_END` if a forbidden call fails.
/// - `output`: receives the descriptor that frames are read from.
///
/// Returns the number of the process, or the negated errno.
int towline_unpack_start(int archive, int64_t memory, int *output);
