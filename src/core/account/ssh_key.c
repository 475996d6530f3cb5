/* SPDX-License-Identifier: Apache-2.0 */
/* Reads public SSH keys; see ssh_key.h. */
#include "core/account/ssh_key.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLANK " \t\r\n"

static const char *const types[] = {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
};

static int fail(struct error *err, const char *why)
{
    return error_refuse(err, ERROR_INVALID, "ssh key",
                        "this is no public SSH key: %s; paste the line of a .pub file, such as "
                        "~/.ssh/id_ed25519.pub",
                        why);
}

static const char *known_type(const char *word, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strlen(types[i]) == length && memcmp(types[i], word, length) == 0)
            return types[i];
    return NULL;
}

// Strict: encoding what was read gives the same text again. The caller frees *out.
static bool decode(const char *text, size_t length, unsigned char **out, size_t *out_length)
{
    size_t padding = 0;

    if (length < 4 || length % 4)
        return false;
    for (; padding < 2 && text[length - 1 - padding] == '='; padding++)
        continue;
    autofree unsigned char *blob = xcalloc(1, length);
    autofree char *again = xcalloc(1, length + 1);
    int got = EVP_DecodeBlock(blob, (const unsigned char *)text, (int)length);
    if (got < 0)
        return false;
    got -= (int)padding; // which it decodes as zeroes
    if (EVP_EncodeBlock((unsigned char *)again, blob, got) != (int)length ||
        memcmp(again, text, length) != 0)
        return false;
    *out = take(blob);
    *out_length = (size_t)got;
    return true;
}

// A blob is strings, each with its length in front (RFC 4253, 6.6); the first is the type again, and every type has more of them.
static const char *check_blob(const unsigned char *blob, size_t length, const char *type)
{
    unsigned parts = 0;

    for (size_t at = 0; at < length; parts++) {
        if (length - at < 4)
            return "it is cut off";
        uint32_t size = (uint32_t)blob[at] << 24 | (uint32_t)blob[at + 1] << 16 |
                        (uint32_t)blob[at + 2] << 8 | blob[at + 3];
        at += 4;
        if (size > length - at)
            return "it is cut off";
        if (parts == 0 && (size != strlen(type) || memcmp(blob + at, type, size) != 0))
            return "its base64 part is of another type than it says";
        at += size;
    }
    return parts >= 2 ? NULL : "it is cut off";
}

static void make_fingerprint(const unsigned char *blob, size_t length, char out[51])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    unsigned char text[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];

    (void)SHA256(blob, length, hash);
    (void)EVP_EncodeBlock(text, hash, sizeof hash);
    (void)snprintf(out, 51, "SHA256:%.43s", (const char *)text); // without the padding
}

// One line of UTF-8, without blanks at its end. The caller frees it.
static const char *read_comment(const char *text, char **out)
{
    size_t length = strlen(text);

    while (length && strchr(BLANK, text[length - 1]))
        length--;
    for (size_t at = 0, step; at < length; at += step) {
        step = utf8_length(text + at, length - at);
        if (!step)
            return "its comment is not UTF-8";
        if (text[at] == '\n' || text[at] == '\r')
            return "it has several lines";
    }
    *out = xstrndup(text, length);
    return NULL;
}

int ssh_key_parse(const char *line, struct ssh_key *out, struct error *err)
{
    autofree unsigned char *blob = NULL;
    autofree char *comment = NULL;
    const char *fault;
    size_t length;

    if (strlen(line) > SSH_KEY_LINE)
        return fail(err, "it is too long");
    line += strspn(line, BLANK);
    if (strncmp(line, "-----BEGIN", 10) == 0)
        return fail(err, "it looks like a private key, which stays with you");
    const char *base64 = line + strcspn(line, BLANK);
    const char *type = known_type(line, (size_t)(base64 - line));
    if (!type)
        return fail(err,
                    "it must begin with its type (ssh-ed25519, ssh-rsa, ecdsa-sha2-... or sk-...)");
    base64 += strspn(base64, " \t");
    const char *rest = base64 + strcspn(base64, BLANK);
    if (!decode(base64, (size_t)(rest - base64), &blob, &length))
        return fail(err, "its second word is not base64");
    if ((fault = check_blob(blob, length, type)) ||
        (fault = read_comment(rest + strspn(rest, " \t"), &comment)))
        return fail(err, fault);
    *out = (struct ssh_key){
        .type = xstrdup(type),
        .text = xasprintf("%s %.*s", type, (int)(rest - base64), base64),
        .comment = take(comment),
    };
    make_fingerprint(blob, length, out->fingerprint);
    return 0;
}

void ssh_key_clear(struct ssh_key *key)
{
    free(key->type);
    free(key->text);
    free(key->comment);
    *key = (struct ssh_key){0};
}
