/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in plain C, and by instructions of x86 where they are there; see sha256.h. */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static void mix_plain(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks; blocks--, data += 64) {
        uint32_t w[64], s[8];

        for (unsigned i = 0; i < 16; i++)
            w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 |
                   (uint32_t)data[4 * i + 2] << 8 | data[4 * i + 3];
        for (unsigned i = 16; i < 64; i++) {
            uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
            uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + low + w[i - 7] + high;
        }
        memcpy(s, state, sizeof s);
        for (unsigned i = 0; i < 64; i++) {
            uint32_t high = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
            uint32_t first = s[7] + high + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
            uint32_t low = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
            uint32_t second = low + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += first;
            s[0] = first + second;
        }
        for (unsigned i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if defined __x86_64__
/* The instructions hold the state as ABEF and CDGH, and do two rounds at a time with two words of the message and their constants. */
__attribute__((target("sha,sse4.1"))) static void mix_fast(uint32_t state[8], const uint8_t *data,
                                                           size_t blocks)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);        // CDAB
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b); // EFGH
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; blocks; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];

        for (unsigned i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), order);
        for (unsigned i = 0; i < 16; i++) {
            if (i >= 4) { // the next four words, from the sixteen before them
                __m128i next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
                w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
            }
            __m128i sum =
                _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);  // FEBA
    high = _mm_shuffle_epi32(cdgh, 0xb1); // DCHG
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static int is_fast(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

static void mix(struct sha256 *sha, const uint8_t *data, size_t blocks)
{
#if defined __x86_64__
    static int fast = -1; // the same for whoever finds out first

    if (fast < 0)
        __atomic_store_n(&fast, is_fast(), __ATOMIC_RELAXED);
    if (__atomic_load_n(&fast, __ATOMIC_RELAXED)) {
        mix_fast(sha->state, data, blocks);
        return;
    }
#endif
    mix_plain(sha->state, data, blocks);
}

void sha256_init(struct sha256 *sha)
{
    *sha = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sha, const void *data, size_t length)
{
    const uint8_t *at = data;
    size_t used = sha->length % 64;

    sha->length += length;
    if (used) {
        size_t more = 64 - used < length ? 64 - used : length;
        memcpy(sha->block + used, at, more);
        at += more;
        length -= more;
        if (used + more < 64)
            return;
        mix(sha, sha->block, 1);
    }
    if (length >= 64)
        mix(sha, at, length / 64);
    if (length % 64)
        memcpy(sha->block, at + length / 64 * 64, length % 64);
}

void sha256_end(struct sha256 *sha, char text[SHA256_TEXT])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = sha->length * 8;
    uint8_t size[8];

    for (unsigned i = 0; i < 8; i++)
        size[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(sha, padding, 1 + (119 - sha->length % 64) % 64);
    sha256_add(sha, size, sizeof size);
    for (unsigned i = 0; i < 8; i++)
        (void)snprintf(text + 8 * i, 9, "%08x", sha->state[i]);
}
