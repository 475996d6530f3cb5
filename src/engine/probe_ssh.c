/* SPDX-License-Identifier: Apache-2.0 */
/* The probe that tells by which key clients of SSH know the server of a data directory. */
#include "engine/probe_impl.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define HASH 32

/* "ssh-ed25519 BASE64 …" to "SHA256:" and 43 characters, as ssh shows it. */
static bool write_fingerprint(char *line, char out[64])
{
    char blob[512], digits[SHA256_TEXT];
    unsigned char hash[HASH];
    struct sha256 sha;
    size_t bad;

    const char *key = strchr(line, ' ');
    size_t length = key ? strcspn(++key, " \n") : 0;
    if (length == 0 || base64_room(length) > sizeof blob)
        return false;
    ssize_t got = base64_decode(key, length, blob, &bad);
    if (got < 0)
        return false;
    sha256_init(&sha);
    sha256_add(&sha, blob, (size_t)got);
    sha256_end(&sha, digits);
    for (unsigned i = 0; i < HASH; i++)
        hash[i] = (unsigned char)(hex_digit(digits[2 * i]) << 4 | hex_digit(digits[2 * i + 1]));
    base64_encode(hash, HASH, blob);
    (void)snprintf(out, 64, "SHA256:%.43s", blob);
    return true;
}

void probe_ssh_key(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    char path[PATH_MAX], line[512], fingerprint[64];
    struct error err = {0};

    (void)probe;
    (void)snprintf(path, sizeof path, "%s/ssh/host_ed25519_key.pub", context->data_dir);
    if (fd_read_knob(AT_FDCWD, path, line, sizeof line, &err) < 0) {
        if (err.sys == ENOENT)
            probe_fine(result, "is made when the server first starts");
        else
            probe_say(result, PROBE_DEGRADED, "nobody can say whether a client meets this server",
                      "look at the directory ssh in the data directory", "%s", err.text);
    } else if (write_fingerprint(line, fingerprint)) {
        probe_fine(result, "%s", fingerprint);
    } else {
        probe_say(result, PROBE_DEGRADED, "nobody can say whether a client meets this server",
                  "remove it together with its private key: the next start makes others",
                  "'%s' is no key", path);
    }
}
