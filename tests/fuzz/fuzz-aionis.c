/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what the Aionis front reads and cuts by itself. The first byte chooses: text that commands wrote; JSON that is written
 * again as JavaScript would; settings.
 */
#include "base/mem.h"
#include "base/utf8.h"
#include "data/json.h"
#include "front/aionis/budget.h"
#include "front/aionis/canonical.h"
#include "front/aionis/commands.h"
#include "front/aionis/rate.h"
#include "front/aionis/summary.h"
#include "front/aionis/wide.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void cut_text(const char *bytes, size_t length)
{
    autobuffer text = {0};
    autobuffer squeezed = {0};
    autobuffer tail = {0};
    autobuffer formed = {0};

    check(wide_whole(bytes, length) <= length);
    wide_decode(bytes, length, &text);
    struct wide_text decoded = {text.data, text.length};
    check(utf8_is_valid(decoded.text ? decoded.text : "", decoded.length));
    check(wide_trim(decoded).length <= decoded.length);
    wide_squeeze(decoded, 10, &squeezed);
    check(wide_units((struct wide_text){squeezed.data, squeezed.length}) <= 12);
    wide_tail(decoded, 7, &tail);
    check(utf8_is_valid(tail.data ? tail.data : "", tail.length));
    wide_well_formed((struct wide_text){squeezed.data, squeezed.length}, &formed);
    check(utf8_is_valid(formed.data ? formed.data : "", formed.length));
}

static struct data_document *read_json(const char *text, size_t length)
{
    static const struct json_limits limits = {.takes_last = true, .depth = 100};
    struct data_document *document = NULL;
    struct error ignored = {0};

    return json_read("", text, length, &limits, &document, &ignored) == 0 ? document : NULL;
}

static void summarise(const struct buffer *result)
{
    const struct summary summary = {
        .standard_output = {"", 0}, .standard_error = {"", 0}, .result = result, .exit_code = 0};
    autobuffer text = {0};
    struct json_writer json;
    struct error err = {0};

    json_writer_init(&json, &text);
    summary_write(&json, &summary);
    check(json_writer_finish(&json, &err) == 0);
    autoptr(data_document) said = read_json(text.data, text.length);
    check(said != NULL);
}

/* Once is enough: what was written so is written the same again. */
static void write_again(const char *text, size_t length)
{
    autoptr(data_document) first = read_json(text, length);
    autobuffer once = {0};
    autobuffer twice = {0};
    struct error err = {0};

    if (!first)
        return;
    check(canonical_write(first->root, &once, &err) == 0);
    autoptr(data_document) second = read_json(once.data, once.length);
    check(second && canonical_write(second->root, &twice, &err) == 0);
    check(once.length == twice.length && memcmp(once.data, twice.data, once.length) == 0);
    if (second->root->kind == VALUE_MAP)
        summarise(&once);
}

static void read_settings(const char *text)
{
    struct commands commands = {0};
    struct budgets *budgets = NULL;
    struct proxies *proxies = NULL;
    struct error err = {0};

    if (commands_read(text, &commands, &err) == 0) {
        for (size_t i = 0; i < commands.count; i++)
            check(*commands.names[i] && commands_allow(&commands, commands.names[i]));
    }
    commands_clear(&commands);
    if (budgets_read(text, &budgets, &err) == 0)
        (void)budgets_find(budgets, "a");
    budgets_free(budgets);
    if (proxies_read(text, &proxies, &err) == 0)
        (void)proxies_contain(proxies, &in6addr_loopback);
    proxies_free(proxies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    if (data[0] == 't') {
        cut_text(text, size - 1);
    } else if (data[0] == 'j') {
        write_again(text, size - 1);
    } else {
        autofree char *copy = xcalloc(1, size);
        memcpy(copy, text, size - 1);
        read_settings(copy);
    }
    return 0;
}
