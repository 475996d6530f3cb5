/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public SSH keys as people paste them: read, checked and named by their fingerprint.
 * Threads: any; does not block.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#define SSH_KEY_LINE 16384 // of a line, without its NUL; the largest RSA key takes about 3000

#define SSH_KEY_FINGERPRINT 51 // "SHA256:", 43 characters, as ssh-keygen -l shows it, and a NUL

struct ssh_key {
    char *type;    // "ssh-ed25519"
    char *text;    // type and base64, as in authorized_keys
    char *comment; // never NULL
    char fingerprint[SSH_KEY_FINGERPRINT];
};

/*
 * `line` is type, base64 and perhaps a comment; spaces around it do not count. Ed25519, ECDSA, RSA of at least 2048 bits, and those on
 * security keys. ERROR_INVALID says what is wrong, noun "ssh key".
 */
int ssh_key_parse(const char *line, struct ssh_key *out, struct error *err);
void ssh_key_clear(struct ssh_key *key);
/* Of a key as it travels: what the base64 is of. */
void ssh_key_fingerprint(const void *blob, size_t length, char out[SSH_KEY_FINGERPRINT]);
#define autosshkey __attribute__((cleanup(ssh_key_clear))) struct ssh_key
