/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public SSH keys as people paste them: read, checked and named by their fingerprint.
 * Threads: any; does not block.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#define SSH_KEY_LINE 16384 // of a line, without its NUL; the largest RSA key takes about 3000

struct ssh_key {
    char *type;           // "ssh-ed25519"
    char *text;           // type and base64, as in authorized_keys
    char *comment;        // never NULL
    char fingerprint[51]; // "SHA256:" and 43 characters, as ssh-keygen -l shows it
};

/* `line` is type, base64 and perhaps a comment; spaces around it do not count. ERROR_INVALID says what is wrong, noun "ssh key". */
int ssh_key_parse(const char *line, struct ssh_key *out, struct error *err);
void ssh_key_clear(struct ssh_key *key);
#define autosshkey __attribute__((cleanup(ssh_key_clear))) struct ssh_key
