/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a sandbox before anybody uses it: its home, its directory, files that were asked for; see create_impl.h. */
#include "core/create_impl.h"

#include "base/auto.h"
#include "core/core.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/file_work.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_trust.h"
#include "engine/files.h"

/* From the root, since the working directory may not be there yet. */
static int open_root(struct creation *creation, const char *user, int *conversation,
                     struct error *err)
{
    autobox held = sandbox_use_box(creation->sandbox, err);

    return held ? box_files(held->box, user, "/", conversation, err) : -1;
}

/* By the box's root, where the user itself may not: of one by numbers, whatever the runtime has. */
static int make_for(struct creation *creation, const char *path, struct error *err)
{
    autofd conversation = -1;
    uint32_t uid, gid;

    if (!command_user_ids(creation->request->usual.user, &uid, &gid))
        return -1;
    if (open_root(creation, NULL, &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0 ||
        files_mkdir(conversation, path, 0755, FILES_PARENTS, err) < 0)
        return -1;
    return files_chown(conversation, path, uid, gid, 0, err);
}

static int make_dir(struct creation *creation, int conversation, const char *path,
                    struct error *err)
{
    if (!path || files_mkdir(conversation, path, 0755, FILES_PARENTS, err) == 0)
        return 0;
    return error_is(err, ERROR_DENIED) ? make_for(creation, path, err) : -1;
}

/* A home that the runtime brings may be another's: a user by numbers owns it all the same, as in boxes that were made ahead. */
static int make_home(struct creation *creation, int conversation, struct error *err)
{
    const char *home = creation->request->home, *user = creation->request->usual.user;
    struct files_item item;
    uint32_t uid, gid;

    if (make_dir(creation, conversation, home, err) < 0)
        return -1;
    if (!home || !user || !command_user_ids(user, &uid, &gid))
        return 0;
    if (files_stat(conversation, home, true, &item, NULL, err) == 0)
        return item.uid == uid ? 0 : make_for(creation, home, err);
    // a directory above may be shut for it
    return error_is(err, ERROR_DENIED) ? make_for(creation, home, err) : -1;
}

/* Starting a command makes its directory; everything else needs files to be talked about. */
static int put_files(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    size_t n_more = request->command ? request->command->n_files : 0;
    autofd conversation = -1;
    autofilework work = {.conversation = -1};

    if (request->mode == SANDBOX_ONE_SHOT && request->n_files + n_more == 0)
        return 0;
    if (open_root(creation, request->usual.user, &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0 ||
        make_home(creation, conversation, err) < 0 ||
        make_dir(creation, conversation, request->usual.directory, err) < 0)
        return -1;
    if (request->n_files + n_more == 0)
        return 0;
    closep(&conversation);
    file_work_init(&work, creation->sandbox->sandboxes, NULL);
    if (sandbox_files(creation->sandbox, &work.conversation, err) < 0 ||
        files_set_timeout(work.conversation, FILE_TIMEOUT_MS, err) < 0 ||
        file_write_all(&work, request->files, request->n_files, err) < 0)
        return -1;
    return n_more ? file_write_all(&work, request->command->files, n_more, err) : 0;
}

int creation_populate(struct creation *creation, struct error *err)
{
    struct sandbox *sandbox = creation->sandbox;

    if (sandbox_trust(sandbox, err) == 0 && put_files(creation, err) == 0)
        return 0;
    return error_is(err, ERROR_DISK_FULL)
               ? file_disk_full(sandbox->sandboxes, sandbox->record.limits.disk_bytes, err)
               : -1;
}
