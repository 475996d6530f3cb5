/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes lines with public SSH keys: what is taken is taken again, as it was written down. */
#include "base/mem.h"
#include "core/account/ssh_key.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *line = xstrndup((const char *)data, size);
    autosshkey key = {0}, again = {0};
    struct error err = {0};

    if (ssh_key_parse(line, &key, &err) < 0) {
        if (key.type || !*err.text)
            abort();
        return 0;
    }
    if (ssh_key_parse(key.text, &again, &err) < 0 || strcmp(again.text, key.text) != 0 ||
        strcmp(again.fingerprint, key.fingerprint) != 0 || strlen(key.fingerprint) != 50 ||
        strchr(key.comment, '\n'))
        abort();
    return 0;
}
