/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which commands may be run: names, compared exactly.
 * Threads: any; nothing changes after commands_read.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct data_document;

struct commands {
    const char **names;
    size_t count;
    struct data_document *memory; // owns them
};

/*
 * A JSON array of names; also one in quotes, and "[echo,python3]" without any. Ends trimmed, what is blank or no text is left out.
 * ERROR_INVALID for all else.
 */
int commands_read(const char *text, struct commands *out, struct error *err);
void commands_clear(struct commands *commands);

bool commands_allow(const struct commands *commands, const char *name);
