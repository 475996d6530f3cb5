/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 sums; see sum.h. */
#include "core/snapshot/digest.h"

#include "base/mem.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE 65536

void sum_begin(struct sum *sum)
{
    sum_clear(sum);
    sum->context = EVP_MD_CTX_new();
    if (!sum->context || EVP_DigestInit_ex(sum->context, EVP_sha256(), NULL) != 1)
        abort(); // like any small allocation
}

void sum_add(struct sum *sum, const void *bytes, size_t length)
{
    (void)EVP_DigestUpdate(sum->context, bytes, length);
}

void sum_end(struct sum *sum, char text[SUM_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    (void)EVP_DigestFinal_ex(sum->context, digest, &length);
    for (unsigned i = 0; i < length; i++)
        (void)snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
    sum_clear(sum);
}

void sum_clear(struct sum *sum)
{
    EVP_MD_CTX_free(sum->context);
    sum->context = NULL;
}

void sum_of(const void *bytes, size_t length, char text[SUM_TEXT])
{
    struct sum sum;

    sum_begin(&sum);
    sum_add(&sum, bytes, length);
    sum_end(&sum, text);
}

int sum_file(int fd, char text[SUM_TEXT], struct error *err)
{
    struct sum sum = {0};
    char piece[PIECE];
    ssize_t got;

    sum_begin(&sum);
    for (off_t at = 0; (got = pread(fd, piece, sizeof piece, at)) != 0; at += got) {
        if (got < 0) {
            sum_clear(&sum);
            return error_sys(err, "read a file of the snapshot");
        }
        sum_add(&sum, piece, (size_t)got);
    }
    sum_end(&sum, text);
    return 0;
}
