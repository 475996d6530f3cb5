/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities nobody can guess and nobody meets twice: 122 random bits, which are a UUID of version 4, as 26 letters and digits.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>

#define ID_LENGTH 26
#define ID_TEXT (ID_LENGTH + 1)

/* Lower case, digits and letters without i l o u. Blocks only before the kernel has gathered
 * entropy. */
const char *id_make(char text[ID_TEXT]);

/* So many letters of the same kind, each five random bits, and a NUL behind: for secrets. At most 256. */
void id_make_letters(char *text, unsigned letters);

/* Whether `text` is spelled as id_make spells. */
bool id_is_valid(const char *text);

/* The same identity as those who want UUIDs read it: "709bda30-1c5f-4f0e-9a3b-52c1d0a7e9f4". */
#define ID_UUID_TEXT 37
/* NULL for what is no id. */
const char *id_to_uuid(const char *text, char uuid[ID_UUID_TEXT]);
/* Of a UUID in lower case; false for any other text. */
bool id_from_uuid(const char *uuid, char text[ID_TEXT]);
