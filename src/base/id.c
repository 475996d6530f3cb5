/* SPDX-License-Identifier: Apache-2.0 */
/* Random identities; see id.h. */
#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

const char *id_make(char text[ID_TEXT])
{
    unsigned char random[ID_LENGTH];
    ssize_t got;

    do {
        got = getrandom(random, sizeof random, 0);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof random) { // reads of up to 256 bytes are never cut short: getrandom(2)
        perror("getrandom");
        abort();
    }
    for (int i = 0; i < ID_LENGTH; i++)
        text[i] = alphabet[random[i] & 31];
    text[ID_LENGTH] = '\0';
    return text;
}

bool id_is_valid(const char *text)
{
    return strlen(text) == ID_LENGTH && strspn(text, alphabet) == ID_LENGTH;
}
