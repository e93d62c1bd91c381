#pragma once
// libcurl's option calls are variadic, which Swift cannot call: each wrapper below fixes one argument type.
#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#if LIBCURL_VERSION_NUM < 0x075801
#error "libcurl 7.88.1 or newer is needed"
#endif

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt
#undef curl_share_setopt

static inline CURLcode ccurl_set_long(CURL *_Nonnull handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *_Nonnull handle, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_string(CURL *_Nonnull handle, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_url(CURL *_Nonnull handle, CURLU *_Nullable value) {
    return curl_easy_setopt(handle, CURLOPT_CURLU, value);
}

static inline CURLcode ccurl_set_list(CURL *_Nonnull handle, CURLoption option, struct curl_slist *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_data_callback(CURL *_Nonnull handle, CURLoption option,
                                               size_t (*_Nonnull callback)(char *_Nullable, size_t, size_t,
                                                                           void *_Nullable)) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ccurl_set_prerequest_callback(CURL *_Nonnull handle,
                                                     int (*_Nonnull callback)(void *_Nullable, char *_Nullable,
                                                                              char *_Nullable, int, int)) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_set_socket_callback(CURL *_Nonnull handle,
                                                 int (*_Nonnull callback)(void *_Nullable, curl_socket_t,
                                                                          curlsocktype)) {
    return curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, callback);
}

static inline CURLcode ccurl_set_close_socket_callback(CURL *_Nonnull handle,
                                                       int (*_Nonnull callback)(void *_Nullable, curl_socket_t)) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_open_socket_callback(CURL *_Nonnull handle,
                                                      curl_socket_t (*_Nonnull callback)(void *_Nullable, curlsocktype,
                                                                                         struct curl_sockaddr *_Nullable)) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_progress_callback(CURL *_Nonnull handle,
                                                   int (*_Nonnull callback)(void *_Nullable, curl_off_t, curl_off_t,
                                                                            curl_off_t, curl_off_t)) {
    return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
}

static inline CURLcode ccurl_set_trace_callback(CURL *_Nonnull handle,
                                                int (*_Nonnull callback)(CURL *_Nonnull, curl_infotype, char *_Nullable,
                                                                         size_t, void *_Nullable)) {
    return curl_easy_setopt(handle, CURLOPT_DEBUGFUNCTION, callback);
}

static inline CURLcode ccurl_get_long(CURL *_Nonnull handle, CURLINFO info, long *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_text(CURL *_Nonnull handle, CURLINFO info, const char *_Nullable *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_list(CURL *_Nonnull handle, CURLINFO info, struct curl_slist *_Nullable *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *_Nonnull handle, CURLINFO info, curl_off_t *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_pointer(CURL *_Nonnull handle, CURLINFO info, void *_Nullable *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_pointer(CURLM *_Nonnull multi, CURLMoption option, void *_Nullable value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *_Nonnull multi,
                                                        int (*_Nonnull callback)(CURL *_Nullable, curl_socket_t, int,
                                                                                 void *_Nullable, void *_Nullable)) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
}

static inline CURLMcode ccurl_multi_set_timer_callback(CURLM *_Nonnull multi,
                                                       int (*_Nonnull callback)(CURLM *_Nullable, long,
                                                                                void *_Nullable)) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
}

static inline CURLSHcode ccurl_share_data(CURLSH *_Nonnull share, curl_lock_data data) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}

static inline CURLcode ccurl_set_tls_callback(CURL *_Nonnull handle,
                                              CURLcode (*_Nullable callback)(CURL *_Nullable, void *_Nullable,
                                                                             void *_Nullable)) {
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
}

/// Returns libcurl's version information if libcurl uses OpenSSL and reports the paths of its certificate authorities
/// (7.70 or later); otherwise `NULL`.
static inline const curl_version_info_data *_Nullable ccurl_openssl_authorities(void) {
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    if (info->age < CURLVERSION_SEVENTH || !info->ssl_version) return NULL;
    return strncmp(info->ssl_version, "OpenSSL/", 8) ? NULL : info;
}

/// Returns the version of the loaded libcurl, in the form of `LIBCURL_VERSION_NUM`, which is the version of the
/// headers.
static inline unsigned ccurl_version(void) { return curl_version_info(CURLVERSION_NOW)->version_num; }

/// A record of the end of a TLS connection. The connection and each handle that watches the connection hold a
/// reference, because libcurl may keep and close the connection after the handle is freed.
struct ccurl_close_watch {
    int holders;
    /// 1 after a close_notify.
    int was_closed;
};

/// Releases a reference to a watch. The last release frees the watch.
static inline void ccurl_release_watch(struct ccurl_close_watch *_Nullable watch) {
    if (watch && __atomic_sub_fetch(&watch->holders, 1, __ATOMIC_ACQ_REL) == 0) free(watch);
}

/// Releases a connection's reference to its watch. OpenSSL calls this function when a connection is freed.
static inline void ccurl_connection_freed(void *_Nullable parent, void *_Nullable watch, CRYPTO_EX_DATA *_Nullable data,
                                          int index, long number, void *_Nullable pointer) {
    ccurl_release_watch(watch);
}

/// Returns a new index for a watch in each TLS connection of OpenSSL; -1 if no memory is available.
static inline int ccurl_new_tls_index(void) { return SSL_get_ex_new_index(0, NULL, NULL, NULL, ccurl_connection_freed); }

/// Records a close_notify in the watch of a connection. OpenSSL calls this function with every event.
static inline void ccurl_note_tls_event(const SSL *_Nonnull connection, int index, int what, int value) {
    struct ccurl_close_watch *watch = SSL_get_ex_data(connection, index);
    if (watch && what == SSL_CB_READ_ALERT && (value & 0xFF) == SSL_AD_CLOSE_NOTIFY) watch->was_closed = 1;
}

/// Returns a new index for a number in each context of OpenSSL; -1 if no memory is available.
static inline int ccurl_new_context_index(void) { return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL); }

/// Stores `number` in a context, and sets `callback` for servers that request a client certificate when none is set.
static inline void ccurl_watch_certificate_requests(SSL_CTX *_Nonnull context, int index, unsigned long number,
                                                    int (*_Nonnull callback)(SSL *_Nullable,
                                                                             X509 *_Nullable *_Nullable,
                                                                             EVP_PKEY *_Nullable *_Nullable)) {
    if (index < 0 || !SSL_CTX_set_ex_data(context, index, (void *)number)) return;
    SSL_CTX_set_client_cert_cb(context, callback);
}

/// Returns the number stored in the context of a connection.
static inline unsigned long ccurl_context_number(const SSL *_Nonnull connection, int index) {
    return (unsigned long)SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), index);
}

/// Returns the handle's TLS connection; `NULL` without a connection, or if the TLS library is not OpenSSL.
static inline SSL *_Nullable ccurl_tls_connection(CURL *_Nonnull handle) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/// Watches the handle's TLS connection for its end. Call this function from a callback of the handle. `callback` must
/// call `ccurl_note_tls_event`.
///
/// Returns the watch, for `ccurl_release_watch`; NULL if the connection has no TLS, or the TLS library is not OpenSSL.
static inline struct ccurl_close_watch *_Nullable ccurl_watch_close_notify(
    CURL *_Nonnull handle, int index, void (*_Nonnull callback)(const SSL *_Nullable, int, int)) {
    SSL *connection = index < 0 ? NULL : ccurl_tls_connection(handle);
    if (!connection) return NULL;
    struct ccurl_close_watch *watch = SSL_get_ex_data(connection, index);
    if (watch) {
        __atomic_add_fetch(&watch->holders, 1, __ATOMIC_ACQ_REL);
        return watch;
    }
    watch = calloc(1, sizeof *watch);
    if (!watch || !SSL_set_ex_data(connection, index, watch)) {
        free(watch);
        return NULL;
    }
    watch->holders = 2;
    SSL_set_info_callback(connection, callback);
    return watch;
}

/// Returns whether the handle's TLS connection agreed on HTTP/2 (ALPN, RFC 7301).
static inline int ccurl_speaks_http2(CURL *_Nonnull handle) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL *connection = ccurl_tls_connection(handle);
    if (connection) SSL_get0_alpn_selected(connection, &name, &length);
    return length == 2 && !memcmp(name, "h2", 2);
}

/// Returns the easy handle of a finished message and stores its result; `NULL` for any other message.
static inline CURL *_Nullable ccurl_finished(const CURLMsg *_Nonnull message, CURLcode *_Nonnull result) {
    if (message->msg != CURLMSG_DONE) return NULL;
    *result = message->data.result;
    return message->easy_handle;
}

/// Returns `CURLAUTH_BASIC`, an expression that Swift does not import, like `CURLAUTH_DIGEST`.
static inline long ccurl_basic_authentication(void) { return (long)CURLAUTH_BASIC; }
static inline long ccurl_basic_or_digest_authentication(void) { return (long)(CURLAUTH_BASIC | CURLAUTH_DIGEST); }

/// Initializes libcurl with `CURL_GLOBAL_DEFAULT`, an expression that Swift does not import.
static inline CURLcode ccurl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

#ifdef __linux__
// Swift's Glibc module does not contain these headers.
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

/// Names the calling thread. The kernel uses at most 15 bytes of the name.
static inline void ccurl_name_thread(const char *_Nonnull name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static inline int ccurl_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int ccurl_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

/// Watches `descriptor` for the given events, or stops watching for 0 events. `is_new` is a guess whether the
/// descriptor is not watched yet; a wrong guess costs a system call.
static inline int ccurl_epoll_watch(int poll, int descriptor, uint32_t events, uint64_t tag, _Bool is_new) {
    struct epoll_event event = {.events = events};
    event.data.u64 = tag;
    if (events == 0) return epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, &event);
    if (epoll_ctl(poll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) == 0) return 0;
    return epoll_ctl(poll, is_new ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
}
#endif
