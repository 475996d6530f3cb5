/* SPDX-License-Identifier: Apache-2.0 */
/* Why a command ended, in words; see exit_words.h. */
#include "engine/exit_words.h"

#include "base/duration.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool exit_is_disk_full(const struct limits *limits, uint64_t disk_bytes)
{
    // The last block and metadata never fit exactly.
    return limits->disk_bytes > 0 && disk_bytes >= (uint64_t)limits->disk_bytes / 100 * 97;
}

/* Limits that did not end the command but stood in its way. */
static void explain_failure(const struct limits *limits, const struct exit_use *use, char *out,
                            size_t size)
{
    char text[SIZE_TEXT];
    int length = 0;

    if (use->processes_refused > 0)
        length = snprintf(out, size, "the process limit of %" PRId64 " was reached",
                          limits->max_processes);
    if (exit_is_disk_full(limits, use->disk_bytes) && length >= 0 && (size_t)length < size)
        (void)snprintf(out + length, size - (size_t)length, "%sthe disk limit of %s was reached",
                       length ? "; " : "", size_format((uint64_t)limits->disk_bytes, text));
}

void exit_explain(const struct process_exit *exit, const struct limits *limits, uint64_t timeout_ms,
                  const struct exit_use *use, char *out, size_t size)
{
    char text[SIZE_TEXT > DURATION_TEXT ? SIZE_TEXT : DURATION_TEXT];

    *out = '\0';
    if (exit->cause == CAUSE_TIMEOUT && timeout_ms)
        (void)snprintf(out, size, "the time limit of %s was reached",
                       duration_format(timeout_ms, text));
    else if (exit->cause == CAUSE_MEMORY && limits->memory_bytes > 0)
        (void)snprintf(out, size, "the memory limit of %s was reached",
                       size_format((uint64_t)limits->memory_bytes, text));
    else if (exit->cause != CAUSE_EXIT)
        (void)snprintf(out, size, "%s", exit->text);
    else if (exit->code != 0 && use)
        explain_failure(limits, use, out, size);
}
