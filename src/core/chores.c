/* SPDX-License-Identifier: Apache-2.0 */
/* What can wait; see chores.h. */
#include "core/chores.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/merge.h"
#include "core/snapshot_impl.h"
#include "store/chains.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_WAITING 4096
#define LOWEST_PRIORITY 19
#define IO_WHEN_IDLE (3 << 13) // IOPRIO_CLASS_IDLE, ioprio_set(2)
#define IO_OF_THREAD 1

struct chores {
    struct core *core;
    struct workers *thread;
    atomic_bool are_over;
};

struct asked {
    struct chores *chores;
    chore fn;
    char id[ID_TEXT];
};

int chores_new(struct core *core, struct chores **out, struct error *err)
{
    const struct workers_settings one = {.lane = {[WORKERS_SLOW] = {1, MOST_WAITING}}};
    autofree struct chores *chores = xnew(struct chores);

    chores->core = core;
    if (workers_new(&one, &chores->thread, err) < 0)
        return -1;
    *out = take(chores);
    return 0;
}

/* Of the calling thread; where the kernel refuses, it goes on as it is. */
static void lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST_PRIORITY);
    (void)syscall(SYS_ioprio_set, IO_OF_THREAD, 0, IO_WHEN_IDLE);
}

static void do_one(void *data)
{
    autofree struct asked *asked = data;

    lower_priority();
    if (!asked->chores->are_over)
        asked->fn(asked->chores->core, asked->id);
}

void chores_ask(struct chores *chores, chore fn, const char *id)
{
    struct asked *asked = xnew(struct asked);
    struct error ignored = {0};

    *asked = (struct asked){.chores = chores, .fn = fn};
    (void)snprintf(asked->id, sizeof asked->id, "%s", id);
    if (workers_submit(chores->thread, WORKERS_SLOW, do_one, asked, &ignored) < 0)
        free(asked);
}

static void ask_all(struct chores *chores, chore fn, const struct chain_list *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        chores_ask(chores, fn, ids->ids[i]);
}

static void look_for_work(struct core *core, const char *id)
{
    autochains uncounted = {0};
    autochains too_long = {0};
    struct error err = {0};

    (void)id;
    if (store_chain_list_long(core->store, LAYER_MERGE_AT, &too_long, &err) < 0 ||
        store_chain_list_uncounted(core->store, NULL, &uncounted, &err) < 0)
        log_warn("what is left to do for snapshots could not be found",
                 F("error", (const char *)err.text));
    ask_all(core->chores, snapshot_count_later, &uncounted);
    ask_all(core->chores, merge_snapshot, &too_long);
}

void chores_start(struct chores *chores)
{
    chores_ask(chores, look_for_work, "");
}

const atomic_bool *chores_are_over(const struct chores *chores)
{
    return &chores->are_over;
}

void chores_stop(struct chores *chores)
{
    if (!chores)
        return;
    chores->are_over = true;
    workers_free(chores->thread); // those under way may ask for more until it returns
    chores->thread = NULL;
}

void chores_free(struct chores *chores)
{
    chores_stop(chores);
    free(chores);
}
