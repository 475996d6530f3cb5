/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of deliveries; see signature.h. */
#include "hook/signature.h"

#include "base/mem.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST 32

const char *signature_make(const char *secret, int64_t seconds, const void *body, size_t length,
                           char out[SIGNATURE_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char time[24];
    int time_length = snprintf(time, sizeof time, "%" PRId64 ".", seconds);
    char *signed_text = xcalloc(1, (size_t)time_length + length + 1);
    unsigned digest_length = 0;

    memcpy(signed_text, time, (size_t)time_length);
    memcpy(signed_text + time_length, body, length);
    (void)HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)signed_text,
               (size_t)time_length + length, digest, &digest_length);
    free(signed_text);
    int used = snprintf(out, SIGNATURE_TEXT, "t=%" PRId64 ",v1=", seconds);
    for (unsigned i = 0; i < DIGEST; i++)
        used += snprintf(out + used, SIGNATURE_TEXT - (size_t)used, "%02x", digest[i]);
    return out;
}
