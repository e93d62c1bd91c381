#pragma once
#include <archive.h>
#include <archive_entry.h>

#if ARCHIVE_VERSION_NUMBER < 3006000
#error "libarchive 3.6.0 or newer is needed"
#endif
