/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys by which clients of SSH know this installation again: made once, kept in the data directory, readable by root alone.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

#define SSH_HOST_KEYS 2             // Ed25519, and ECDSA for old clients
#define SSH_HOST_KEY_PEM 1024       // bytes of a private key
#define SSH_HOST_KEY_LINE 256       // bytes of "ssh-ed25519 AAAA…"
#define SSH_HOST_KEY_FINGERPRINT 51 // "SHA256:" and 43 characters

struct ssh_host_key {
    char pem[SSH_HOST_KEY_PEM]; // the private key, as libssh reads it
    char line[SSH_HOST_KEY_LINE];
    char fingerprint[SSH_HOST_KEY_FINGERPRINT];
};

/* Reads them from `data_dir`/ssh, or makes those that are not there. */
int ssh_host_keys_open(const char *data_dir, struct ssh_host_key out[SSH_HOST_KEYS],
                       struct error *err);
