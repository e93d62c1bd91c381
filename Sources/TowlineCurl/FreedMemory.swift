import CTowline

/// What becomes of memory that libcurl gives back.
package enum FreedMemory {
    /// From here on this process keeps a few freed megabytes.
    ///
    /// Each attempt takes and frees a buffer of some 100 KiB: giving it back to the system and taking it again costs more
    /// than the rest of a small file's memory. For programs whose business this is; a library leaves it alone.
    ///
    /// An arena for each thread that takes memory all the time, and some for those that do so once: a thread that comes when all
    /// are given shares one, and two busy threads in one arena wait for each other.
    package static func keep() { towline_keep_freed_memory(2 << 20, 1 << 20, 6) }
}
