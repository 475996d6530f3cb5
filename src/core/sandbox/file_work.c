/* SPDX-License-Identifier: Apache-2.0 */
/* Work on files with an end; see file_work.h. */
#include "core/sandbox/file_work.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "engine/files.h"

#define SILENCE_MS 30000 // between two frames

void file_work_init(struct file_work *work, const struct sandboxes *sandboxes,
                    const struct actor *actor)
{
    int64_t within_ms = sandboxes->settings->file_timeout_ms;

    *work = (struct file_work){
        .conversation = -1,
        .within_ms = within_ms,
        .until_ms = within_ms > 0 ? clock_monotonic_ms() + (uint64_t)within_ms : UINT64_MAX,
        .cancel = actor ? actor->cancel : NULL,
    };
}

// ---- the CPU it is done with ----

/*
 * PID 1 works within the box's limit of CPU. Where that is small, guests that use it up would leave PID 1 waiting for many periods at
 * each step; so while there is such work, the box has a little more, of which PID 1 takes what it needs first (its rank is above theirs).
 */
#define SMALL_MILLICORES 500
#define MORE_MILLICORES 200

static bool has_small_cpu(const struct sandbox *sandbox)
{
    int64_t limit = sandbox->record.limits.cpu_millicores;

    return limit > 0 && limit < SMALL_MILLICORES;
}

static void set_more_cpu(struct sandbox *sandbox, int64_t more)
{
    struct error ignored = {0};

    if (sandbox->box && !sandbox->is_box_over) // else it takes longer, or has ended
        (void)box_set_cpu(sandbox->box, sandbox->record.limits.cpu_millicores + more, &ignored);
}

void file_work_restore_cpu(struct sandbox *sandbox)
{
    if (has_small_cpu(sandbox))
        set_more_cpu(sandbox, 0);
}

static void take_more_cpu(struct file_work *work, struct sandbox *sandbox)
{
    if (!has_small_cpu(sandbox))
        return;
    autobox held = sandbox_share_box(sandbox);
    if (sandbox->n_file_works++ == 0)
        set_more_cpu(sandbox, MORE_MILLICORES);
    work->sandbox = sandbox_ref(sandbox);
}

static void give_back_cpu(struct sandbox *sandbox)
{
    autobox held = sandbox_share_box(sandbox);

    if (--sandbox->n_file_works == 0)
        set_more_cpu(sandbox, 0);
}

/* With a conversation that has been opened; takes it. */
static int start_work(struct file_work *work, struct sandbox *sandbox, int conversation,
                      struct error *err)
{
    autofd fd = conversation;

    if (files_set_timeout(fd, SILENCE_MS, err) < 0)
        return -1;
    take_more_cpu(work, sandbox);
    work->conversation = take_fd(fd);
    cancel_add_socket(work->cancel, work->conversation);
    return 0;
}

int file_work_begin(struct file_work *work, struct sandboxes *sandboxes, const struct actor *actor,
                    const char *sandbox_id, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    int conversation = -1;

    file_work_init(work, sandboxes, actor);
    if (file_work_check(work, err) < 0 || // it may have waited for its turn for long
        lookup_files(sandboxes, actor, sandbox_id, &sandbox, &conversation, err) < 0)
        return -1;
    return start_work(work, sandbox, conversation, err);
}

int file_work_begin_as(struct file_work *work, struct sandboxes *sandboxes,
                       const struct actor *actor, const char *sandbox_id, const char *user,
                       struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    int conversation = -1;

    file_work_init(work, sandboxes, actor);
    if (file_work_check(work, err) < 0 ||
        lookup_files_as(sandboxes, actor, sandbox_id, user, &sandbox, &conversation, err) < 0)
        return -1;
    return start_work(work, sandbox, conversation, err);
}

void file_work_clear(struct file_work *work)
{
    if (work->conversation >= 0)
        cancel_forget_socket(work->cancel, work->conversation);
    closep(&work->conversation);
    if (work->sandbox)
        give_back_cpu(work->sandbox);
    sandbox_free(take(work->sandbox));
}

int file_work_check(const struct file_work *work, struct error *err)
{
    if (cancel_is_set(work->cancel))
        return error_refuse(err, ERROR_CANCELLED, "file", "the client went away");
    if (clock_monotonic_ms() < work->until_ms)
        return 0;
    return error_refuse(err, ERROR_SLOW_SANDBOX, "file",
                        "the work on files took longer than %lld second%s",
                        (long long)work->within_ms / 1000, work->within_ms == 1000 ? "" : "s");
}

int file_work_failed(const struct file_work *work, struct sandboxes *sandboxes,
                     const char *sandbox_id, struct error *err)
{
    if (error_is(err, ERROR_GONE) && cancel_is_set(work->cancel))
        return file_work_check(work, err);
    return file_failed(sandboxes, sandbox_id, err);
}
