#include "CTowline.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int row = 1; row < 8; row++)
            table[row][byte] = (table[row - 1][byte] >> 8) ^ table[0][table[row - 1][byte] & 0xFF];
}

uint32_t towline_crc32c_table(uint32_t crc, const void *bytes, size_t count) {
    pthread_once(&table_once, fill_table);
    const uint8_t *next = bytes;
    crc = ~crc;
    // Eight bytes a step ("slicing by eight"), assembled by hand so that byte order does not matter.
    for (; count >= 8; count -= 8, next += 8) {
        uint32_t low = crc ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16 | (uint32_t)next[3] << 24);
        crc = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF] ^ table[4][low >> 24] ^
              table[3][next[4]] ^ table[2][next[5]] ^ table[1][next[6]] ^ table[0][next[7]];
    }
    while (count--) crc = crc >> 8 ^ table[0][(crc ^ *next++) & 0xFF];
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    uint64_t value = (uint32_t)~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        value = _mm_crc32_u64(value, word);
    }
    uint32_t rest = (uint32_t)value;
    while (count--) rest = _mm_crc32_u8(rest, *next++);
    return ~rest;
}

uint32_t towline_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return __builtin_cpu_supports("sse4.2") ? crc32c_instruction(crc, bytes, count)
                                            : towline_crc32c_table(crc, bytes, count);
}
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t towline_crc32c(uint32_t crc, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    crc = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        crc = __crc32cd(crc, word);
    }
    while (count--) crc = __crc32cb(crc, *next++);
    return ~crc;
}
#else
uint32_t towline_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return towline_crc32c_table(crc, bytes, count);
}
#endif
