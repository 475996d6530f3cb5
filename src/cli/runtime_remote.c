/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes of a server; see runtime_remote.h. */
#include "cli/runtime_remote.h"

#include "base/auto.h"
#include "cli/listing.h"
#include "cli/columns.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/sandbox_options.h"

#include <stdlib.h>

static const struct column list_columns[] = {
    {"NAME", "name", COLUMN_TEXT},        {"STATE", "state", COLUMN_TEXT},
    {">SIZE", "sizeBytes", COLUMN_SIZE},  {"ID", "id", COLUMN_TEXT},
    {"WHAT", "description", COLUMN_TEXT}, {0}};
static const struct column fields[] = {{"name", "name", COLUMN_TEXT},
                                       {"id", "id", COLUMN_TEXT},
                                       {"what", "description", COLUMN_TEXT},
                                       {"kind", "kind", COLUMN_TEXT},
                                       {"state", "state", COLUMN_TEXT},
                                       {"built", "builtAt", COLUMN_TEXT},
                                       {"in use", "inUse", COLUMN_TRUTH},
                                       {"size", "sizeBytes", COLUMN_SIZE},
                                       {"tags", "tags", COLUMN_WORDS},
                                       {"keys", "keys", COLUMN_WORDS},
                                       {"url", "url", COLUMN_TEXT},
                                       {"readme", "readme", COLUMN_TEXT},
                                       {0}};

static const struct sort_key sort_keys[] = {
    {"created", "builtAt", false}, {"name", "name", false}, {0}};
static const struct listing listing = {.path = "/runtimes?",
                                       .keys = sort_keys,
                                       .server_sort = "name",
                                       .server_is_ascending = true,
                                       .columns = list_columns};

int runtime_where_check(const struct runtime_where *where, struct error *err)
{
    const struct invocation invocation = {
        .sort = where->sort, .direction = where->direction, .limit = -1};
    struct burrow_error failure = {0};

    return listing_check(&invocation, sort_keys, &failure) < 0
               ? error_set(err, ERROR_INVALID, "%s", failure.text)
               : 0;
}

static int ask(struct invocation *invocation, const char *name, struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (endpoint_connect(invocation, ENDPOINT_LOOK, err) < 0)
        return -1;
    if (!name)
        return listing_print(invocation, &listing, err);
    autofree char *path = burrow_path("/runtimes/%s", name, NULL);
    if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
        return -1;
    return columns_fields(invocation, burrow_answer_value(answer), fields, err);
}

int runtime_remote(const struct runtime_where *where, const char *name, bool is_json, int *code)
{
    struct burrow_error err = {0};
    struct invocation invocation;

    invocation_init(&invocation, NULL);
    invocation.url = where->url;
    invocation.context = where->context;
    int found = endpoint_is_named(&invocation, &err);
    if (found == 0)
        return 0;
    invocation.api_key = where->api_key;
    invocation.limit = where->limit > 0 ? where->limit : 1000;
    invocation.sort = where->sort;
    invocation.direction = where->direction;
    invocation.offset = where->offset;
    invocation.is_json = is_json;
    *code = found < 0 || ask(&invocation, name, &err) < 0 ? say_error(&err, is_json) : EXIT_DONE;
    invocation_clear(&invocation);
    return 1;
}

int runtime_remote_remove(const char *data_dir, const char *name, bool is_json, int *code)
{
    struct burrow_error err = {0};
    struct invocation invocation;
    int result = 0;

    invocation_init(&invocation, NULL);
    invocation.data_dir = data_dir;
    if (endpoint_connect(&invocation, ENDPOINT_LOOK, &err) == 0) {
        autofree char *path = burrow_path("/runtimes/%s", name, NULL);
        bool is_done = burrow_ask(invocation.client, "DELETE", path, NULL, NULL, &err) == 0;
        if (!is_done)
            (void)say_error(&err, is_json);
        *code = is_done ? EXIT_DONE : EXIT_FAILED; // as without a server
        result = 1;
    }
    invocation_clear(&invocation);
    return result;
}
