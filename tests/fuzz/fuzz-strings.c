/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: short texts of clients: parts of a file (Range), points in time, ids and references, paths, variables of an environment, lists
 * that are packed into one column, numbers. Each either keeps its promise or is refused with a sentence.
 */
#include "base/auto.h"
#include "base/command.h"
#include "base/decimal.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "front/agentuity/content_type.h"
#include "front/api/log_follow.h"
#include "web/instant.h"
#include "web/reference.h"
#include "web/range.h"
#include "web/request_id.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void read_range(const char *text)
{
    static const uint64_t sizes[] = {0, 1, 1000, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint64_t first = 0, length = 0;
        if (range_read(text, sizes[i], &first, &length) == RANGE_PART)
            check(length > 0 && first < sizes[i] && length <= sizes[i] - first);
    }
}

static void read_reference(const char *text)
{
    const char *bare = reference_of(text, "snp_");
    check(bare >= text && bare <= text + strlen(text));
    if (reference_is_id(text, "snp_"))
        check(id_is_valid(bare));
    (void)content_type_of(text);
}

static void read_request_id(const char *text)
{
    struct request_ids ids;
    struct http_header header = {.name = "X-Request-Id", .value = text};
    struct http_request request = {.headers = &header, .header_count = 1};
    char id[REQUEST_ID_TEXT];

    request_ids_init(&ids);
    request_id_read(&ids, &request, id);
    check(*id && strlen(id) < sizeof id);
    for (const char *at = id; *at; at++)
        check(*at >= ' ' && *at < 0x7f);
}

/* Words one a line: packed into one text, and unpacked as they were. */
static void pack(const char *text)
{
    autostrings lines = {0};
    autostrings again = {0};
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    struct error err = {0};

    for (char *line; (line = strsep(&rest, "\n"));)
        strings_add(&lines, line);
    autofree char *packed = strings_pack((const char *const *)lines.items);
    strings_unpack(packed, &again);
    check(again.count == lines.count);
    for (size_t i = 0; i < again.count; i++)
        check(strcmp(again.items[i], lines.items[i]) == 0);
    const struct command command = {.argv = (const char *const *)lines.items,
                                    .env = (const char *const *)lines.items};
    if (command_check(&command, &err) == 0) {
        for (size_t i = 0; i < lines.count; i++)
            check(strchr(lines.items[i], '=') > lines.items[i]);
    } else {
        check(err.text[0]);
    }
    autostrings row = {0};
    strings_unpack(text, &row); // whatever it says
}

static void read_others(const char *text, size_t length)
{
    struct error err = {0};
    struct decimal number;
    uint64_t times;
    int64_t when_ms = 0;

    if (instant_parse(text, "when", &when_ms, &err) < 0)
        check(strncmp(err.text, "when", 4) == 0);
    if (path_check_absolute(text, length, "path", &err) == 0)
        check(text[0] == '/' && strlen(text) == length && length < PATH_TEXT);
    if (decimal_scan(text, &number))
        (void)decimal_times(&number, 1 << 30, &times);
    if (id_is_valid(text))
        check(strlen(text) == ID_TEXT - 1);
}

/* Where a follower of a log goes on: written again it says the same. */
static void read_log_state(const char *text)
{
    struct log_state state, again;
    char written[LOG_STATE_TEXT];

    if (!log_state_read(text, &state))
        return;
    check(state.n_open <= LOG_FOLLOWED && state.next >= 0);
    check(log_state_read(log_state_write(&state, written), &again));
    check(memcmp(&state, &again, sizeof state) == 0);
}

/* Between quotes it is one line of JSON; scrubbed it is one line for a terminal. */
static void quote(const char *text, size_t length)
{
    autobuffer quoted = {0};
    struct error err = {0};
    autofree char *scrubbed = xstrndup(text, length);

    check(quote_json(&quoted, text, length, &err) == 0);
    check(utf8_is_valid(quoted.data, quoted.length) && !memchr(quoted.data, '\n', quoted.length));
    quote_scrub(scrubbed);
    for (const unsigned char *at = (const unsigned char *)scrubbed; *at; at++)
        check(*at >= ' ' && *at != 0x7f && (*at != 0xc2 || at[1] < 0x80 || at[1] >= 0xa0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);

    read_range(text);
    read_reference(text);
    read_request_id(text);
    read_log_state(text);
    pack(text);
    read_others(text, size);
    quote((const char *)data, size);
    return 0;
}
