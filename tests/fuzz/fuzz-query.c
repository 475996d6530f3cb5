/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes targets: the first line is a path, the second a query. What is decoded fits its room and has no NUL in it. */
#include "base/auto.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "web/query.h"
#include "web/route_tree.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct route routes[] = {
    {"GET", "/"},
    {"GET", "/{a}"},
    {"GET", "/a/{b}"},
    {"GET", "/{a}/b/{c}/{d}"},
    {"GET", "/a/b/c/{d}"},
    {"POST", "/a/"},
    {0},
};
static const struct front front = {.name = "fuzz", .routes = routes};
static const char *const words[] = {"asc", "desc", NULL};
static const struct parameter parameters[] = {
    {"limit", PARAMETER_INTEGER, .minimum = 0, .maximum = 100},
    {"live", PARAMETER_BOOL},
    {"wait", PARAMETER_DURATION},
    {"sort", PARAMETER_WORD, .words = words},
    {"path", PARAMETER_TEXT},
    {0},
};

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_path(const char *text)
{
    autofree char *room = malloc(strlen(text) + 1);
    autoptr(route_tree) tree = route_tree_new();
    struct route_path path;
    struct route_match match;
    struct error err;

    if (route_tree_add(tree, &front, &err) < 0)
        abort();
    if (route_path_read(text, room, &path, &err) < 0)
        return;
    check(path.count > 0 && path.count <= ROUTE_SEGMENTS + 1);
    for (size_t i = 0; i < path.count && i < ROUTE_SEGMENTS; i++) {
        check(strlen(path.at[i].text) == path.at[i].length);
        check(utf8_is_valid(path.at[i].text, path.at[i].length));
    }
    route_tree_match(tree, "GET", &path, &match);
    for (size_t i = 0; match.row && i < ROUTE_PARAMETERS && match.parameters[i]; i++)
        check(*match.parameters[i]);
}

static void check_query(const char *text)
{
    autoarena memory = {0};
    struct query *query = NULL;
    struct error err;

    if (query_parse(text, &memory, &query, &err) < 0)
        return;
    if (query_check(query, parameters, &err) < 0)
        return;
    int64_t limit = query_integer(query, "limit", 7);
    check(limit >= 0 && limit <= 100);
    check(query_duration_ms(query, "wait") >= -1);
    (void)query_bool(query, "live", true);
    const char *sort = query_text(query, "sort");
    check(!sort || strcmp(sort, "asc") == 0 || strcmp(sort, "desc") == 0);
    const char *path = query_text(query, "path");
    check(!path || (*path && utf8_is_valid(path, strlen(path))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    char *line = strchr(text, '\n');

    if (line)
        *line++ = '\0';
    check_path(text);
    check_query(line);
    return 0;
}
