/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of requests; see create_copy.h. */
#include "core/create_copy.h"

#include "base/arena.h"
#include "base/mem.h"
#include "core/sandbox/file.h"

#include <string.h>

static const char *keep_text(struct arena *arena, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    return text ? memcpy(arena_alloc(arena, size), text, size) : NULL;
}

static const struct sandbox_file *keep_files(struct arena *arena, const struct sandbox_file *files,
                                             size_t count)
{
    struct sandbox_file *copies = arena_alloc(arena, (count + 1) * sizeof *copies);

    for (size_t i = 0; i < count; i++) {
        copies[i] = files[i];
        copies[i].path = keep_text(arena, files[i].path);
        copies[i].data = arena_alloc(arena, files[i].length + 1);
        if (files[i].length)
            memcpy((void *)copies[i].data, files[i].data, files[i].length);
    }
    return copies;
}

struct create_copy *create_copy_new(const struct sandbox_request *from)
{
    struct create_copy *copy = xnew(struct create_copy);
    struct arena *arena = xnew(struct arena);

    copy->memory = arena;
    copy->request = (struct sandbox_request){
        .mode = from->mode,
        .fork_of = keep_text(arena, from->fork_of),
        .home = keep_text(arena, from->home),
        .usual = {.directory = keep_text(arena, from->usual.directory),
                  .user = keep_text(arena, from->usual.user)},
        .files = keep_files(arena, from->files, from->n_files),
        .n_files = from->n_files,
    };
    if (!from->command)
        return copy;
    copy->command = (struct execution_request){
        .kind = from->command->kind,
        .files = keep_files(arena, from->command->files, from->command->n_files),
        .n_files = from->command->n_files,
    };
    copy->request.command = &copy->command;
    return copy;
}

void create_copy_free(struct create_copy *copy)
{
    if (!copy)
        return;
    arena_clear(copy->memory);
    free(copy->memory);
    free(copy);
}
