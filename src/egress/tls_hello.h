/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first flight of TLS: which host a client says it wants. It may come in many records and packets; whatever is not a ClientHello is refused.
 * Threads: plain values.
 */
#pragma once
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

#define TLS_HELLO_MAX (64u << 10)

enum tls_hello_state { TLS_HELLO_MORE, TLS_HELLO_READ, TLS_HELLO_BAD };
struct tls_hello {
    char name[POLICY_NAME_LENGTH]; // folded; "": it says none
    bool has_bad_name;             // it says one that is none
    bool has_ech;                  // it hides another
};
/* TLS_HELLO_MORE: what there is so far is not all. TLS_HELLO_BAD: no ClientHello, or one that is damaged or too long. */
enum tls_hello_state tls_hello_read(const unsigned char *bytes, size_t length,
                                    struct tls_hello *out);
