/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_fixture.h. */
#include "stream_fixture.h"

#include "base/mem.h"
#include "store/sandboxes.h"
#include "test.h"

const struct actor one_of_us = {.organisation = ORGANISATION, .scopes = SCOPES_ALL};
const struct actor stranger = {.organisation = "org2", .scopes = SCOPES_ALL};

static struct core *current;
static char directory[128];

static void open_parts(void)
{
    struct error err = {0};

    current = xnew(struct core);
    current->store = fixture_open();
    current->settings.data_dir = directory;
    const struct streams_settings settings = {
        .data_dir = directory, .limit_bytes = STREAM_LIMIT, .keep_ms = KEEP_MS};
    current->hub = hub_new();
    CHECK_OK(streams_open(current->store, current->hub, &settings, &current->streams, &err), err);
}

void stream_core_end(void)
{
    if (!current)
        return;
    streams_free(current->streams);
    hub_free(current->hub);
    free(current);
    current = NULL;
    fixture_close();
}

struct core *stream_core(void)
{
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    current = NULL;        // what a failed test held may still be held: it is let go, not freed
    (void)fixture_store(); // has the organisation
    (void)snprintf(directory, sizeof directory, "%s", fixture_path());
    *strrchr(directory, '/') = '\0';
    open_parts();
    CHECK_OK(store_sandbox_put(current->store, &sandbox, &err), err);
    return current;
}

struct core *stream_core_again(void)
{
    stream_core_end();
    open_parts();
    return current;
}

const char *new_stream(struct core *core)
{
    static char ids[8][32];
    static unsigned next;
    struct stream_request request = {.name = "mine"};
    autoclear(stream_info) record = {0};
    struct error err = {0};

    CHECK_OK(stream_create(core->streams, &one_of_us, &request, &record, &err), err);
    char *id = ids[next++ % 8];
    (void)snprintf(id, sizeof ids[0], "%s", record.id);
    return id;
}

void append(struct core *core, const char *id, const char *text)
{
    struct error err = {0};

    CHECK_OK(stream_append(core->streams, &one_of_us, id, text, strlen(text), &err), err);
}

struct stream_place place_of(enum stream_kind kind)
{
    return (struct stream_place){
        .owner.organisation = ORGANISATION, .kind = kind, .sandbox_id = "s", .execution_id = "e"};
}

const char *stream_file(const char *id)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/spool/%.2s/%s", directory, id, id);
    return path;
}

struct stream_progress progress_of(struct stream *stream)
{
    struct stream_progress progress;

    stream_progress(stream, &progress);
    return progress;
}

const char *content_of(struct stream *stream)
{
    static char text[4096];
    uint64_t size = progress_of(stream).size_bytes;

    CHECK(size < sizeof text);
    CHECK_INT(pread(stream_fd(stream), text, size, 0), size);
    text[size] = '\0';
    return text;
}

int64_t row_number(struct core *core, const char *column, const char *id)
{
    char text[256];

    (void)snprintf(text, sizeof text, "SELECT %s FROM streams WHERE id = '%s'", column, id);
    return fixture_number(core->store, text);
}
