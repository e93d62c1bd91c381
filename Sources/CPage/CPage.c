// The web page, within the binary: `#embed` (C23 §6.10.4) costs the compiler nothing, where an array literal of Swift
// takes minutes. A test sees to it that no file of the folder is missing here.
#include "CPage.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "../TowlineService/Page/index.html"
};

#define FILE_OF(name, symbol) { name, symbol, sizeof symbol }

static const cpage_file files[] = {
    FILE_OF("index.html", index_html),
};

const cpage_file *cpage_file_at(size_t number) {
    return number < sizeof files / sizeof files[0] ? &files[number] : NULL;
}

static const unsigned char api_document[] = {
#embed "../TowlineService/API/openapi.json"
};

cpage_file cpage_api_document(void) { return (cpage_file)FILE_OF("openapi.json", api_document); }
