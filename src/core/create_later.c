/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes whose runtime has to be built first: their callers are answered, and they go on; see create_impl.h. */
#include "core/create_copy.h"
#include "core/create_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/event/hub.h"
#include "core/execution/execution_info_impl.h"
#include "core/runtime/runtimes.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "loop/workers.h"

static void put_progress(struct sandbox *sandbox, const char *phase, unsigned percent)
{
    struct event event = {.type = EVENT_PROGRESS, .now = (int64_t)clock_wall_ms()};
    autotransaction together = {0};
    struct error err = {0};
    bool is_put;

    event_fact(&event, "runtime", sandbox->record.runtime);
    event_fact(&event, "phase", phase);
    event_number(&event, "percent", percent);
    do
        is_put = store_begin(sandbox->sandboxes->store, STORE_FAST, &together, &err) == 0 &&
                 event_put(sandbox, &event, &err) == 0 && store_commit(&together, &err) == 0;
    while (!is_put && store_again(&together, &err));
    hub_announce(sandbox->sandboxes->hub, sandbox->id);
}

static int on_progress(void *data, const char *phase, unsigned percent)
{
    struct sandbox *sandbox = data;

    if (phase)
        put_progress(sandbox, phase, percent);
    return sandbox->is_unwanted ? -1 : 0;
}

/* It may have been deleted while its runtime was built. */
static int check_wanted(const struct sandbox *sandbox, struct error *err)
{
    return sandbox->is_unwanted ? error_set(err, ERROR_CANCELLED, "it was deleted meanwhile") : 0;
}

static int make_later(struct creation *creation, struct error *err)
{
    struct sandbox *sandbox = creation->sandbox;
    const struct image_watch watch = {on_progress, sandbox};
    autoclear(sandbox_info) info = {0};
    autoptr(image) image = NULL;
    autofree char *additions = additions_of(sandbox->record.dependencies, sandbox->record.packages);

    if (image_get_with(creation->core->runtimes, sandbox->record.runtime, additions, &watch, &image,
                       err) < 0 ||
        check_wanted(sandbox, err) < 0 || creation_take_box(creation, err) < 0)
        return -1;
    return creation_finish(creation, &info, NULL, err);
}

struct later {
    struct creation creation;
    struct actor actor;
    struct create_copy *copy;
};

static void run_later(void *data)
{
    struct later *later = data;
    struct error err = {0};

    if (make_later(&later->creation, &err) < 0) {
        log_warn("sandbox not made", F_SANDBOX(later->creation.sandbox->id),
                 F("error", (const char *)err.text));
        creation_abandon(&later->creation, &err);
    }
    hub_announce(later->creation.core->hub, later->creation.sandbox->id);
    creation_clear(&later->creation);
    create_copy_free(later->copy);
    free(later);
}

static void show_early(struct creation *creation, struct sandbox_info *out,
                       struct execution_info *first)
{
    autosandbox record = {0};
    autoexecution started = {0};

    sandbox_copy(creation->sandbox, &record);
    sandbox_info_take(out, &record);
    if (!creation->execution || !first)
        return;
    execution_copy(creation->execution, &started);
    execution_info_take(first, &started);
}

int create_later(struct creation *creation, struct sandbox_info *out, struct execution_info *first,
                 struct error *err)
{
    if (creation_reserve(creation, err) < 0 || creation_put_early(creation, err) < 0)
        return -1;
    struct later *later = xnew(struct later);
    later->actor = (struct actor){0};
    later->copy = create_copy_new(creation->request);
    later->creation = *creation;
    later->creation.actor = &later->actor;
    later->creation.request = &later->copy->request;
    show_early(creation, out, first);
    if (workers_submit(creation->core->makers, WORKERS_SLOW, run_later, later, err) < 0) {
        create_copy_free(later->copy);
        free(later);
        return -1;
    }
    *creation = (struct creation){.core = creation->core};
    return 0;
}
