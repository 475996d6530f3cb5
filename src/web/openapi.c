/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document; see openapi.h. */
#include "web/openapi.h"

#include "web/openapi_schema.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void put_name(struct json_writer *json, const char *key, const char *text, size_t length)
{
    json_key(json, key);
    json_bytes(json, text, length);
}

static void put_truth(struct json_writer *json, const char *key)
{
    json_key(json, key);
    json_bool(json, true);
}

/* "post_sandbox_id_execute": one for each operation, since methods and paths are. */
static void put_operation_id(struct json_writer *json, const struct route *route,
                             const char *pattern)
{
    char id[256];
    size_t used = 0;

    for (const char *at = route->method; *at && used < sizeof id; at++)
        id[used++] = (char)tolower((unsigned char)*at);
    for (const char *at = pattern; *at && used < sizeof id; at++) {
        if (isalnum((unsigned char)*at))
            id[used++] = *at;
        else if (used && id[used - 1] != '_' && at[1])
            id[used++] = '_';
    }
    put_name(json, "operationId", id, used);
}

static void put_path_parameters(struct json_writer *json, const char *pattern)
{
    for (const char *at = strchr(pattern, '{'); at; at = strchr(at, '{')) {
        size_t length = strcspn(++at, "}");
        json_map_begin(json);
        put_name(json, "name", at, length);
        openapi_text(json, "in", "path");
        put_truth(json, "required");
        json_key(json, "schema");
        openapi_parameter(json, &(struct parameter){.type = PARAMETER_TEXT});
        json_map_end(json);
    }
}

static void put_query_parameters(struct json_writer *json, const struct parameter *parameters)
{
    for (const struct parameter *parameter = parameters; parameter && parameter->name;
         parameter++) {
        json_map_begin(json);
        openapi_text(json, "name", parameter->name);
        openapi_text(json, "in", "query");
        if (parameter->help)
            openapi_text(json, "description", parameter->help);
        json_key(json, "schema");
        openapi_parameter(json, parameter);
        json_map_end(json);
    }
}

static bool is_body_needed(const struct field *fields)
{
    for (; fields && fields->name; fields++) {
        if (fields->is_needed)
            return true;
    }
    return false;
}

static void put_body(struct json_writer *json, const struct route *route, bool is_strict)
{
    bool is_json = route->body == BODY_JSON || route->body == BODY_WHOLE;

    if (route->body == BODY_NONE)
        return;
    json_key(json, "requestBody");
    json_map_begin(json);
    if (is_json && is_body_needed(route->fields))
        put_truth(json, "required");
    json_key(json, "content");
    json_map_begin(json);
    json_key(json, is_json ? "application/json" : "application/octet-stream");
    json_map_begin(json);
    if (is_json) {
        static const struct field none[] = {{0}};
        json_key(json, "schema");
        openapi_fields(json, route->fields ? route->fields : none, is_strict);
    }
    json_map_end(json);
    json_map_end(json);
    json_map_end(json);
}

static void put_content(struct json_writer *json, const struct route_answer *answer)
{
    json_key(json, answer->content ? answer->content : "application/json");
    json_map_begin(json);
    if (!answer->content) {
        json_key(json, "schema");
        openapi_answer(json, answer);
    }
    json_map_end(json);
}

/* Rows of one status, which stand together, are its types. Returns the row behind them. */
static const struct route_answer *put_contents(struct json_writer *json,
                                               const struct route_answer *answer)
{
    int status = answer->status;

    if (status == 204 || status == 304)
        return answer + 1;
    json_key(json, "content");
    json_map_begin(json);
    for (; answer->status == status; answer++)
        put_content(json, answer);
    json_map_end(json);
    return answer;
}

static void put_success(struct json_writer *json, const struct route *route)
{
    const char *text = route->summary ? route->summary : "done";
    char status[16];

    for (const struct route_answer *answer = route->answers; answer && answer->status;) {
        (void)snprintf(status, sizeof status, "%d", answer->status);
        json_key(json, status);
        json_map_begin(json);
        openapi_text(json, "description", text);
        answer = put_contents(json, answer);
        json_map_end(json);
    }
    if (route->answers)
        return;
    json_key(json, "2XX");
    json_map_begin(json);
    openapi_text(json, "description", text);
    json_map_end(json);
}

static void put_failure(struct json_writer *json, const struct front *front, const char *status,
                        const char *text)
{
    char reference[128];

    json_key(json, status);
    json_map_begin(json);
    openapi_text(json, "description", text);
    if (front->failure) {
        (void)snprintf(reference, sizeof reference, "#/components/schemas/%s-failure", front->name);
        json_key(json, "content");
        json_map_begin(json);
        json_key(json, front->failure_content ? front->failure_content : "application/json");
        json_map_begin(json);
        json_key(json, "schema");
        json_map_begin(json);
        openapi_text(json, "$ref", reference);
        json_map_end(json);
        json_map_end(json);
        json_map_end(json);
    }
    json_map_end(json);
}

static void put_answers(struct json_writer *json, const struct front *front,
                        const struct route *route)
{
    json_key(json, "responses");
    json_map_begin(json);
    put_success(json, route);
    put_failure(json, front, "4XX", "the request cannot be served; the body says why");
    put_failure(json, front, "5XX", "the server failed; the body says why");
    json_map_end(json);
}

/* An empty list of needs takes back what the whole document asks for. */
static void put_security(struct json_writer *json, const struct route *route)
{
    if (route->access == ACCESS_KEY) {
        openapi_text(json, "x-required-scope", scope_name(route_needs(route)));
        return;
    }
    json_key(json, "security");
    json_list_begin(json);
    json_list_end(json);
}

static void put_operation(struct json_writer *json, const struct route_row *row,
                          const char *pattern)
{
    const struct route *route = row->route;
    char method[16] = "";

    for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)tolower((unsigned char)route->method[i]);
    json_key(json, method);
    json_map_begin(json);
    put_operation_id(json, route, pattern);
    json_key(json, "tags");
    json_list_begin(json);
    json_string(json, row->front->name);
    json_list_end(json);
    if (route->summary)
        openapi_text(json, "summary", route->summary);
    json_key(json, "parameters");
    json_list_begin(json);
    put_path_parameters(json, pattern);
    put_query_parameters(json, route->query);
    json_list_end(json);
    put_body(json, route, row->front->is_strict);
    put_answers(json, row->front, route);
    put_security(json, route);
    json_map_end(json);
}

/* A path is written where its first row is, with the names that row has for its parameters. */
static void put_paths(struct json_writer *json, const struct front *front,
                      const struct route_tree *tree)
{
    for (const struct route *route = front->routes; route->method; route++) {
        const struct route_node *node = route_tree_find(tree, route->pattern);
        if (node->rows->route != route)
            continue;
        json_key(json, route->pattern);
        json_map_begin(json);
        for (const struct route_row *row = node->rows; row; row = row->next) {
            if (!row->route->is_undescribed)
                put_operation(json, row, route->pattern);
        }
        json_map_end(json);
    }
}

static void put_head(struct json_writer *json)
{
    openapi_text(json, "openapi", "3.1.0");
    json_key(json, "info");
    json_map_begin(json);
    openapi_text(json, "title", "burrow");
    openapi_text(json, "description", "Sandboxes for untrusted code, on a machine of your own.");
    openapi_text(json, "version", BURROW_VERSION);
    json_map_end(json);
}

static void put_scheme(struct json_writer *json, const char *name, const char *const *members)
{
    json_key(json, name);
    json_map_begin(json);
    for (; *members; members += 2)
        openapi_text(json, members[0], members[1]);
    json_map_end(json);
}

static void put_need(struct json_writer *json, const char *scheme)
{
    json_map_begin(json);
    json_key(json, scheme);
    json_list_begin(json);
    json_list_end(json);
    json_map_end(json);
}

/* One of the two is enough. */
static void put_keys(struct json_writer *json)
{
    static const char *const bearer[] = {"type", "http", "scheme", "bearer", NULL};
    static const char *const header[] = {"type", "apiKey",    "in", "header",
                                         "name", "X-Api-Key", NULL};

    json_key(json, "securitySchemes");
    json_map_begin(json);
    put_scheme(json, "bearer", bearer);
    put_scheme(json, "header", header);
    json_map_end(json);
}

static bool is_described(const struct front *front, const struct front *only)
{
    return only ? front == only : !front->has_document;
}

static void put_components(struct json_writer *json, const struct front *const *fronts,
                           const struct front *only)
{
    char name[96];

    json_key(json, "components");
    json_map_begin(json);
    put_keys(json);
    json_key(json, "schemas");
    json_map_begin(json);
    for (; *fronts; fronts++) {
        if (!(*fronts)->failure || (*fronts)->hosts || !is_described(*fronts, only))
            continue;
        (void)snprintf(name, sizeof name, "%s-failure", (*fronts)->name);
        json_key(json, name);
        openapi_answer(json, &(struct route_answer){.fields = (*fronts)->failure});
    }
    json_map_end(json);
    json_map_end(json);
    json_key(json, "security");
    json_list_begin(json);
    put_need(json, "bearer");
    put_need(json, "header");
    json_list_end(json);
}

static void put_servers(struct json_writer *json, const char *public_url)
{
    json_key(json, "servers");
    json_list_begin(json);
    json_map_begin(json);
    openapi_text(json, "url", public_url ? public_url : "/");
    json_map_end(json);
    json_list_end(json);
}

static void put_tags(struct json_writer *json, const struct front *const *fronts,
                     const struct front *only)
{
    json_key(json, "tags");
    json_list_begin(json);
    for (; *fronts; fronts++) {
        if (!is_described(*fronts, only))
            continue;
        json_map_begin(json);
        openapi_text(json, "name", (*fronts)->name);
        if ((*fronts)->title)
            openapi_text(json, "description", (*fronts)->title);
        json_map_end(json);
    }
    json_list_end(json);
}

int openapi_write(const struct front *const *fronts, const struct front *only,
                  const struct route_tree *tree, const char *public_url, struct buffer *out,
                  struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    put_head(&json);
    put_servers(&json, public_url);
    put_tags(&json, fronts, only);
    json_key(&json, "paths");
    json_map_begin(&json);
    for (const struct front *const *front = fronts; *front; front++) {
        if (!(*front)->hosts && is_described(*front, only))
            put_paths(&json, *front, tree);
    }
    json_map_end(&json);
    put_components(&json, fronts, only);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}
