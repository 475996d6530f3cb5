/* SPDX-License-Identifier: Apache-2.0 */
/* Work that can wait; see background.h. */
#include "loop/background.h"

#include "base/auto.h"
#include "base/mem.h"
#include "loop/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_WAITING 4096
#define LOWEST_PRIORITY 19
#define IO_WHEN_IDLE (3 << 13) // IOPRIO_CLASS_IDLE, ioprio_set(2)
#define IO_OF_THREAD 1

struct background {
    struct workers *thread;
    atomic_bool is_stopping;
};

struct piece {
    struct background *background;
    background_fn fn;
    void *owner;
    char id[ID_TEXT];
};

int background_new(struct background **out, struct error *err)
{
    const struct workers_settings one = {
        .lane = {[WORKERS_SLOW] = {1, MOST_WAITING, "background"}}};
    autofree struct background *background = xnew(struct background);

    if (workers_new(&one, &background->thread, err) < 0)
        return -1;
    *out = take(background);
    return 0;
}

/* Of the calling thread; where the kernel refuses, it goes on as it is. */
static void lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST_PRIORITY);
    (void)syscall(SYS_ioprio_set, IO_OF_THREAD, 0, IO_WHEN_IDLE);
}

static void run_piece(void *data)
{
    autofree struct piece *piece = data;

    lower_priority();
    if (!piece->background->is_stopping)
        piece->fn(piece->owner, piece->id);
}

void background_run(struct background *background, background_fn fn, void *owner, const char *id)
{
    struct piece *piece = xnew(struct piece);
    struct error ignored = {0};

    *piece = (struct piece){.background = background, .fn = fn, .owner = owner};
    (void)snprintf(piece->id, sizeof piece->id, "%s", id);
    if (workers_submit(background->thread, WORKERS_SLOW, run_piece, piece, &ignored) < 0)
        free(piece);
}

const atomic_bool *background_is_stopping(const struct background *background)
{
    return &background->is_stopping;
}

void background_stop(struct background *background)
{
    if (!background)
        return;
    background->is_stopping = true;
    workers_free(background->thread); // work under way may ask for more until this returns
    background->thread = NULL;
}

void background_free(struct background *background)
{
    background_stop(background);
    free(background);
}
