// Embeds the web page in the binary with `#embed` (C23 §6.10.4), which compiles quickly; a Swift array literal would take
// minutes. A test checks that all files of the folder are listed here.
#include "CPage.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char actions_js[] = {
#embed "../TowlineService/Page/actions.js"
};
static const unsigned char add_js[] = {
#embed "../TowlineService/Page/add.js"
};
static const unsigned char addDialog_js[] = {
#embed "../TowlineService/Page/addDialog.js"
};
static const unsigned char announce_js[] = {
#embed "../TowlineService/Page/announce.js"
};
static const unsigned char api_js[] = {
#embed "../TowlineService/Page/api.js"
};
static const unsigned char base_css[] = {
#embed "../TowlineService/Page/base.css"
};
static const unsigned char controls_js[] = {
#embed "../TowlineService/Page/controls.js"
};
static const unsigned char details_css[] = {
#embed "../TowlineService/Page/details.css"
};
static const unsigned char details_js[] = {
#embed "../TowlineService/Page/details.js"
};
static const unsigned char dialogs_css[] = {
#embed "../TowlineService/Page/dialogs.css"
};
static const unsigned char dialogs_js[] = {
#embed "../TowlineService/Page/dialogs.js"
};
static const unsigned char dom_js[] = {
#embed "../TowlineService/Page/dom.js"
};
static const unsigned char early_js[] = {
#embed "../TowlineService/Page/early.js"
};
static const unsigned char facts_js[] = {
#embed "../TowlineService/Page/facts.js"
};
static const unsigned char folders_js[] = {
#embed "../TowlineService/Page/folders.js"
};
static const unsigned char format_js[] = {
#embed "../TowlineService/Page/format.js"
};
static const unsigned char graph_js[] = {
#embed "../TowlineService/Page/graph.js"
};
static const unsigned char header_js[] = {
#embed "../TowlineService/Page/header.js"
};
static const unsigned char icon_svg[] = {
#embed "../TowlineService/Page/icon.svg"
};
static const unsigned char icons_js[] = {
#embed "../TowlineService/Page/icons.js"
};
static const unsigned char index_html[] = {
#embed "../TowlineService/Page/index.html"
};
static const unsigned char keyboard_js[] = {
#embed "../TowlineService/Page/keyboard.js"
};
static const unsigned char language_js[] = {
#embed "../TowlineService/Page/language.js"
};
static const unsigned char links_js[] = {
#embed "../TowlineService/Page/links.js"
};
static const unsigned char list_css[] = {
#embed "../TowlineService/Page/list.css"
};
static const unsigned char list_js[] = {
#embed "../TowlineService/Page/list.js"
};
static const unsigned char live_js[] = {
#embed "../TowlineService/Page/live.js"
};
static const unsigned char main_js[] = {
#embed "../TowlineService/Page/main.js"
};
static const unsigned char memory_js[] = {
#embed "../TowlineService/Page/memory.js"
};
static const unsigned char menu_js[] = {
#embed "../TowlineService/Page/menu.js"
};
static const unsigned char order_js[] = {
#embed "../TowlineService/Page/order.js"
};
static const unsigned char reorder_js[] = {
#embed "../TowlineService/Page/reorder.js"
};
static const unsigned char row_js[] = {
#embed "../TowlineService/Page/row.js"
};
static const unsigned char segments_js[] = {
#embed "../TowlineService/Page/segments.js"
};
static const unsigned char settings_js[] = {
#embed "../TowlineService/Page/settings.js"
};
static const unsigned char store_js[] = {
#embed "../TowlineService/Page/store.js"
};
static const unsigned char stream_js[] = {
#embed "../TowlineService/Page/stream.js"
};
static const unsigned char timeline_js[] = {
#embed "../TowlineService/Page/timeline.js"
};
static const unsigned char wordsChinese_js[] = {
#embed "../TowlineService/Page/wordsChinese.js"
};
static const unsigned char wordsEnglish_js[] = {
#embed "../TowlineService/Page/wordsEnglish.js"
};

#define FILE_OF(name, symbol) { name, symbol, sizeof symbol }

static const cpage_file files[] = {
    FILE_OF("actions.js", actions_js),
    FILE_OF("add.js", add_js),
    FILE_OF("addDialog.js", addDialog_js),
    FILE_OF("announce.js", announce_js),
    FILE_OF("api.js", api_js),
    FILE_OF("base.css", base_css),
    FILE_OF("controls.js", controls_js),
    FILE_OF("details.css", details_css),
    FILE_OF("details.js", details_js),
    FILE_OF("dialogs.css", dialogs_css),
    FILE_OF("dialogs.js", dialogs_js),
    FILE_OF("dom.js", dom_js),
    FILE_OF("early.js", early_js),
    FILE_OF("facts.js", facts_js),
    FILE_OF("folders.js", folders_js),
    FILE_OF("format.js", format_js),
    FILE_OF("graph.js", graph_js),
    FILE_OF("header.js", header_js),
    FILE_OF("icon.svg", icon_svg),
    FILE_OF("icons.js", icons_js),
    FILE_OF("index.html", index_html),
    FILE_OF("keyboard.js", keyboard_js),
    FILE_OF("language.js", language_js),
    FILE_OF("links.js", links_js),
    FILE_OF("list.css", list_css),
    FILE_OF("list.js", list_js),
    FILE_OF("live.js", live_js),
    FILE_OF("main.js", main_js),
    FILE_OF("memory.js", memory_js),
    FILE_OF("menu.js", menu_js),
    FILE_OF("order.js", order_js),
    FILE_OF("reorder.js", reorder_js),
    FILE_OF("row.js", row_js),
    FILE_OF("segments.js", segments_js),
    FILE_OF("settings.js", settings_js),
    FILE_OF("store.js", store_js),
    FILE_OF("stream.js", stream_js),
    FILE_OF("timeline.js", timeline_js),
    FILE_OF("wordsChinese.js", wordsChinese_js),
    FILE_OF("wordsEnglish.js", wordsEnglish_js),
};

const cpage_file *cpage_file_at(size_t number) {
    return number < sizeof files / sizeof files[0] ? &files[number] : NULL;
}

static const unsigned char api_document[] = {
#embed "../TowlineService/API/openapi.json"
};

cpage_file cpage_api_document(void) { return (cpage_file)FILE_OF("openapi.json", api_document); }
