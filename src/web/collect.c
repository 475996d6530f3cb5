/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting bodies; see collect.h. */
#include "web/collect.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/sandbox/file.h"
#include "web/drain.h"

#define PATIENCE_MS 60000

struct collect {
    struct core *core;
    struct collected body;
    uint64_t maximum;
    on_collected fn;
    void *data;
};

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct collect *collect = data;

    if (length > collect->maximum - collect->body.size)
        return error_refuse(err, ERROR_TOO_LARGE, NULL,
                            "the body is too large: at most %llu bytes are taken here",
                            (unsigned long long)collect->maximum);
    if (collect->body.fd < 0 &&
        file_temporary(collect->core->settings.data_dir, &collect->body.fd, err) < 0)
        return -1;
    if (fd_write_all(collect->body.fd, bytes, length) < 0)
        return error_sys(err, "keep the body of the request");
    collect->body.size += length;
    return 0;
}

static void on_end(void *data, const struct error *err)
{
    struct collect *collect = data;
    struct error own = {0};

    if (!err && collect->body.fd < 0 &&
        file_temporary(collect->core->settings.data_dir, &collect->body.fd, &own) < 0)
        err = &own;
    collect->fn(collect->data, &collect->body, err);
    closep(&collect->body.fd);
    free(collect);
}

static const struct drain_sink sink = {.on_bytes = on_bytes, .on_end = on_end};

void collect_start(const struct waiting_call *waiting, uint64_t maximum, on_collected fn,
                   void *data)
{
    struct collect *collect = xnew(struct collect);

    *collect = (struct collect){
        .core = waiting->core, .body = {.fd = -1}, .maximum = maximum, .fn = fn, .data = data};
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
