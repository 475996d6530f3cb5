/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Debian's packages come from: the machine's own apt sources, or a mirror that was named.
 * Reads sources.list and sources.list.d (one-line and deb822 style). Entries of other vendors are
 * left out: an entry is Debian's when apt's lists say so (Origin: Debian), else when it is signed
 * by a Debian keyring or by no named one and has the component main.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

struct sources_place {
    const char *apt_dir;   // NULL: /etc/apt
    const char *lists_dir; // NULL: /var/lib/apt/lists
    const char *keyring;   // NULL: /usr/share/keyrings/debian-archive-keyring.gpg
};

/*
 * Adds one-line entries for the suite, its -updates and -security, with these components, to `out`.
 * Where the machine knows Debian by other suites only, their addresses are used. ERROR_UNAVAILABLE
 * when it knows none.
 */
int sources_of_machine(const struct sources_place *place, const char *suite,
                       const char *const *components, struct buffer *out, struct error *err);

/* The same for "URL" or "URL,SECURITY-URL". */
int sources_of_mirror(const struct sources_place *place, const char *mirror, const char *suite,
                      const char *const *components, struct buffer *out, struct error *err);
