/* SPDX-License-Identifier: Apache-2.0 */
/* Whose something is.
 *
 * Threads: none; plain values. */
#pragma once

/* Organisation is never NULL; the others may be. As a filter, NULL matches all. */
struct owner {
    const char *organisation;
    const char *tenant;
    const char *scope;
    const char *project;
};
