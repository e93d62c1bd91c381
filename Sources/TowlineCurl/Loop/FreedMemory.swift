import CTowline

/// A setting of malloc for the memory that libcurl frees.
package enum FreedMemory {
    /// Makes this process keep a few megabytes of freed memory from now on.
    ///
    /// Each attempt allocates and frees a buffer of about 100 KiB: returning it to the system and allocating it again
    /// costs more than all other memory of a small file. For download programs; a library does not change this setting.
    ///
    /// malloc gets six arenas (heaps with a lock each): enough for each thread that allocates all the time, and some
    /// for threads that allocate once. A thread that starts when all arenas are assigned shares one, and two busy
    /// threads in one arena wait for each other.
    package static func keep() { towline_keep_freed_memory(2 << 20, 1 << 20, 6) }
}
