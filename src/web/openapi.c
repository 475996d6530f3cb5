/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document; see openapi.h. */
#include "web/openapi.h"

#include "web/openapi_names.h"
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

/* What is said of it beside its row; NULL: nothing. */
static const struct front_operation *find_operation(const struct front *front,
                                                    const struct route *route)
{
    const struct front_operation *row = front->document ? front->document->operations : NULL;
    size_t length = strlen(route->method), top = row ? strlen(front->top) - 1 : 0;

    for (; row && row->operation; row++) {
        if (strncmp(row->operation, route->method, length) == 0 && row->operation[length] == ' ' &&
            strcmp(row->operation + length + 1, route->pattern + top) == 0)
            return row;
    }
    return NULL;
}

/* "post_sandbox_id_execute": one for each operation, since methods and paths are. */
static void put_operation_id(struct json_writer *json, const struct front *front,
                             const struct route *route, const char *pattern)
{
    char name[OPENAPI_NAME];
    char id[256];
    size_t used = 0;

    if (front->document) {
        const struct front_operation *operation = find_operation(front, route);
        openapi_text(json, "operationId",
                     operation && operation->name
                         ? operation->name
                         : openapi_operation_name(route->method, pattern, front->top, name));
        return;
    }
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

/* Whether what is said for some operations is said for this one. */
static bool is_for(enum front_when when, const struct route *route)
{
    bool is_get = strcmp(route->method, "GET") == 0;

    switch (when) {
    case FRONT_WITH_KEY:
        return route->access == ACCESS_KEY;
    case FRONT_WITH_PATH:
        return strchr(route->pattern, '{') != NULL;
    case FRONT_ON_GET:
        return is_get;
    case FRONT_ON_WRITE:
        return !is_get;
    case FRONT_ON_POST:
        return strcmp(route->method, "POST") == 0;
    case FRONT_WITH_BODY:
        return route->body != BODY_NONE;
    case FRONT_ALWAYS:
        break;
    }
    return true;
}

static void put_reference(struct json_writer *json, const char *where, const char *name)
{
    char text[160];

    (void)snprintf(text, sizeof text, "#/components/%s/%s", where, name);
    json_map_begin(json);
    openapi_text(json, "$ref", text);
    json_map_end(json);
}

static void put_header_parameters(struct json_writer *json, const struct front *front,
                                  const struct route *route)
{
    const struct front_header *header = front->document ? front->document->asked : NULL;

    for (; header && header->name; header++) {
        if (is_for(header->when, route))
            put_reference(json, "parameters", header->name);
    }
}

static const struct parameter *path_row(const struct front *front, const char *name, size_t length)
{
    const struct parameter *row = front->document ? front->document->path : NULL;

    for (; row && row->name; row++) {
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static void put_path_parameters(struct json_writer *json, const struct front *front,
                                const char *pattern)
{
    for (const char *at = strchr(pattern, '{'); at; at = strchr(at, '{')) {
        size_t length = strcspn(++at, "}");
        json_map_begin(json);
        put_name(json, "name", at, length);
        openapi_text(json, "in", "path");
        put_truth(json, "required");
        const struct parameter *row = path_row(front, at, length);
        if (row && row->help)
            openapi_text(json, "description", row->help);
        json_key(json, "schema");
        openapi_parameter(json, &(struct parameter){.type = PARAMETER_TEXT});
        if (row && row->example)
            openapi_text(json, "example", row->example);
        json_map_end(json);
    }
}

/* As the JSON that its schema asks for. */
static void put_example(struct json_writer *json, const struct parameter *parameter,
                        const char *value, size_t length)
{
    bool is_plain = parameter->type == PARAMETER_INTEGER || parameter->type == PARAMETER_BOOL;

    json_key(json, "example");
    if (is_plain)
        json_raw(json, value, length);
    else
        json_bytes(json, value, length);
}

/* The value of a name in "a=1&b=2"; NULL: it is not there. */
static const char *find_value(const char *query, const char *name, size_t *length)
{
    size_t wanted = strlen(name);

    for (const char *at = query; at && *at; at += *at == '&') {
        size_t whole = strcspn(at, "&");
        if (whole > wanted && memcmp(at, name, wanted) == 0 && at[wanted] == '=') {
            *length = whole - wanted - 1;
            return at + wanted + 1;
        }
        at += whole;
    }
    return NULL;
}

static void put_query_parameters(struct json_writer *json, const struct parameter *parameters,
                                 const char *example)
{
    size_t length;

    for (const struct parameter *parameter = parameters; parameter && parameter->name;
         parameter++) {
        json_map_begin(json);
        openapi_text(json, "name", parameter->name);
        openapi_text(json, "in", "query");
        if (parameter->help)
            openapi_text(json, "description", parameter->help);
        json_key(json, "schema");
        openapi_parameter(json, parameter);
        const char *value = find_value(example, parameter->name, &length);
        if (value)
            put_example(json, parameter, value, length);
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

static void put_body(struct json_writer *json, const struct route *route,
                     const struct front_operation *operation, bool is_strict)
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
        if (operation && operation->body) {
            json_key(json, "example");
            json_raw(json, operation->body, strlen(operation->body));
        }
    }
    json_map_end(json);
    json_map_end(json);
    json_map_end(json);
}

/* All types that there are with the status of the first. */
static void put_contents(struct json_writer *json, const struct route_answer *first)
{
    json_key(json, "content");
    json_map_begin(json);
    for (const struct route_answer *answer = first; answer->status; answer++) {
        if (answer->status != first->status)
            continue;
        json_key(json, answer->content ? answer->content : "application/json");
        json_map_begin(json);
        if (!answer->content) {
            json_key(json, "schema");
            openapi_answer(json, answer);
        }
        json_map_end(json);
    }
    json_map_end(json);
}

static bool is_repeated(const struct route *route, const struct route_answer *answer)
{
    for (const struct route_answer *before = route->answers; before < answer; before++) {
        if (before->status == answer->status)
            return true;
    }
    return false;
}

static void put_told(struct json_writer *json, const struct front *front, const struct route *route)
{
    const struct front_header *header = front->document ? front->document->told : NULL;

    if (!header)
        return;
    json_key(json, "headers");
    json_map_begin(json);
    for (; header->name; header++) {
        if (is_for(header->when, route)) {
            json_key(json, header->name);
            put_reference(json, "headers", header->name);
        }
    }
    json_map_end(json);
}

static void put_success(struct json_writer *json, const struct front *front,
                        const struct route *route)
{
    const char *text = route->summary ? route->summary : "done";
    char status[16];

    for (const struct route_answer *answer = route->answers; answer && answer->status; answer++) {
        if (is_repeated(route, answer))
            continue;
        (void)snprintf(status, sizeof status, "%d", answer->status);
        json_key(json, status);
        json_map_begin(json);
        openapi_text(json, "description", text);
        put_told(json, front, route);
        if (answer->status != 204 && answer->status != 304 && answer->status >= 200)
            put_contents(json, answer);
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

static void put_known_failures(struct json_writer *json, const struct front *front,
                               const struct route *route)
{
    const struct front_failure *failure = front->document ? front->document->failures : NULL;
    char status[16];

    for (; failure && failure->status; failure++) {
        if (!is_for(failure->when, route))
            continue;
        (void)snprintf(status, sizeof status, "%d", failure->status);
        json_key(json, status);
        put_reference(json, "responses", status);
    }
}

static void put_answers(struct json_writer *json, const struct front *front,
                        const struct route *route)
{
    json_key(json, "responses");
    json_map_begin(json);
    put_success(json, front, route);
    put_known_failures(json, front, route);
    put_failure(json, front, "4XX", "the request cannot be served; the body says why");
    put_failure(json, front, "5XX", "the server failed; the body says why");
    json_map_end(json);
}

/* `scope` may be NULL: any. */
static void put_need(struct json_writer *json, const char *scheme, const char *scope)
{
    json_map_begin(json);
    json_key(json, scheme);
    json_list_begin(json);
    if (scope)
        json_string(json, scope);
    json_list_end(json);
    json_map_end(json);
}

/* An empty list of needs takes back what the whole document asks for. */
static void put_security(struct json_writer *json, const struct route *route, bool is_own)
{
    if (route->access == ACCESS_KEY)
        openapi_text(json, "x-required-scope", scope_name(route_needs(route)));
    if (route->access == ACCESS_KEY && !is_own)
        return;
    json_key(json, "security");
    json_list_begin(json);
    if (route->access == ACCESS_KEY) {
        put_need(json, "bearer", scope_name(route_needs(route)));
        put_need(json, "header", scope_name(route_needs(route)));
    }
    json_list_end(json);
}

static void put_operation(struct json_writer *json, const struct route_row *row,
                          const char *pattern)
{
    const struct route *route = row->route;
    const struct front_operation *operation = find_operation(row->front, route);
    char method[16] = "", tag[OPENAPI_NAME];

    for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)tolower((unsigned char)route->method[i]);
    json_key(json, method);
    json_map_begin(json);
    put_operation_id(json, row->front, route, pattern);
    json_key(json, "tags");
    json_list_begin(json);
    json_string(json, row->front->document ? openapi_tag(pattern, row->front->top, tag)
                                           : row->front->name);
    json_list_end(json);
    if (route->summary)
        openapi_text(json, "summary", route->summary);
    json_key(json, "parameters");
    json_list_begin(json);
    put_path_parameters(json, row->front, pattern);
    put_query_parameters(json, route->query, operation ? operation->query : NULL);
    put_header_parameters(json, row->front, route);
    json_list_end(json);
    put_body(json, route, operation, row->front->is_strict);
    put_answers(json, row->front, route);
    put_security(json, route, row->front->document != NULL);
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

static void put_head(struct json_writer *json, const struct front_document *document)
{
    openapi_text(json, "openapi", "3.1.0");
    json_key(json, "info");
    json_map_begin(json);
    openapi_text(json, "title", document ? document->title : "burrow");
    openapi_text(json, "description",
                 document ? document->description
                          : "Sandboxes for untrusted code, on a machine of your own.");
    openapi_text(json, "version", BURROW_VERSION);
    json_key(json, "license");
    json_map_begin(json);
    openapi_text(json, "name", "Apache-2.0");
    openapi_text(json, "identifier", "Apache-2.0");
    json_map_end(json);
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

/* One of the two is enough. */
static void put_keys(struct json_writer *json)
{
    static const char *const bearer[] = {
        "type", "http", "scheme", "bearer", "description", "Authorization: Bearer KEY", NULL};
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
    return only ? front == only : !front->document;
}

static void put_header(struct json_writer *json, const struct front_header *header, bool is_asked)
{
    json_key(json, header->name);
    json_map_begin(json);
    if (is_asked) {
        openapi_text(json, "name", header->name);
        openapi_text(json, "in", "header");
    }
    openapi_text(json, "description", header->help);
    json_key(json, "schema");
    openapi_parameter(json, &(struct parameter){.type = PARAMETER_TEXT});
    if (header->example)
        openapi_text(json, "example", header->example);
    json_map_end(json);
}

static void put_headers(struct json_writer *json, const char *key,
                        const struct front_header *headers, bool is_asked)
{
    json_key(json, key);
    json_map_begin(json);
    for (; headers && headers->name; headers++)
        put_header(json, headers, is_asked);
    json_map_end(json);
}

/* What the operations of a front with a document of its own refer to. */
static void put_shared(struct json_writer *json, const struct front *front)
{
    const struct front_document *document = front->document;
    char status[16];

    put_headers(json, "parameters", document->asked, true);
    put_headers(json, "headers", document->told, false);
    json_key(json, "responses");
    json_map_begin(json);
    for (const struct front_failure *row = document->failures; row && row->status; row++) {
        (void)snprintf(status, sizeof status, "%d", row->status);
        put_failure(json, front, status, row->help);
    }
    json_map_end(json);
    if (document->put_components)
        document->put_components(json);
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
        if (!(*fronts)->failure || (*fronts)->hosts || (*fronts)->claims ||
            !is_described(*fronts, only))
            continue;
        (void)snprintf(name, sizeof name, "%s-failure", (*fronts)->name);
        json_key(json, name);
        openapi_answer(json, &(struct route_answer){.fields = (*fronts)->failure});
    }
    json_map_end(json);
    if (only)
        put_shared(json, only);
    json_map_end(json);
    json_key(json, "security");
    json_list_begin(json);
    put_need(json, "bearer", NULL);
    put_need(json, "header", NULL);
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

static void put_tag(struct json_writer *json, const char *name, const char *help)
{
    json_map_begin(json);
    openapi_text(json, "name", name);
    if (help)
        openapi_text(json, "description", help);
    json_map_end(json);
}

static bool is_tag_used(const struct front *front, const char *tag)
{
    char name[OPENAPI_NAME];

    for (const struct route *route = front->routes; route->method; route++) {
        if (strcmp(openapi_tag(route->pattern, front->top, name), tag) == 0)
            return true;
    }
    return false;
}

/* A tag for each front, or for each noun of the front that has a document of its own. */
static void put_tags(struct json_writer *json, const struct front *const *fronts,
                     const struct front *only)
{
    const char *const *tag = only ? only->document->tags : NULL;

    json_key(json, "tags");
    json_list_begin(json);
    for (; tag && *tag; tag += 2) {
        if (is_tag_used(only, tag[0]))
            put_tag(json, tag[0], tag[1]);
    }
    for (; !only && *fronts; fronts++) {
        if (is_described(*fronts, only))
            put_tag(json, (*fronts)->name, (*fronts)->title);
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
    put_head(&json, only ? only->document : NULL);
    put_servers(&json, public_url);
    put_tags(&json, fronts, only);
    json_key(&json, "paths");
    json_map_begin(&json);
    for (const struct front *const *front = fronts; *front; front++) {
        if (!(*front)->hosts && !(*front)->claims && is_described(*front, only))
            put_paths(&json, *front, tree);
    }
    json_map_end(&json);
    put_components(&json, fronts, only);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}
