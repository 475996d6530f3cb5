/* SPDX-License-Identifier: Apache-2.0 */
/* Work on files with an end; see file_work.h. */
#include "core/sandbox/file_work.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "core/sandbox/lookup.h"
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

int file_work_begin(struct file_work *work, struct sandboxes *sandboxes, const struct actor *actor,
                    const char *sandbox_id, struct error *err)
{
    autofd conversation = -1;

    file_work_init(work, sandboxes, actor);
    if (file_work_check(work, err) < 0 || // it may have waited for its turn for long
        lookup_files(sandboxes, actor, sandbox_id, &conversation, err) < 0 ||
        files_set_timeout(conversation, SILENCE_MS, err) < 0)
        return -1;
    work->conversation = take_fd(conversation);
    cancel_add_socket(work->cancel, work->conversation);
    return 0;
}

void file_work_clear(struct file_work *work)
{
    if (work->conversation >= 0)
        cancel_forget_socket(work->cancel, work->conversation);
    closep(&work->conversation);
}

int file_work_check(const struct file_work *work, struct error *err)
{
    if (cancel_is_set(work->cancel))
        return error_refuse(err, ERROR_CANCELLED, "file", "the client went away");
    if (clock_monotonic_ms() < work->until_ms)
        return 0;
    return error_refuse(err, ERROR_TIMEOUT, "file",
                        "the work on files took longer than %lld seconds",
                        (long long)work->within_ms / 1000);
}

int file_work_failed(const struct file_work *work, struct sandboxes *sandboxes,
                     const char *sandbox_id, struct error *err)
{
    if (error_is(err, ERROR_GONE) && cancel_is_set(work->cancel))
        return file_work_check(work, err);
    return file_failed(sandboxes, sandbox_id, err);
}
