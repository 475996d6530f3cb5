/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that the way out adds to requests to one host, and that no guest ever sees. What is kept of one is a text: "HOST HEADER sealed:HEX", with the value
 * sealed (AES-256-GCM) by a key that is in the data directory and nowhere else; or "HOST HEADER env:NAME": then the operator has given the value to the server
 * as the variable BURROW_SECRET_NAME, for the hosts in BURROW_SECRET_NAME_HOSTS alone.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

#define NETWORK_SECRETS_MOST 32
#define NETWORK_SECRET_VALUE 8192 // bytes

struct network_secret {
    const char *host;   // one name
    const char *header; // "Authorization"
    const char *value;  // the header's value; "env:NAME": a variable
};

/* Checks it and makes the text that is kept; the caller frees. ERROR_INVALID, noun "network.secrets". */
int network_secret_seal(const char *data_dir, const struct network_secret *secret, char **out,
                        struct error *err);

/* The parts of such a text, without the value: `env` is "" where that is sealed. */
struct network_secret_about {
    char host[256];
    char header[72];
    char env[72];
};
void network_secret_about(const char *packed, struct network_secret_about *out);

/* The value; the caller wipes it with network_secret_wipe. ERROR_UNAVAILABLE where the key or the variable is gone. */
int network_secret_open(const char *data_dir, const char *packed, char **value, struct error *err);
void network_secret_wipe(char **value); // frees too
#define autosecret __attribute__((cleanup(network_secret_wipe))) char *
