/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/hook/signature.c. */
#include "hook/signature.h"
#include "test.h"

TEST(a_signature_is_what_anybody_can_compute_who_has_the_secret)
{
    char text[SIGNATURE_TEXT];

    // printf '%s' '1767323045.{"a":1}' | openssl dgst -sha256 -hmac whsec_secret
    CHECK_STR(signature_make("whsec_secret", 1767323045, "{\"a\":1}", 7, text),
              "t=1767323045,v1=4c6c5014d33746da24c52d523c15f8766cbf480385edd038ba7422d3bca48842");
}

TEST(another_body_time_or_secret_gives_another_signature)
{
    char first[SIGNATURE_TEXT], other[SIGNATURE_TEXT];

    signature_make("s", 1, "b", 1, first);
    CHECK(strcmp(first, signature_make("s", 1, "c", 1, other)) != 0);
    CHECK(strcmp(first, signature_make("t", 1, "b", 1, other)) != 0);
    CHECK(strcmp(first + 4, signature_make("s", 2, "b", 1, other) + 4) != 0);
}
