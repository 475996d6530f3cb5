/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting bodies; see collect.h. */
#include "web/collect.h"

#include "base/mem.h"
#include "core/sandbox/temporary.h"
#include "web/drain.h"

#define PATIENCE_MS 60000

struct collect {
    const struct waiting_call *waiting;
    struct temporary *file;
    struct collected body;
    uint64_t maximum;
    on_collected fn;
    void *data;
};

static int open_file(struct collect *collect, struct error *err)
{
    const struct waiting_call *waiting = collect->waiting;

    if (collect->file)
        return 0;
    if (temporary_new(waiting->core->temporaries, &waiting->actor, &collect->file, err) < 0)
        return -1;
    collect->body.fd = collect->file->fd;
    return 0;
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct collect *collect = data;

    if (length > collect->maximum - collect->body.size)
        return error_refuse(err, ERROR_TOO_LARGE, NULL,
                            "the body is too large: at most %llu bytes are taken here",
                            (unsigned long long)collect->maximum);
    if (open_file(collect, err) < 0 || temporary_write(collect->file, bytes, length, err) < 0)
        return -1;
    collect->body.size += length;
    return 0;
}

static void on_end(void *data, const struct error *err)
{
    struct collect *collect = data;
    struct error own = {0};

    if (!err && (open_file(collect, &own) < 0 || temporary_finish(collect->file, &own) < 0))
        err = &own;
    collect->fn(collect->data, &collect->body, err);
    temporary_free(collect->file);
    free(collect);
}

static const struct drain_sink sink = {.on_bytes = on_bytes, .on_end = on_end};

void collect_start(const struct waiting_call *waiting, uint64_t maximum, on_collected fn,
                   void *data)
{
    struct collect *collect = xnew(struct collect);

    *collect = (struct collect){
        .waiting = waiting, .body = {.fd = -1}, .maximum = maximum, .fn = fn, .data = data};
    drain_start(&(struct drain_request){
        .loop = waiting->loop,
        .workers = waiting->workers,
        .owner = waiting->owner,
        .body = waiting->body,
        .sink = &sink,
        .data = collect,
        .patience_ms = PATIENCE_MS,
    });
}
