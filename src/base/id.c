/* SPDX-License-Identifier: Apache-2.0 */
/* Random identities; see id.h. */
#include "base/id.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#define ID_BYTES 16

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* 128 bits, five at a time from the end; the first letter has three. */
static void spell(const unsigned char bytes[ID_BYTES], char text[ID_TEXT])
{
    unsigned __int128 number = 0;

    for (int i = 0; i < ID_BYTES; i++)
        number = number << 8 | bytes[i];
    for (int i = ID_LENGTH - 1; i >= 0; i--, number >>= 5)
        text[i] = alphabet[number & 31];
    text[ID_LENGTH] = '\0';
}

static bool unspell(const char *text, unsigned char bytes[ID_BYTES])
{
    unsigned __int128 number = 0;

    if (!id_is_valid(text) || text[0] > '7')
        return false;
    for (int i = 0; i < ID_LENGTH; i++)
        number = number << 5 | (unsigned)(strchr(alphabet, text[i]) - alphabet);
    for (int i = ID_BYTES - 1; i >= 0; i--, number >>= 8)
        bytes[i] = (unsigned char)number;
    return true;
}

static void fill_random(unsigned char *random, size_t length)
{
    ssize_t got;

    do {
        got = getrandom(random, length, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)length) { // reads of up to 256 bytes are never cut short: getrandom(2)
        perror("getrandom");
        abort();
    }
}

const char *id_make(char text[ID_TEXT])
{
    unsigned char random[ID_BYTES];

    fill_random(random, sizeof random);
    random[6] = (unsigned char)((random[6] & 0x0f) | 0x40); // RFC 9562: version 4
    random[8] = (unsigned char)((random[8] & 0x3f) | 0x80);
    spell(random, text);
    return text;
}

void id_make_letters(char *text, unsigned letters)
{
    fill_random((unsigned char *)text, letters);
    for (unsigned i = 0; i < letters; i++)
        text[i] = alphabet[text[i] & 31];
    text[letters] = '\0';
}

bool id_is_valid(const char *text)
{
    return strlen(text) == ID_LENGTH && strspn(text, alphabet) == ID_LENGTH;
}

/* Behind which bytes a UUID has a dash. */
static bool has_dash(int byte)
{
    return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

const char *id_to_uuid(const char *text, char uuid[ID_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_BYTES];
    char *to = uuid;

    if (!unspell(text, bytes))
        return NULL;
    for (int i = 0; i < ID_BYTES; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
        if (has_dash(i))
            *to++ = '-';
    }
    *to = '\0';
    return uuid;
}

static int hex(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool id_from_uuid(const char *uuid, char text[ID_TEXT])
{
    unsigned char bytes[ID_BYTES];

    if (strlen(uuid) != ID_UUID_TEXT - 1)
        return false;
    for (int i = 0; i < ID_BYTES; i++, uuid += 2) {
        if (hex(uuid[0]) < 0 || hex(uuid[1]) < 0)
            return false;
        bytes[i] = (unsigned char)(hex(uuid[0]) << 4 | hex(uuid[1]));
        if (has_dash(i) && *(uuid++ + 2) != '-')
            return false;
    }
    spell(bytes, text);
    return true;
}
