/* SPDX-License-Identifier: Apache-2.0 */
/* Differences as JSON; see render.h. */
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kinds[DIFFERENCE_KINDS] = {
    [DIFFERENCE_ADDED] = "added",
    [DIFFERENCE_CHANGED] = "changed",
    [DIFFERENCE_REMOVED] = "removed",
};

static const char *type_of(uint32_t mode)
{
    if (S_ISDIR(mode))
        return "directory";
    if (S_ISLNK(mode))
        return "link";
    return S_ISREG(mode) ? "file" : "special";
}

static void write_side(struct json_writer *json, const char *name,
                       const struct difference_side *side)
{
    char mode[8];

    if (!side->mode)
        return;
    (void)snprintf(mode, sizeof mode, "%04o", side->mode & 07777);
    json_key(json, name);
    json_map_begin(json);
    member_text(json, "type", type_of(side->mode));
    member_text(json, "mode", mode);
    if (S_ISREG(side->mode))
        member_integer(json, "size", (int64_t)side->size);
    json_map_end(json);
}

static void write_entry(struct json_writer *json, const struct difference_entry *entry)
{
    json_map_begin(json);
    member_text(json, "path", entry->path);
    member_text(json, "change", kinds[entry->kind]);
    write_side(json, "before", &entry->before);
    write_side(json, "after", &entry->after);
    if (entry->is_binary)
        member_bool(json, "binary", true);
    if (entry->patch) {
        json_key(json, "patch");
        json_bytes(json, entry->patch, entry->patch_length);
    }
    json_map_end(json);
}

/* Rather than no answer at all, one without the last of very many. */
#define ENTRIES_BYTES ((size_t)48 << 20)
#define ENTRY_OVERHEAD 256 // of one, beside its path and patch

static size_t write_entries(struct json_writer *json, const struct difference *difference)
{
    size_t taken = 0, i = 0;

    json_key(json, "entries");
    json_list_begin(json);
    for (; i < difference->count && taken < ENTRIES_BYTES; i++) {
        const struct difference_entry *entry = &difference->entries[i];
        write_entry(json, entry);
        taken += strlen(entry->path) * 2 + entry->patch_length * 2 + ENTRY_OVERHEAD;
    }
    json_list_end(json);
    return i;
}

void render_difference(struct json_writer *json, const char *from, const char *to,
                       const struct difference *difference)
{
    uint64_t total = 0;

    json_map_begin(json);
    member_text(json, "from", from);
    member_text(json, "to", to);
    for (unsigned i = 0; i < DIFFERENCE_KINDS; i++) {
        member_integer(json, kinds[i], (int64_t)difference->totals[i]);
        total += difference->totals[i];
    }
    if (write_entries(json, difference) < total)
        member_bool(json, "truncated", true);
    json_map_end(json);
}

// ---- what the functions above write, described ----

static const struct answer_field side_fields[] = {
    {"type", ANSWER_TEXT, .is_needed = true},
    {"mode", ANSWER_TEXT, .is_needed = true, .help = "permissions, octal"},
    {"size", ANSWER_INTEGER, .has_offset = 1},
    {0},
};
static const struct answer_field entry_fields[] = {
    {"path", ANSWER_TEXT, .is_needed = true},
    {"change", ANSWER_TEXT, .is_needed = true, .words = kinds, .n_words = DIFFERENCE_KINDS},
    {"before", ANSWER_MAP, .fields = side_fields},
    {"after", ANSWER_MAP, .fields = side_fields},
    {"binary", ANSWER_TRUTH},
    {"patch", ANSWER_TEXT},
    {0},
};
const struct answer_field render_difference_fields[] = {
    {"from", ANSWER_TEXT, .is_needed = true},
    {"to", ANSWER_TEXT, .is_needed = true},
    {"added", ANSWER_INTEGER},
    {"changed", ANSWER_INTEGER},
    {"removed", ANSWER_INTEGER},
    {"entries", ANSWER_LIST, .is_needed = true, .fields = entry_fields},
    {"truncated", ANSWER_TRUTH},
    {0},
};
