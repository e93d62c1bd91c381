#ifndef CPAGE_H
#define CPAGE_H

#include <stddef.h>

/// A file of the web page, as it is in the folder `TowlineService/Page`.
typedef struct {
    /// Its path in the folder.
    const char *_Nonnull name;
    const unsigned char *_Nonnull bytes;
    size_t count;
} cpage_file;

/// The file of that number; `NULL` beyond the last.
const cpage_file *_Nullable cpage_file_at(size_t number);

/// The OpenAPI document.
cpage_file cpage_api_document(void);

#endif
