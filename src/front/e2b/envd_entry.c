/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of directories as envd's clients read them; see envd_file.h. */
#include "front/e2b/envd_file.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LINKS_MOST 16 // that are followed for their target

int envd_file_failed(struct error *err)
{
    static const char *const beginnings[] = {"no user '", "no group '", "user '"};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(err->text, beginnings[i], strlen(beginnings[i])) == 0)
            return error_restate(err, ERROR_UNAUTHORIZED, "user");
    }
    return -1;
}

static const char *type_of(uint32_t mode)
{
    return S_ISREG(mode)   ? "FILE_TYPE_FILE"
           : S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY"
           : S_ISLNK(mode) ? "FILE_TYPE_SYMLINK"
                           : "FILE_TYPE_UNSPECIFIED";
}

static const char *permissions_of(uint32_t mode, char text[11])
{
    static const char letters[] = "rwxrwxrwx";

    text[0] = (char)(S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'L' : '-');
    for (unsigned i = 0; i < 9; i++)
        text[i + 1] = (char)(mode & (0400u >> i) ? letters[i] : '-');
    text[10] = '\0';
    return text;
}

static const char *name_of(uint32_t id, char text[16])
{
    (void)snprintf(text, 16, "%" PRIu32, id);
    return id == 0 ? "root" : id == 1000 ? "user" : text;
}

/* Where a link leads in the end, as far as that can be followed. */
static const char *follow(struct call *call, const struct file_place *place, const char *target)
{
    const struct e2b_user nobody = {.home = "/"};
    const char *path = place->path;
    struct error ignored = {0};

    for (unsigned i = 0; i < LINKS_MOST && target; i++) {
        const char *slash = strrchr(path, '/');
        const char *joined = target[0] == '/'
                                 ? target
                                 : call_print(call, "%.*s/%s", (int)(slash - path), path, target);
        if (e2b_path(call, &nobody, joined, &path, &ignored) < 0)
            break;
        const struct file_place next = {place->sandbox_id, place->user, path};
        autofileinfo info = {0};
        if (file_stat(call->core->sandboxes, &call->actor, &next, false, &info, &ignored) < 0)
            break;
        target = info.target ? call_print(call, "%s", info.target) : NULL;
    }
    return path;
}

void envd_notes_write(struct call *call, struct json_writer *json, const char *notes)
{
    if (!*notes)
        return;
    json_key(json, "metadata");
    json_map_begin(json);
    for (const char *at = notes; *at;) {
        size_t length = strcspn(at, "\n"), name = strcspn(at, "=");
        if (name < length)
            e2b_member_text(json, call_print(call, "%.*s", (int)name, at),
                            call_print(call, "%.*s", (int)(length - name - 1), at + name + 1));
        at += length + (at[length] == '\n');
    }
    json_map_end(json);
}

int envd_entry_write(struct call *call, struct json_writer *json, const struct file_place *place,
                     const struct file_info *info, bool with_notes, struct error *err)
{
    const char *slash = strrchr(place->path, '/');
    char permissions[11], owner[16], group[16], size[24], time[CLOCK_TEXT];
    uint32_t mode = info->mode;

    (void)err;
    json_map_begin(json);
    e2b_member_text(json, "name", slash[1] ? slash + 1 : "/");
    e2b_member_text(json, "path", place->path);
    if (S_ISLNK(info->mode)) {
        struct error ignored = {0};
        autofileinfo behind = {0};
        mode = file_stat(call->core->sandboxes, &call->actor, place, true, &behind, &ignored) == 0
                   ? behind.mode
                   : 0;
        e2b_member_text(json, "symlinkTarget", follow(call, place, info->target));
    }
    e2b_member_text(json, "type", type_of(mode));
    (void)snprintf(size, sizeof size, "%" PRIu64, info->size_bytes);
    e2b_member_text(json, "size", size);
    e2b_member_number(json, "mode", mode & 0777);
    e2b_member_text(json, "permissions", permissions_of(info->mode, permissions));
    e2b_member_text(json, "owner", name_of(info->uid, owner));
    e2b_member_text(json, "group", name_of(info->gid, group));
    int64_t ms = info->modified_ns > 0 ? info->modified_ns / 1000000 : 0;
    e2b_member_text(json, "modifiedTime", clock_format((uint64_t)ms, time));
    if (with_notes && S_ISREG(info->mode)) {
        char notes[FILE_NOTES] = "";
        struct error ignored = {0};
        if (file_notes(call->core->sandboxes, &call->actor, place, ENVD_NOTES, notes, &ignored) ==
            0)
            envd_notes_write(call, json, notes);
    }
    json_map_end(json);
    return 0;
}
