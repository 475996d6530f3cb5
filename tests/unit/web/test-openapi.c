/* SPDX-License-Identifier: Apache-2.0 */
#include "web/openapi.h"

#include "base/mem.h"
#include "data/json.h"
#include "front/agentuity/agentuity.h"
#include "front/ops/ops.h"
#include "test.h"
#include "unit/web/front_fixture.h"

#include <stdarg.h>

static const struct data_value *find(const struct data_value *value, const char *first, ...)
    __attribute__((sentinel));

/* The member of a member …, by names. */
static const struct data_value *find(const struct data_value *value, const char *first, ...)
{
    va_list names;

    va_start(names, first);
    for (const char *name = first; name; name = va_arg(names, const char *)) {
        value = value_get(value, name);
        if (!value)
            test_fail(__FILE__, __LINE__, "there is no '%s'", name);
    }
    va_end(names);
    return value;
}

static struct data_document *read_document(struct router *router)
{
    struct data_document *document = NULL;
    struct error err = {0};
    size_t length;
    const char *text = router_openapi(router, NULL, &length);

    CHECK_OK(json_read("", text, length, NULL, &document, &err), err);
    return document;
}

static bool has_parameter(const struct data_value *operation, const char *name, size_t length)
{
    const struct data_value *list = value_get(operation, "parameters");

    for (const struct data_value *item = list->first; item; item = item->next) {
        const char *in = value_get(item, "in")->text, *got = value_get(item, "name")->text;
        if (strcmp(in, "path") == 0 && strlen(got) == length && memcmp(got, name, length) == 0)
            return value_get(item, "required")->truth && value_get(item, "schema");
    }
    return false;
}

/* Every parameter in the path is declared, and the document says what an operation must say. */
static void check_operation(const struct data_value *operation, const char *path)
{
    const struct data_value *responses = find(operation, "responses", NULL);

    CHECK(responses->first->key[0] == '2');
    CHECK(find(responses->first, "description", NULL)->length > 0);
    CHECK(find(responses, "4XX", "description", NULL) && find(responses, "5XX", NULL));
    CHECK(find(operation, "operationId", NULL)->kind == VALUE_STRING);
    for (const char *at = strchr(path, '{'); at; at = strchr(at, '{')) {
        size_t length = strcspn(++at, "}");
        CHECK(has_parameter(operation, at, length));
    }
}

static size_t count_references(const struct data_value *value, const struct data_value *root)
{
    static const char where[] = "#/components/schemas/";
    size_t count = 0;

    if (value->key && strcmp(value->key, "$ref") == 0) {
        CHECK(strncmp(value->text, where, sizeof where - 1) == 0);
        CHECK(find(root, "components", "schemas", value->text + sizeof where - 1, NULL));
        return 1;
    }
    for (const struct data_value *child = value->first; child; child = child->next)
        count += count_references(child, root);
    return count;
}

/* The path as the document has it: of the first row with the same shape. */
static const struct data_value *find_path(const struct data_value *paths, const char *pattern)
{
    for (const struct data_value *path = paths->first; path; path = path->next) {
        const char *a = path->key, *b = pattern;
        while (*a && *a == *b) {
            bool is_parameter = *a++ == '{';
            b++;
            a += is_parameter ? strcspn(a, "}") : 0;
            b += is_parameter ? strcspn(b, "}") : 0;
        }
        if (!*a && !*b)
            return path;
    }
    return NULL;
}

static void check_route(const struct data_value *paths, const struct route *route)
{
    const struct data_value *path = find_path(paths, route->pattern);
    char method[16] = "";

    CHECK(path);
    for (size_t i = 0; route->method[i]; i++)
        method[i] = (char)(route->method[i] | 0x20);
    check_operation(find(path, method, NULL), path->key);
    CHECK_STR(find(path, method, "summary", NULL)->text, route->summary);
    CHECK((value_get(value_get(path, method), "security") == NULL) ==
          (route->access == ACCESS_KEY));
}

static void check_document(const struct data_value *root, const struct front *const *fronts)
{
    const struct data_value *paths = find(root, "paths", NULL);
    size_t operations = 0, rows = 0;

    CHECK_STR(find(root, "openapi", NULL)->text, "3.1.0");
    for (; *fronts; fronts++) {
        for (const struct route *route = (*fronts)->routes; route->method; route++, rows++)
            check_route(paths, route);
    }
    for (const struct data_value *path = paths->first; path; path = path->next)
        operations += path->count;
    CHECK_INT(operations, rows);
    CHECK(count_references(root, root) > 0);
}

TEST(every_route_is_in_the_document)
{
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){.is_open = true});
    autoptr(data_document) document = read_document(fixture->router);

    check_document(document->root, fixture->fronts);
}

TEST(the_fronts_of_the_server_have_a_document_together)
{
    struct front agentuity;
    const struct front *const fronts[] = {&agentuity, &ops_front, NULL};
    autoptr(router) router = NULL;
    struct error err = {0};

    agentuity_front_init(&agentuity, &agentuity_settings_default);
    CHECK_OK(
        router_new(&(struct router_settings){.fronts = fronts, .is_open = true}, &router, &err),
        err);
    autoptr(data_document) document = read_document(router);
    check_document(document->root, fronts);
    agentuity_front_clear(&agentuity);
}

TEST(operations_have_ids_of_their_own)
{
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){.is_open = true});
    autoptr(data_document) document = read_document(fixture->router);
    const struct data_value *paths = find(document->root, "paths", NULL);
    const char *seen[100];
    size_t count = 0;

    for (const struct data_value *path = paths->first; path; path = path->next) {
        for (const struct data_value *operation = path->first; operation;
             operation = operation->next) {
            seen[count] = find(operation, "operationId", NULL)->text;
            for (size_t i = 0; i < count; i++)
                CHECK(strcmp(seen[i], seen[count]) != 0);
            CHECK(++count < ARRAY_SIZE(seen));
        }
    }
    CHECK_STR(find(paths, "/things/{a}/of/{b}", "get", "operationId", NULL)->text,
              "get_things_a_of_b");
}

TEST(bodies_and_queries_are_described_by_their_tables)
{
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){.is_open = true});
    autoptr(data_document) document = read_document(fixture->router);
    const struct data_value *paths = find(document->root, "paths", NULL);
    const struct data_value *schema =
        find(paths, "/name", "post", "requestBody", "content", "application/json", "schema", NULL);

    CHECK_STR(find(schema, "required", NULL)->first->text, "name");
    CHECK_STR(find(schema, "properties", "name", "description", NULL)->text, "what it is called");
    CHECK_STR(find(schema, "properties", "files", "items", "properties", "content",
                   "contentEncoding", NULL)
                  ->text,
              "base64");
    const struct data_value *limit = find(paths, "/list", "get", "parameters", NULL)->first;
    CHECK_STR(find(limit, "schema", "maximum", NULL)->text, "100");
    CHECK_STR(find(limit->next, "schema", "enum", NULL)->last->text, "green");
    CHECK(
        find(paths, "/upload", "put", "requestBody", "content", "application/octet-stream", NULL));
}

TEST(the_same_tables_give_the_same_bytes_and_are_served)
{
    autoptr(front_fixture) first = front_fixture_new(&(struct front_options){0});
    autoptr(front_fixture) second = front_fixture_new(&(struct front_options){.is_open = true});
    autoanswer answer = {0};
    size_t length, other;
    const char *text = router_openapi(first->router, NULL, &length);

    CHECK(memcmp(text, router_openapi(second->router, NULL, &other), length) == 0 &&
          length == other);
    CHECK_INT(ask(first, "GET /openapi.json", NULL, NULL, &answer), 200);
    CHECK(answer.body.length == length && memcmp(answer.body.data, text, length) == 0);
    CHECK(strstr(answer.head, "\r\nContent-Type: application/json\r\n"));
}
