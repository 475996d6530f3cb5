/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a watched directory, as envd's clients read it; see envd_watch.h. */
#include "core/core.h"
#include "front/e2b/envd_file.h"
#include "front/e2b/envd_watch.h"

#include <string.h>

static void write_entry(const struct envd_teller *teller, struct json_writer *json,
                        const char *name)
{
    struct call *call = teller->call;
    const char *base = strcmp(teller->place->path, "/") == 0 ? "" : teller->place->path;
    const struct file_place place = {teller->place->sandbox_id, teller->place->user,
                                     call_print(call, "%s/%s", base, name)};
    autofileinfo info = {0};
    struct error ignored = {0};

    if (file_stat(call->core->sandboxes, &call->actor, &place, false, &info, &ignored) < 0)
        return; // it is gone again
    json_key(json, "entry");
    (void)envd_entry_write(call, json, &place, &info, false, &ignored);
}

static void tell(const struct envd_teller *teller, const char *name, const char *type,
                 bool may_have_entry)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    e2b_member_text(&json, "name", name);
    e2b_member_text(&json, "type", type);
    if (teller->has_entries && may_have_entry)
        write_entry(teller, &json, name);
    json_map_end(&json);
    if (json_writer_finish(&json, &ignored) == 0)
        teller->put(teller->data, text.data);
}

static void on_event(void *data, const struct files_event *event)
{
    const struct envd_teller *teller = data;

    switch (event->kind) {
    case FILES_CREATED:
        tell(teller, event->path, "EVENT_TYPE_CREATE", true);
        break;
    case FILES_CHANGED:
        tell(teller, event->path, "EVENT_TYPE_WRITE", true);
        break;
    case FILES_ATTRIBUTES:
        tell(teller, event->path, "EVENT_TYPE_CHMOD", true);
        break;
    case FILES_REMOVED:
        tell(teller, event->path, "EVENT_TYPE_REMOVE", false);
        break;
    case FILES_MOVED:
        tell(teller, event->path, "EVENT_TYPE_RENAME", false);
        tell(teller, event->second, "EVENT_TYPE_CREATE", true);
        break;
    default:
        break;
    }
}

int envd_watch_tell(struct file_watch *watch, const struct envd_teller *teller, struct error *err)
{
    return file_watch_take(watch, on_event, (void *)(uintptr_t)teller, err);
}
