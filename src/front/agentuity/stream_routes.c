/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams. Served below /stream and, so that the clients may be given the bare address of the server, at its root. Their answers
 * have no envelope, but for the list's.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "core/stream/stream.h"
#include "front/agentuity/stream_impl.h"
#include "web/collect.h"
#include "web/follow.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define APPEND_BYTES (5u << 20)
#define TTL_MIN_S 60
#define TTL_MAX_S (90 * 24 * 3600)
#define LIST_LIMIT 100

int stream_id_of(const struct call *call, const char **out, struct error *err)
{
    bool is_at_root = strncmp(call->route->pattern, "/stream/", 8) != 0;
    const char *id = call->parameters[0];

    if (is_at_root && strncmp(id, STREAM_PREFIX, strlen(STREAM_PREFIX)) != 0)
        return error_refuse(err, ERROR_NOT_FOUND, "route", "there is nothing at '%.200s'",
                            call->request->path);
    return call_id(call, 0, STREAM_PREFIX, "stream", out, err);
}

struct create_body {
    const char *name;
    struct field_list metadata; // of struct text_pair
    struct field_list headers;
    bool has_ttl;
    int64_t ttl_s;
};

static const struct field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct create_body, name), .is_needed = true, .maximum = 1024,
     .help = "for lists"},
    {"metadata", FIELD_TEXT_MAP, offsetof(struct create_body, metadata),
     .maximum = STREAM_LABELS_MAX, .help = "texts by name; lists can be narrowed by them"},
    {"headers", FIELD_TEXT_MAP, offsetof(struct create_body, headers), .maximum = 64,
     .help = "kept, not used"},
    {"ttl", FIELD_INTEGER, offsetof(struct create_body, ttl_s), .is_nullable = true, .minimum = 0,
     .maximum = INT64_MAX, .has_offset = offsetof(struct create_body, has_ttl),
     .help = "seconds until it goes, 60 to 7776000; 0 or null: never"},
    {0},
};

/* The map again, as JSON in the call's memory. */
static int pairs_to_json(struct call *call, const struct field_list *list, const char **out,
                         struct error *err)
{
    const struct text_pair *pairs = list->items;
    autobuffer text = {0};
    struct json_writer json;

    if (list->count == 0)
        return 0;
    json_writer_init(&json, &text);
    json_map_begin(&json);
    for (size_t i = 0; i < list->count; i++) {
        json_key(&json, pairs[i].name);
        json_string(&json, pairs[i].value);
    }
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    *out = call_print(call, "%s", text.data);
    return 0;
}

static const struct stream_label *pairs_to_labels(struct call *call, const struct field_list *list)
{
    const struct text_pair *pairs = list->items;
    struct stream_label *labels = call_alloc(call, (list->count + 1) * sizeof *labels);

    for (size_t i = 0; i < list->count; i++)
        labels[i] = (struct stream_label){.name = pairs[i].name, .value = pairs[i].value};
    return labels;
}

/* Out of range is clamped, as the service that the clients know does it. */
static int64_t ttl_ms(const struct create_body *body, bool is_null)
{
    if (is_null || (body->has_ttl && body->ttl_s == 0))
        return (int64_t)DURATION_MAX_MS;
    if (!body->has_ttl)
        return 0;
    if (body->ttl_s < TTL_MIN_S)
        return TTL_MIN_S * 1000LL;
    return (body->ttl_s < TTL_MAX_S ? body->ttl_s : TTL_MAX_S) * 1000LL;
}

static const struct answer_field made_fields[] = {
    {"id", ANSWER_ID, offsetof(struct stream_info, id), .is_needed = true, .prefix = STREAM_PREFIX},
    {0},
};
static const struct route_answer answers_made[] = {{200, made_fields}, {0}};

/* Without an envelope. */
static int answer_plainly(struct call *call, const struct answer_field *fields, const void *from)
{
    autoreply reply = {0};

    reply_init(&reply);
    answer_write(&reply.json, fields, from);
    reply_send(&reply, call->response, 200);
    return 0;
}

/* POST /stream */
static int create_stream(struct call *call, struct error *err)
{
    struct create_body body = {0};
    struct stream_request request = {0};
    autoclear(stream_info) info = {0};
    const struct data_value *ttl = value_get(call->body, "ttl");

    if (fields_read(call->body, create_fields, &body, err) < 0)
        return -1;
    if (!body.name[0])
        return error_set(err, ERROR_INVALID, "name: must not be empty");
    if (pairs_to_json(call, &body.metadata, &request.metadata, err) < 0 ||
        pairs_to_json(call, &body.headers, &request.headers, err) < 0)
        return -1;
    request.name = body.name;
    request.labels = pairs_to_labels(call, &body.metadata);
    request.n_labels = body.metadata.count;
    request.ttl_ms = ttl_ms(&body, ttl && ttl->kind == VALUE_NULL);
    if (stream_create(call->core->streams, &call->actor, &request, &info, err) < 0)
        return -1;
    return answer_plainly(call, made_fields, &info);
}

/* GET /stream/{id} */
static int read_stream(struct call *call, struct error *err)
{
    const char *id = NULL;
    int64_t offset = query_integer(call->query, "offset", 0);
    struct loop *loop = call_loop(call);

    if (stream_id_of(call, &id, err) < 0)
        return -1;
    autoptr(stream) stream = stream_open_quick(call->core->streams, id);
    if (!stream && loop_is_here(loop))
        return CALL_ELSEWHERE;
    if (!stream && stream_open(call->core->streams, id, &stream, err) < 0)
        return -1;
    follow_start(&(struct follow_request){
        .loop = loop,
        .router = call->router,
        .hub = call->core->hub,
        .stream = stream,
        .response = call->response,
        .request = call->request,
        .offset = (uint64_t)offset,
    });
    return 0;
}

struct append {
    struct waiting_call waiting;
    char id[ID_TEXT];
};

static void append_free(struct append *append)
{
    if (!append)
        return;
    waiting_call_clear(&append->waiting);
    free(append);
}
DEFINE_AUTOPTR(append)

/*
 * What comes after the end: dropped where it was the input of a command that is done, as a pipe would; else the writer has to
 * know.
 */
static int excuse_late(const struct append *append, struct error *err)
{
    autoclear(stream_info) info = {0};
    struct error other = {0};

    if (!error_is(err, ERROR_COMPLETE))
        return -1;
    if (stream_get(append->waiting.core->streams, &append->waiting.actor, append->id, &info,
                   &other) == 0 &&
        info.kind == STREAM_STDIN)
        return 0;
    return error_refuse(err, ERROR_COMPLETE, "stream",
                        "stream '" STREAM_PREFIX "%s' is complete: nothing can be added",
                        append->id);
}

static int append_collected(const struct append *append, const struct collected *body,
                            struct error *err)
{
    void *bytes = NULL;

    if (body->size > 0)
        bytes = mmap(NULL, body->size, PROT_READ, MAP_PRIVATE, body->fd, 0);
    if (bytes == MAP_FAILED)
        return error_sys(err, "read the body of the request");
    int status = stream_append(append->waiting.core->streams, &append->waiting.actor, append->id,
                               bytes, body->size, err);
    if (bytes)
        (void)munmap(bytes, body->size);
    return status < 0 ? excuse_late(append, err) : 0;
}

static void on_append_collected(void *data, struct collected *body, const struct error *failure)
{
    autoptr(append) append = data;
    struct error err = {0};

    if (!failure && append_collected(append, body, &err) < 0)
        failure = &err;
    if (failure) {
        waiting_call_fail(&append->waiting, failure);
        return;
    }
    struct call call = waiting_call_get(&append->waiting);
    (void)envelope_bare(&call);
}

/* POST /stream/{id}/append: all of it or nothing, so that a broken request leaves no half of a piece */
static int append_stream(struct call *call, struct error *err)
{
    const char *id = NULL;

    if (stream_id_of(call, &id, err) < 0)
        return -1;
    struct append *append = xnew(struct append);
    waiting_call_init(&append->waiting, call);
    (void)snprintf(append->id, sizeof append->id, "%s", id);
    collect_start(&append->waiting, APPEND_BYTES, on_append_collected, append);
    return 0;
}

/* POST /stream/{id}/complete */
static int complete_stream(struct call *call, struct error *err)
{
    const char *id = NULL;

    if (stream_id_of(call, &id, err) < 0 ||
        stream_complete(call->core->streams, &call->actor, id, err) < 0)
        return -1;
    return envelope_bare(call);
}

/* DELETE /stream/{id} */
static int delete_stream(struct call *call, struct error *err)
{
    const char *id = NULL;

    if (stream_id_of(call, &id, err) < 0 ||
        stream_remove(call->core->streams, &call->actor, id, err) < 0)
        return -1;
    return envelope_bare(call);
}

/* Those of a command's output were given no name. */
static const char *stream_name_of(const struct stream_info *info)
{
    static const char *const names[] = {
        [STREAM_STDIN] = "stdin",       [STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr",
        [STREAM_COMBINED] = "combined", [STREAM_USER] = "",
    };
    return info->name ? info->name : names[info->kind];
}

struct stream_answer {
    const char *id, *name, *metadata;
    struct answer_joined url;
    int64_t size_bytes, expires_at;
};
#define AT(member) offsetof(struct stream_answer, member)
static const struct answer_field stream_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = STREAM_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"metadata", ANSWER_TEXT_MAP, AT(metadata), .is_needed = true},
    {"url", ANSWER_JOINED, AT(url), .is_needed = true, .prefix = "/stream/" STREAM_PREFIX},
    {"size_bytes", ANSWER_INTEGER, AT(size_bytes)},
    {"expires_at", ANSWER_TIME, AT(expires_at), .is_nullable = true},
    {0},
};
#undef AT
struct streams_answer {
    struct answer_list streams;
    int64_t total;
};
static const struct answer_field streams_fields[] = {
    {"streams", ANSWER_LIST, offsetof(struct streams_answer, streams), .is_needed = true,
     .fields = stream_fields, .item_size = sizeof(struct stream_answer)},
    {"total", ANSWER_INTEGER, offsetof(struct streams_answer, total), .help = "of all pages"},
    {0},
};
static const struct route_answer answers_stream[] = {{200, stream_fields}, {0}};
static const struct route_answer answers_streams[] = {{200, streams_fields, &answers_flat}, {0}};

static struct stream_answer answer_of(struct call *call, const struct stream_info *info)
{
    bool is_kept =
        info->expires_at == 0 || info->expires_at - info->created_at >= (int64_t)DURATION_MAX_MS;

    return (struct stream_answer){
        .id = info->id,
        .name = stream_name_of(info),
        .metadata = info->metadata ? info->metadata : "{}",
        .url = {call_base_url(call), info->id},
        .size_bytes = info->size_bytes,
        .expires_at = is_kept ? 0 : info->expires_at,
    };
}

/* POST /stream/{id}/info */
static int get_stream_info(struct call *call, struct error *err)
{
    const char *id = NULL;
    autoclear(stream_info) info = {0};

    if (stream_id_of(call, &id, err) < 0 ||
        stream_get(call->core->streams, &call->actor, id, &info, err) < 0)
        return -1;
    struct stream_answer answer = answer_of(call, &info);
    return answer_plainly(call, stream_fields, &answer);
}

struct list_body {
    const char *name;
    struct field_list metadata; // of struct text_pair
    int64_t limit, offset;
    const char *sort, *direction;
};

static const char *const sort_words[] = {"created", "updated", "name", "size", "lastUsed", NULL};
static const enum stream_sort sorts[] = {STREAM_BY_CREATED, STREAM_BY_UPDATED, STREAM_BY_NAME,
                                         STREAM_BY_SIZE, STREAM_BY_UPDATED};
static const char *const direction_words[] = {"asc", "desc", NULL};

static const struct field list_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct list_body, name), .is_nullable = true,
     .help = "only those of this name"},
    {"metadata", FIELD_TEXT_MAP, offsetof(struct list_body, metadata),
     .maximum = STREAM_FILTER_LABELS, .help = "only those that have all of these"},
    {"limit", FIELD_INTEGER, offsetof(struct list_body, limit), .is_nullable = true, .minimum = 0,
     .maximum = INT64_MAX, .help = "at most 1000 are given"},
    {"offset", FIELD_INTEGER, offsetof(struct list_body, offset), .is_nullable = true, .minimum = 0,
     .maximum = INT64_MAX},
    {"sort", FIELD_TEXT, offsetof(struct list_body, sort), .is_nullable = true,
     .words = sort_words},
    {"direction", FIELD_TEXT, offsetof(struct list_body, direction), .is_nullable = true,
     .words = direction_words},
    {0},
};

static enum stream_sort stream_sort_of(const char *word)
{
    for (size_t i = 0; word && sort_words[i]; i++) {
        if (strcmp(sort_words[i], word) == 0)
            return sorts[i];
    }
    return STREAM_BY_CREATED;
}

/* POST /stream/list */
static int list_streams(struct call *call, struct error *err)
{
    struct list_body body = {.limit = LIST_LIMIT};
    autoclear(stream_infos) streams = {0};

    if (fields_read(call->body, list_fields, &body, err) < 0)
        return -1;
    struct stream_filter filter = {
        .name = body.name,
        .labels = pairs_to_labels(call, &body.metadata),
        .n_labels = body.metadata.count,
        .sort = stream_sort_of(body.sort),
        .is_descending = !body.direction || strcmp(body.direction, "desc") == 0,
        .page = {.limit = body.limit, .offset = body.offset},
    };
    if (stream_list(call->core->streams, &call->actor, &filter, &streams, err) < 0)
        return -1;

    struct stream_answer *items = call_alloc(call, streams.count * sizeof *items);
    for (size_t i = 0; i < streams.count; i++)
        items[i] = answer_of(call, &streams.items[i]);
    struct streams_answer answer = {{items, streams.count}, streams.total};
    autoreply reply = {0};
    envelope_flat(&reply);
    answer_write_members(&reply.json, streams_fields, &answer);
    return envelope_send(&reply, call->response, 200);
}

static const struct parameter read_query[] = {
    {"offset", PARAMETER_INTEGER, NULL, "begin at this byte", .minimum = 0, .maximum = INT64_MAX},
    {0},
};

/* Everything once below /stream and once at the root. */
#define BOTH(method, tail, ...)                                                                    \
    {method, "/stream" tail, __VA_ARGS__},                                                         \
    {                                                                                              \
        method, tail, __VA_ARGS__                                                                  \
    }

const struct route agentuity_stream_routes[] = {
    {"POST", "/stream", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, create_stream, "makes a stream",
     create_fields, .answers = answers_made},
    {"POST", "/", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, create_stream, "makes a stream",
     create_fields, .answers = answers_made},
    BOTH("POST", "/list", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, list_streams, "lists streams",
         list_fields, .answers = answers_streams),
    BOTH("PUT", "/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, stream_put,
         "writes the whole content and completes it", .answers = answers_bare),
    BOTH("GET", "/{id}", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, read_stream,
         "reads it from its first byte, then as it grows", NULL, read_query,
         .answers = answers_bytes),
    BOTH("DELETE", "/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, delete_stream, "removes it",
         .answers = answers_bare),
    BOTH("POST", "/{id}/append", ROUTE_LOOP, ACCESS_KEY, BODY_STREAM, append_stream,
         "adds up to 5 MiB", NULL, NULL, APPEND_BYTES, .answers = answers_bare),
    BOTH("POST", "/{id}/complete", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, complete_stream,
         "says that no more will come", .answers = answers_bare),
    BOTH("POST", "/{id}/info", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_stream_info,
         "tells about it", .answers = answers_stream),
    {0},
};
