/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 digests; see digest.h. */
#include "core/snapshot/digest.h"

#include "base/mem.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE 65536

void digest_begin(struct digest *digest)
{
    digest_clear(digest);
    digest->context = EVP_MD_CTX_new();
    if (!digest->context || EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) != 1)
        abort(); // like any small allocation
}

void digest_add(struct digest *digest, const void *bytes, size_t length)
{
    (void)EVP_DigestUpdate(digest->context, bytes, length);
}

void digest_end(struct digest *digest, char text[DIGEST_TEXT])
{
    unsigned char bytes_out[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    (void)EVP_DigestFinal_ex(digest->context, bytes_out, &length);
    for (unsigned i = 0; i < length; i++)
        (void)snprintf(text + (size_t)2 * i, 3, "%02x", bytes_out[i]);
    digest_clear(digest);
}

void digest_clear(struct digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

void digest_of(const void *bytes, size_t length, char text[DIGEST_TEXT])
{
    struct digest digest = {0};

    digest_begin(&digest);
    digest_add(&digest, bytes, length);
    digest_end(&digest, text);
}

int digest_file(int fd, char text[DIGEST_TEXT], struct error *err)
{
    struct digest digest = {0};
    char piece[PIECE];
    ssize_t got;

    digest_begin(&digest);
    for (off_t at = 0; (got = pread(fd, piece, sizeof piece, at)) != 0; at += got) {
        if (got < 0) {
            digest_clear(&digest);
            return error_sys(err, "read a file of the snapshot");
        }
        digest_add(&digest, piece, (size_t)got);
    }
    digest_end(&digest, text);
    return 0;
}
