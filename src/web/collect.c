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
    uint64_t came, maximum;
    const struct collect_decoder *decoder; // NULL: the body is kept as it comes
    struct error failure;                  // of the decoder
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

static int check_size(const struct collect *collect, uint64_t size, size_t more, struct error *err)
{
    if (more <= collect->maximum - size)
        return 0;
    return error_refuse(err, ERROR_TOO_LARGE, NULL,
                        "the body is too large: at most %llu bytes are taken here",
                        (unsigned long long)collect->maximum);
}

int collect_keep(struct collect *to, const void *bytes, size_t length, struct error *err)
{
    if (check_size(to, to->body.size, length, err) < 0 || open_file(to, err) < 0 ||
        temporary_write(to->file, bytes, length, err) < 0)
        return -1;
    to->body.size += length;
    return 0;
}

uint64_t collect_size(const struct collect *to)
{
    return to->body.size;
}

static void drop_file(struct collect *collect)
{
    temporary_free(take(collect->file));
    collect->body.fd = -1;
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct collect *collect = data;

    if (check_size(collect, collect->came, length, err) < 0)
        return -1;
    collect->came += length;
    if (!collect->decoder)
        return collect_keep(collect, bytes, length, err);
    // A client that is answered while it still sends may miss the answer.
    if (!collect->failure.reason &&
        collect->decoder->on_bytes(collect->data, collect, bytes, length, &collect->failure) < 0)
        drop_file(collect);
    return 0;
}

static int finish(struct collect *collect, struct error *err)
{
    if (collect->failure.reason) {
        *err = collect->failure;
        return -1;
    }
    if (collect->decoder && collect->decoder->on_end(collect->data, collect, err) < 0)
        return -1;
    return open_file(collect, err) < 0 ? -1 : temporary_finish(collect->file, err);
}

static void on_end(void *data, const struct error *err)
{
    struct collect *collect = data;
    struct error own = {0};

    if (!err && finish(collect, &own) < 0)
        err = &own;
    collect->fn(collect->data, &collect->body, err);
    temporary_free(collect->file);
    free(collect);
}

static const struct drain_sink sink = {.on_bytes = on_bytes, .on_end = on_end};

void collect_start(const struct waiting_call *waiting, uint64_t maximum, on_collected fn,
                   void *data)
{
    collect_start_decoded(waiting, maximum, NULL, fn, data);
}

void collect_start_decoded(const struct waiting_call *waiting, uint64_t maximum,
                           const struct collect_decoder *decoder, on_collected fn, void *data)
{
    struct collect *collect = xnew(struct collect);

    *collect = (struct collect){
        .waiting = waiting,
        .body = {.fd = -1},
        .maximum = maximum,
        .decoder = decoder,
        .fn = fn,
        .data = data,
    };
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
