/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes whole calls of the Agentuity front up to where the core would be asked: bytes become requests, find their row, and have
 * query and body read by the row's tables. Whatever is wrong with them is a client's mistake, and is said in the envelope.
 */
#include "base/auto.h"
#include "base/mem.h"
#include "data/json.h"
#include "front/agentuity/agentuity.h"
#include "front/agentuity/envelope.h"
#include "web/route_tree.h"
#include "net/http1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX ((size_t)1 << 20)
#define WANT_BYTES 4096 // more than any table fills

static const struct http1_limits limits = {
    .head_bytes = 16384, .target_bytes = 8192, .headers = 64};

struct fuzz {
    struct http_request *request; // that is being read
};

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static const struct route_tree *routes(void)
{
    static struct front front;
    static struct route_tree *tree;
    struct error err;

    if (!tree) {
        agentuity_front_init(&front, &agentuity_settings_default);
        tree = route_tree_new();
        check(route_tree_add(tree, &front, &err) == 0);
    }
    return tree;
}

/* A failure as the client gets it. */
static void check_failure(const struct error *err)
{
    autoptr(data_document) said = NULL;
    autoreply reply = {0};
    const char *code = NULL, *message = NULL;
    int status = error_status(err);
    struct error ignored = {0};

    check(status >= 400 && (status < 500 || status == 501 || status == 505));
    envelope_failure(&reply, err);
    json_map_end(&reply.json);
    check(json_writer_finish(&reply.json, &ignored) == 0);
    check(json_read("", reply.text.data, reply.text.length, NULL, &said, &ignored) == 0);
    check(value_get_string(said->root, "code", true, &code, &ignored) == 0 && *code);
    check(value_get_string(said->root, "message", true, &message, &ignored) == 0 && *message);
    check(strcmp(code, "INTERNAL") != 0);
}

static int read_body(const struct http_request *request, const struct route *route,
                     struct error *err)
{
    autoptr(data_document) document = NULL;
    autofree char *want = xcalloc(1, WANT_BYTES);

    if (route->body != BODY_JSON || request->body.length == 0)
        return 0;
    if (json_read("", request->body.data, request->body.length, NULL, &document, err) < 0)
        return -1;
    if (document->root->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "the body must be a JSON object");
    return route->fields ? fields_read(document->root, route->fields, want, err) : 0;
}

static int read_call(const struct http_request *request, struct error *err)
{
    autoarena memory = {0};
    autofree char *room = xcalloc(1, strlen(request->path) + 1);
    struct query *query = NULL;
    struct route_path path;
    struct route_match match;

    if (route_path_read(request->path, room, &path, err) < 0)
        return -1;
    route_tree_match(routes(), request->is_head ? "GET" : request->method, &path, &match);
    if (!match.row)
        return error_set(err, ERROR_NOT_FOUND, "there is nothing at '%.200s'", request->path);
    if (query_parse(request->query, &memory, &query, err) < 0 ||
        query_check(query, match.row->route->query, err) < 0)
        return -1;
    return read_body(request, match.row->route, err);
}

static int on_head(void *owner, struct http_request *request, struct http1_fault *fault)
{
    struct fuzz *fuzz = owner;
    check(!fuzz->request);
    buffer_init(&request->body, BODY_MAX);
    fuzz->request = request;
    return 0;
}

static int on_body(void *owner, const char *data, size_t length, struct http1_fault *fault)
{
    struct fuzz *fuzz = owner;
    struct error err = {0};
    if (buffer_add(&fuzz->request->body, data, length, &err) == 0)
        return 0;
    *fault = (struct http1_fault){413, "the body is too large"};
    return -1;
}

static void on_end(void *owner)
{
    struct fuzz *fuzz = owner;
    struct error err = {0};

    if (read_call(fuzz->request, &err) < 0)
        check_failure(&err);
    http_request_free(take(fuzz->request));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http1_events events = {on_head, on_body, on_end};
    struct fuzz fuzz = {0};
    struct http1 http;
    struct http1_fault fault = {0};
    struct error err = {0};

    http1_init(&http, &limits, &events, &fuzz);
    for (size_t at = 0; at < size && !fault.status;) {
        ssize_t used = http1_feed(&http, (const char *)data + at, size - at, &fault);
        at += used > 0 ? (size_t)used : 0;
    }
    http1_clear(&http);
    http_request_free(fuzz.request);
    if (fault.status) {
        (void)reply_error(fault.status, fault.text, &err);
        check_failure(&err);
    }
    return 0;
}
