/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who an image's commands run as, in numbers: the config says a name of its passwd and group, or numbers.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define OCI_USER_TEXT 24 // "65535:65535"

/* `user` is USER or USER:GROUP; the files are texts, "" where there are none. False when a name is in neither, or a number is none of a box. */
bool oci_user_resolve(const char *user, const char *passwd, const char *group,
                      char out[OCI_USER_TEXT]);
