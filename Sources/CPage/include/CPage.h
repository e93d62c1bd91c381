#ifndef CPAGE_H
#define CPAGE_H

#include <stddef.h>

/// A file of the web page, with the content of the file in the folder `TowlineService/Page`.
typedef struct {
    /// Path of the file, relative to the folder.
    const char *_Nonnull name;
    const unsigned char *_Nonnull bytes;
    size_t count;
} cpage_file;

/// Returns the file at an index; `NULL` if the index is out of range.
const cpage_file *_Nullable cpage_file_at(size_t number);

/// Returns the OpenAPI document.
cpage_file cpage_api_document(void);

#endif
