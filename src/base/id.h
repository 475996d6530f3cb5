/* SPDX-License-Identifier: Apache-2.0 */
/* Identities nobody can guess and nobody meets twice: 130 random bits as 26 letters and digits. */
#pragma once
#include <stdbool.h>

#define ID_LENGTH 26
#define ID_TEXT (ID_LENGTH + 1)

/* Lower case, digits and letters without i l o u. Blocks only before the kernel has gathered
 * entropy. */
const char *id_make(char text[ID_TEXT]);

/* Whether `text` is spelled as id_make spells. */
bool id_is_valid(const char *text);
