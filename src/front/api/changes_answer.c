/* SPDX-License-Identifier: Apache-2.0 */
/* Changed files as JSON; see changes_answer.h. */
#include "front/api/changes_answer.h"

#include "front/api/difference_answer.h"

static const struct answer_field entry_fields[] = {
    {"path", ANSWER_TEXT, offsetof(struct difference_entry, path), .is_needed = true,
     .help = "absolute in the sandbox; a directory that was removed stands for all in it"},
    {"change", ANSWER_WORD, offsetof(struct difference_entry, kind), .is_needed = true,
     .words = difference_words, .n_words = DIFFERENCE_KINDS},
    {0},
};

#define AT(member) offsetof(struct changes_answer, member)
const struct answer_field changes_answer_fields[] = {
    {"added", ANSWER_NATURAL, AT(added), .help = "how many; likewise below"},
    {"changed", ANSWER_NATURAL, AT(changed)},
    {"removed", ANSWER_NATURAL, AT(removed)},
    {"items", ANSWER_LIST, AT(entries), .is_needed = true, .fields = entry_fields,
     .item_size = sizeof(struct difference_entry), .help = "by path; at most 1000"},
    {"truncated", ANSWER_BOOL, AT(is_truncated), .help = "whether some are left out"},
    {0},
};
#undef AT

void changes_answer_init(struct changes_answer *answer, const struct difference *difference)
{
    const uint64_t *totals = difference->totals;

    *answer = (struct changes_answer){
        .added = totals[DIFFERENCE_ADDED],
        .changed = totals[DIFFERENCE_CHANGED],
        .removed = totals[DIFFERENCE_REMOVED],
        .entries = {difference->entries, difference->count},
    };
    answer->is_truncated = difference->count < answer->added + answer->changed + answer->removed;
}
