/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), for what is named by it: blobs of images. The static burrow has no library that could do it; processors with
 * instructions for it are asked to.
 * Threads: one per object.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT 65 // 64 hexadecimal digits and a NUL

struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
/* In lower-case digits. */
void sha256_end(struct sha256 *sha, char text[SHA256_TEXT]);
