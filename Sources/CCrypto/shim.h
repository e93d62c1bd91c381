#pragma once
// For the digest of a few bytes below.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/sha.h>

/// The SHA-256 of a few bytes, into 32 bytes; 0 if this libcrypto refuses.
///
/// Without OpenSSL 3's providers where that can be done: to look for one takes a third of a millisecond the first time,
/// which is a good part of a small download.
static inline int ccrypto_sha256(const void *bytes, size_t count, unsigned char *value) {
#if OPENSSL_VERSION_MAJOR < 4 && !defined(OPENSSL_NO_DEPRECATED_3_0)
    SHA256_CTX context;
    return SHA256_Init(&context) && SHA256_Update(&context, bytes, count) && SHA256_Final(value, &context);
#else
    return EVP_Digest(bytes, count, value, NULL, EVP_sha256(), NULL);
#endif
}
