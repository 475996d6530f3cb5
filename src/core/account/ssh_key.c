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
#define RSA_BITS_LEAST 2048
#define RSA_BITS_MOST 16384
#define CURVE25519_BYTES 32

// What a blob of a type has behind its name (RFC 4253, 6.6; RFC 5656, 3.1; RFC 8709, 4; PROTOCOL.u2f).
static const struct key_type {
    const char *name;
    const char *curve;    // of ECDSA
    unsigned coordinates; // bytes of one of a point's two
    bool is_rsa;
    bool has_application; // on a security key
} types[] = {
    {"ssh-ed25519"},
    {"ssh-rsa", .is_rsa = true},
    {"ecdsa-sha2-nistp256", "nistp256", 32},
    {"ecdsa-sha2-nistp384", "nistp384", 48},
    {"ecdsa-sha2-nistp521", "nistp521", 66},
    {"sk-ssh-ed25519@openssh.com", .has_application = true},
    {"sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", 32, .has_application = true},
};

static int fail(struct error *err, const char *why)
{
    return error_refuse(err, ERROR_INVALID, "ssh key",
                        "this is no public SSH key: %s; paste the line of a .pub file, such as "
                        "~/.ssh/id_ed25519.pub",
                        why);
}

static const struct key_type *known_type(const char *word, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, word, length) == 0)
            return &types[i];
    return NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// Whether some later word of the line is a type: then what stands before it are options.
static bool has_options(const char *line)
{
    for (const char *at = line; *at;) {
        size_t length = strcspn(at, BLANK);
        if (at != line && known_type(at, length))
            return true;
        at += length;
        at += strspn(at, BLANK);
    }
    return false;
}

// Why a line does not begin with a type that is known.
static const char *explain_type(const char *line, size_t length)
{
    static const char certificate[] = "-cert-v01@openssh.com";
    const size_t tail = sizeof certificate - 1;

    if (begins(line, "-----BEGIN") || begins(line, "PuTTY-User-Key-File"))
        return "it looks like a private key, which stays with you";
    if (begins(line, "---- BEGIN SSH2"))
        return "it is in another form (RFC 4716): ssh-keygen -i -f FILE writes it as a line";
    if (length > tail && memcmp(line + length - tail, certificate, tail) == 0)
        return "it is a certificate: give the plain key it was made for";
    if (length == 7 && begins(line, "ssh-dss"))
        return "it is a DSA key, which are too weak: make one with ssh-keygen -t ed25519";
    if (has_options(line))
        return "it begins with options as in authorized_keys: leave them out";
    return "it must begin with its type (ssh-ed25519, ssh-rsa, ecdsa-sha2-... or sk-...)";
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

// A string with its length in front.
struct part {
    const unsigned char *at;
    uint32_t length;
};

static bool next_part(struct part *rest, struct part *out)
{
    if (rest->length < 4)
        return false;
    uint32_t size = (uint32_t)rest->at[0] << 24 | (uint32_t)rest->at[1] << 16 |
                    (uint32_t)rest->at[2] << 8 | rest->at[3];
    if (size > rest->length - 4)
        return false;
    *out = (struct part){rest->at + 4, size};
    *rest = (struct part){rest->at + 4 + size, rest->length - 4 - size};
    return true;
}

static bool part_is(const struct part *part, const char *text)
{
    return part->length == strlen(text) && memcmp(part->at, text, part->length) == 0;
}

// Of a positive number without needless zeroes in front; 0: it is none.
static unsigned count_bits(const struct part *number)
{
    const unsigned char *at = number->at;
    uint32_t length = number->length;

    if (!length || at[0] & 0x80 || (length > 1 && !at[0] && !(at[1] & 0x80)))
        return 0;
    if (!at[0]) {
        at++;
        length--;
    }
    return length ? length * 8 - (unsigned)(__builtin_clz(at[0]) - 24) : 0;
}

static const char *check_rsa(struct part *rest)
{
    struct part exponent, modulus;

    if (!next_part(rest, &exponent) || !next_part(rest, &modulus))
        return "it is cut off";
    unsigned bits = count_bits(&modulus), exponent_bits = count_bits(&exponent);
    if (exponent_bits < 2 || exponent_bits > 64 || !(exponent.at[exponent.length - 1] & 1))
        return "its numbers are none of an RSA key";
    if (bits < RSA_BITS_LEAST)
        return "it is an RSA key of less than 2048 bits, which is too weak: make one with "
               "ssh-keygen -t ed25519";
    return bits <= RSA_BITS_MOST ? NULL : "it is an RSA key of more than 16384 bits";
}

static const char *check_point(const struct key_type *type, struct part *rest)
{
    struct part curve, point;

    if ((type->curve && !next_part(rest, &curve)) || !next_part(rest, &point))
        return "it is cut off";
    if (type->curve && !part_is(&curve, type->curve))
        return "its base64 part is of another curve than it says";
    if (type->curve ? point.length != 2 * type->coordinates + 1 || point.at[0] != 4
                    : point.length != CURVE25519_BYTES)
        return "its base64 part has another length than such keys have";
    return NULL;
}

static const char *check_blob(const unsigned char *blob, size_t length, const struct key_type *type)
{
    struct part rest = {blob, (uint32_t)length}, name, application;

    if (!next_part(&rest, &name))
        return "it is cut off";
    if (!part_is(&name, type->name))
        return "its base64 part is of another type than it says";
    const char *fault = type->is_rsa ? check_rsa(&rest) : check_point(type, &rest);
    if (fault)
        return fault;
    if (type->has_application && !next_part(&rest, &application))
        return "it is cut off";
    return rest.length ? "its base64 part goes on after the key" : NULL;
}

void ssh_key_fingerprint(const void *blob, size_t length, char out[SSH_KEY_FINGERPRINT])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    unsigned char text[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];

    (void)SHA256(blob, length, hash);
    (void)EVP_EncodeBlock(text, hash, sizeof hash);
    (void)snprintf(out, SSH_KEY_FINGERPRINT, "SHA256:%.43s",
                   (const char *)text); // without the padding
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
        if ((unsigned char)text[at] < ' ' || text[at] == 0x7f)
            return "its comment has control characters";
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
    const char *base64 = line + strcspn(line, BLANK);
    const struct key_type *type = known_type(line, (size_t)(base64 - line));
    if (!type)
        return fail(err, explain_type(line, (size_t)(base64 - line)));
    base64 += strspn(base64, " \t");
    const char *rest = base64 + strcspn(base64, BLANK);
    if (!decode(base64, (size_t)(rest - base64), &blob, &length))
        return fail(err, "its second word is not base64");
    if ((fault = check_blob(blob, length, type)) ||
        (fault = read_comment(rest + strspn(rest, " \t"), &comment)))
        return fail(err, fault);
    *out = (struct ssh_key){
        .type = xstrdup(type->name),
        .text = xasprintf("%s %.*s", type->name, (int)(rest - base64), base64),
        .comment = take(comment),
    };
    ssh_key_fingerprint(blob, length, out->fingerprint);
    return 0;
}

void ssh_key_clear(struct ssh_key *key)
{
    free(key->type);
    free(key->text);
    free(key->comment);
    *key = (struct ssh_key){0};
}
