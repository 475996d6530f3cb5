/* SPDX-License-Identifier: Apache-2.0 */
/* Differences as an answer; see difference_answer.h. */
#include "front/api/difference_answer.h"

#include "base/auto.h"
#include "front/api/mount_body.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const difference_words[DIFFERENCE_KINDS] = {
    [DIFFERENCE_ADDED] = "added",
    [DIFFERENCE_CHANGED] = "changed",
    [DIFFERENCE_REMOVED] = "removed",
};
static const char *const types[] = {"file", "directory", "link", "other"};

struct side_answer {
    const char *type, *mode;
    uint64_t size;
    bool has_size;
    char mode_text[8];
};
#define AT(member) offsetof(struct side_answer, member)
static const struct answer_field side_fields[] = {
    {"kind", ANSWER_TEXT, AT(type), .is_needed = true, .words = types,
     .n_words = ARRAY_SIZE(types)},
    {"mode", ANSWER_TEXT, AT(mode), .is_needed = true, .help = "permissions, octal"},
    {"sizeBytes", ANSWER_NATURAL, AT(size), .has_offset = AT(has_size), .help = "of a file"},
    {0},
};
#undef AT

static void write_patch(struct json_writer *json, const void *member)
{
    const struct difference_entry *entry = *(const struct difference_entry *const *)member;

    json_bytes(json, entry->patch, entry->patch_length);
}

struct entry_answer {
    const struct difference_entry *entry; // for write_patch
    const char *path, *change;
    const struct side_answer *before, *after;
    bool is_binary, has_patch;
};
#define AT(member) offsetof(struct entry_answer, member)
static const struct answer_field entry_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true},
    {"change", ANSWER_TEXT, AT(change), .is_needed = true, .words = difference_words,
     .n_words = DIFFERENCE_KINDS},
    {"before", ANSWER_MAP_AT, AT(before), .fields = side_fields},
    {"after", ANSWER_MAP_AT, AT(after), .fields = side_fields},
    {"binary", ANSWER_TRUTH, AT(is_binary),
     .help = "patches were asked for, and the content is not text"},
    {"patch", ANSWER_CUSTOM, AT(entry), .has_offset = AT(has_patch), .write = write_patch,
     .help = "a unified diff; of plain text files that are not too large"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct difference_answer, member)
const struct answer_field difference_answer_fields[] = {
    {"from", ANSWER_TEXT, AT(from), .is_needed = true},
    {"to", ANSWER_TEXT, AT(to), .is_needed = true},
    {"added", ANSWER_NATURAL, AT(totals[DIFFERENCE_ADDED])},
    {"changed", ANSWER_NATURAL, AT(totals[DIFFERENCE_CHANGED])},
    {"removed", ANSWER_NATURAL, AT(totals[DIFFERENCE_REMOVED])},
    {"items", ANSWER_LIST, AT(entries), .is_needed = true, .fields = entry_fields,
     .item_size = sizeof(struct entry_answer)},
    {"truncated", ANSWER_BOOL, AT(is_truncated), .help = "there are more than `items` has"},
    {"leftOut", ANSWER_TEXTS, AT(left_out), .help = MOUNT_LEFT_OUT_HELP},
    {0},
};
#undef AT

static const char *type_of(uint32_t mode)
{
    if (S_ISDIR(mode))
        return "directory";
    if (S_ISLNK(mode))
        return "link";
    return S_ISREG(mode) ? "file" : "other";
}

static const struct side_answer *side_of(struct arena *arena, const struct difference_side *side)
{
    if (!side->mode)
        return NULL;
    struct side_answer *answer = arena_alloc(arena, sizeof *answer);
    (void)snprintf(answer->mode_text, sizeof answer->mode_text, "%04o", side->mode & 07777);
    answer->type = type_of(side->mode);
    answer->mode = answer->mode_text;
    answer->size = side->size;
    answer->has_size = S_ISREG(side->mode);
    return answer;
}

/* Rather than no answer at all, one without the last of very many. */
#define ENTRIES_BYTES ((size_t)48 << 20)
#define ENTRY_OVERHEAD 256 // of one, beside its path and patch

static size_t entries_that_fit(const struct difference *found)
{
    size_t taken = 0, i = 0;

    for (; i < found->count && taken < ENTRIES_BYTES; i++)
        taken += strlen(found->entries[i].path) * 2 + found->entries[i].patch_length * 2 +
                 ENTRY_OVERHEAD;
    return i;
}

static struct entry_answer entry_of(struct arena *arena, const struct difference_entry *entry)
{
    return (struct entry_answer){
        .entry = entry,
        .path = entry->path,
        .change = difference_words[entry->kind],
        .before = side_of(arena, &entry->before),
        .after = side_of(arena, &entry->after),
        .is_binary = entry->is_binary,
        .has_patch = entry->patch != NULL,
    };
}

void difference_answer_init(struct difference_answer *answer, struct arena *arena,
                            const struct difference *found)
{
    size_t count = entries_that_fit(found);
    struct entry_answer *entries = arena_alloc(arena, (count + 1) * sizeof *entries);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++)
        entries[i] = entry_of(arena, &found->entries[i]);
    for (unsigned i = 0; i < DIFFERENCE_KINDS; i++)
        total += answer->totals[i] = found->totals[i];
    answer->entries = (struct answer_list){entries, count};
    answer->is_truncated = count < total;
}
