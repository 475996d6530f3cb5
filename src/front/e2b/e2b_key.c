/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in two spellings; see e2b_key.h. Four letters of five bits are five digits of four. */
#include "front/e2b/e2b_key.h"

#include <ctype.h>
#include <string.h>

#define LETTERS 52
#define DIGITS 65
static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
static const char digits[] = "0123456789abcdef";

/* Reads `count` characters of `bits` bits each and writes them again as characters of others. False: one is not in `from`. */
static bool respell(const char *text, size_t count, const char *from, unsigned from_bits,
                    const char *to, unsigned to_bits, char *out)
{
    unsigned held = 0, n_held = 0;

    for (size_t i = 0; i < count; i++) {
        const char *at = strchr(from, tolower((unsigned char)text[i]));
        if (!at || !text[i])
            return false;
        held = held << from_bits | (unsigned)(at - from);
        for (n_held += from_bits; n_held >= to_bits; n_held -= to_bits)
            *out++ = to[held >> (n_held - to_bits) & ((1u << to_bits) - 1)];
        held &= (1u << n_held) - 1;
    }
    *out = '\0';
    return true;
}

bool e2b_key_spell(const char *key, char out[E2B_KEY_TEXT])
{
    if (strncmp(key, "brw_", 4) != 0 || strlen(key) != 4 + LETTERS)
        return false;
    memcpy(out, "e2b_", 4);
    return respell(key + 4, LETTERS, letters, 5, digits, 4, out + 4);
}

bool e2b_key_read(const char *text, char out[E2B_KEY_TEXT])
{
    if (strncmp(text, "e2b_", 4) != 0 || strlen(text) != 4 + DIGITS)
        return false;
    memcpy(out, "brw_", 4);
    return respell(text + 4, DIGITS, digits, 4, letters, 5, out + 4);
}

bool e2b_key_read_beginning(const char *text, char out[E2B_KEY_TEXT])
{
    size_t length = strlen(text);

    if (strncmp(text, "e2b_", 4) != 0 || length > 4 + DIGITS)
        return false;
    memcpy(out, "brw_", 4);
    return respell(text + 4, length - 4, digits, 4, letters, 5, out + 4);
}
