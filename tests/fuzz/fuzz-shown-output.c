/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes output on its way to a terminal: what comes live is untouched, what is shown again does not depend on the pieces it comes in, and
 * shown again once more there is nothing left to leave out. */
#include "base/auto.h"
#include "cli/shown_output.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct buffer *one, const void *data, size_t length)
{
    if (one->length != length || (length && memcmp(one->data, data, length) != 0))
        abort();
}

static void show_again(const char *data, size_t size, size_t piece, struct buffer *to)
{
    struct shown_output shown = {0};
    autobuffer rest = {0};

    for (size_t at = 0; at < size; at += piece)
        shown_output_again(&shown, data + at, at + piece < size ? piece : size - at, to);
    shown_output_live(&shown, "", 0, to); // what is held
    shown_output_leave(&shown, &rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shown_output shown = {0};
    autobuffer live = {0}, whole = {0}, pieces = {0}, twice = {0};

    shown_output_live(&shown, (const char *)data, size, &live);
    check_same(&live, data, size);
    show_again((const char *)data, size, size ? size : 1, &whole);
    show_again((const char *)data, size, 3, &pieces);
    check_same(&pieces, whole.data, whole.length);
    show_again(whole.data ? whole.data : "", whole.length, 1, &twice);
    check_same(&twice, whole.data, whole.length);
    return 0;
}
