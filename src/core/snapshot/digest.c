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

void digest_begin(struct digest *sum)
{
    digest_clear(sum);
    sum->context = EVP_MD_CTX_new();
    if (!sum->context || EVP_DigestInit_ex(sum->context, EVP_sha256(), NULL) != 1)
        abort(); // like any small allocation
}

void digest_add(struct digest *sum, const void *bytes, size_t length)
{
    (void)EVP_DigestUpdate(sum->context, bytes, length);
}

void digest_end(struct digest *sum, char text[DIGEST_TEXT])
{
    unsigned char bytes_out[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    (void)EVP_DigestFinal_ex(sum->context, bytes_out, &length);
    for (unsigned i = 0; i < length; i++)
        (void)snprintf(text + (size_t)2 * i, 3, "%02x", bytes_out[i]);
    digest_clear(sum);
}

void digest_clear(struct digest *sum)
{
    EVP_MD_CTX_free(sum->context);
    sum->context = NULL;
}

void digest_of(const void *bytes, size_t length, char text[DIGEST_TEXT])
{
    struct digest sum;

    digest_begin(&sum);
    digest_add(&sum, bytes, length);
    digest_end(&sum, text);
}

int digest_file(int fd, char text[DIGEST_TEXT], struct error *err)
{
    struct digest sum = {0};
    char piece[PIECE];
    ssize_t got;

    digest_begin(&sum);
    for (off_t at = 0; (got = pread(fd, piece, sizeof piece, at)) != 0; at += got) {
        if (got < 0) {
            digest_clear(&sum);
            return error_sys(err, "read a file of the snapshot");
        }
        digest_add(&sum, piece, (size_t)got);
    }
    digest_end(&sum, text);
    return 0;
}
