/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes ClientHellos: the same bytes, whole and piece by piece, must give the same name, and a verdict does not change when more follows. */
#include "egress/tls_hello.h"
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_hello whole, part;
    char again[POLICY_NAME_LENGTH];
    enum tls_hello_state end = tls_hello_read(data, size, &whole);

    if (*whole.name && (!policy_fold_name(whole.name, strlen(whole.name), again) ||
                        strcmp(again, whole.name) != 0))
        abort();
    for (size_t length = 0; length < size; length += 1 + size / 64) {
        enum tls_hello_state state = tls_hello_read(data, length, &part);
        if (state == TLS_HELLO_MORE)
            continue;
        if (state != end || (state == TLS_HELLO_READ && strcmp(part.name, whole.name) != 0))
            abort();
    }
    return 0;
}
