/* SPDX-License-Identifier: Apache-2.0 */
/* Host directories on the command line; see mount_option.h. */
#include "cli/mount_option.h"

#include "base/auto.h"
#include "base/mem.h"
#include "engine/host_dir.h"

#include <stdlib.h>
#include <string.h>

#define READ_ONLY ":ro"

static size_t ends_read_only(const char *text, size_t length)
{
    size_t tail = strlen(READ_ONLY);
    return length > tail && strncmp(text + length - tail, READ_ONLY, tail) == 0 ? tail : 0;
}

/* Where the path in the sandbox begins: behind the last colon before a slash. */
static const char *find_target(const char *text, size_t length)
{
    for (size_t i = length; i-- > 1;) {
        if (text[i] == ':' && text[i + 1] == '/')
            return text + i + 1;
    }
    return NULL;
}

int mount_option_read(const char *text, struct mount_option *out, struct error *err)
{
    size_t length = strlen(text), tail = ends_read_only(text, length);
    const char *target = find_target(text, length - tail);

    if (!target)
        return error_set(err, ERROR_INVALID,
                         "--mount '%.300s' is not LOCAL:SANDBOX[:ro] (directory here, colon, "
                         "absolute path in the sandbox)",
                         text);
    *out = (struct mount_option){
        .local = xstrndup(text, (size_t)(target - text) - 1),
        .target = xstrndup(target, length - tail - (size_t)(target - text)),
        .is_read_only = tail > 0,
    };
    if (host_dir_check_target(out->target, err) == 0)
        return 0;
    mount_option_clear(out);
    return error_wrap(err, "--mount '%.300s'", text);
}

void mount_option_clear(struct mount_option *option)
{
    free(take(option->local));
    free(take(option->target));
}

static int check_count(const struct option_list *list, struct error *err)
{
    if (list->count <= BOX_MAX_MOUNTS)
        return 0;
    return error_set(err, ERROR_INVALID, "at most %d --mount, not %zu", BOX_MAX_MOUNTS,
                     list->count);
}

int run_mounts_open(const struct option_list *list, struct run_mounts *out, struct error *err)
{
    if (check_count(list, err) < 0)
        return -1;
    for (size_t i = 0; i < list->count; i++) {
        struct mount_option *option = &out->options[i];
        int fd = -1;
        if (mount_option_read(list->items[i], option, err) < 0)
            return -1;
        out->mounts[i] = (struct box_mount){-1, option->target, option->is_read_only};
        out->count++;
        if (host_dir_open(-1, option->local, option->local, &fd, err) < 0)
            return error_wrap(err, "--mount '%.300s'", list->items[i]);
        out->mounts[i].fd = fd;
    }
    return 0;
}

void run_mounts_clear(struct run_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++) {
        closep(&mounts->mounts[i].fd);
        mount_option_clear(&mounts->options[i]);
    }
    mounts->count = 0;
}

static int write_mount(struct json_writer *json, const struct mount_option *option,
                       struct error *err)
{
    autofree char *here = *option->local == '/' ? NULL : realpath(option->local, NULL);

    if (*option->local != '/' && !here)
        return error_path(err, "--mount: open '%.300s'", option->local);
    json_map_begin(json);
    json_key(json, "source");
    json_string(json, here ? here : option->local);
    json_key(json, "target");
    json_string(json, option->target);
    json_key(json, "readOnly");
    json_bool(json, option->is_read_only);
    json_map_end(json);
    return 0;
}

int mount_options_write(struct json_writer *json, const struct option_list *list, struct error *err)
{
    if (list->count == 0)
        return 0;
    if (check_count(list, err) < 0)
        return -1;
    json_key(json, "mounts");
    json_list_begin(json);
    for (size_t i = 0; i < list->count; i++) {
        struct mount_option option = {0};
        if (mount_option_read(list->items[i], &option, err) < 0)
            return -1;
        int result = write_mount(json, &option, err);
        mount_option_clear(&option);
        if (result < 0)
            return -1;
    }
    json_list_end(json);
    return 0;
}
