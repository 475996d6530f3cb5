/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answered, as commands read it: members as texts, lists gathered page by page and put into an order.
 * Threads: one thread.
 */
#pragma once
#include "cli/columns.h"
#include "cli/invocation.h"

static inline void burrow_answer_freep(struct burrow_answer **answer)
{
    burrow_answer_free(*answer);
}
#define autoanswer __attribute__((cleanup(burrow_answer_freep))) struct burrow_answer *

/* "" where there is none. */
const char *value_text(const struct burrow_value *map, const char *path);
/* A member that is a name, which has its bytes in another where they are not UTF-8; the caller frees it. */
char *value_bytes(const struct burrow_value *map, const char *member, const char *in_base64);

/* Items of pages, which live as long as this does. */
struct items {
    struct burrow_answer **answers;
    const struct burrow_value **items;
    size_t n_answers, count;
    bool has_more; // the server has pages that were not asked for
};
void items_clear(struct items *items);

/* Pages of `path`, which has a query already, until there are `wanted` items that `is_wanted` (NULL: all). */
int items_gather(struct invocation *invocation, const char *path, size_t wanted,
                 bool (*is_wanted)(const struct invocation *invocation,
                                   const struct burrow_value *item),
                 struct items *items, struct burrow_error *err);

/* What --sort can say, and what that looks at. */
struct sort_key {
    const char *word; // NULL ends the table
    const char *path;
    bool is_number;
};

struct listing {
    const char *path; // with a query
    bool (*is_wanted)(const struct invocation *invocation, const struct burrow_value *item);
    const struct sort_key *keys; // the first is the usual one
    const char *server_sort;     // how the server has them: a word of the keys
    bool server_is_ascending;
    const struct column *columns;
};

/* States of sandboxes, as a query has them. Those that have ended fill the first pages of a list before long. */
#define LIVING_STATES "creating,idle,running,pausing,paused,resuming,stopping"
#define ENDED_STATES "ended,failed,deleted"

#define LIST_MOST 1000
#define LIMIT_ROW                                                                                  \
    OPTION_IN("limit", OPTION_INTEGER, limit, "N", "at most so many (default 50)", 1, LIST_MOST)
#define OFFSET_ROW                                                                                 \
    OPTION_IN("offset", OPTION_INTEGER, offset, "N", "leave out so many first", 0, INT32_MAX)

/* ERROR where --sort or --direction say what cannot be. */
int listing_check(const struct invocation *invocation, const struct sort_key *keys,
                  struct burrow_error *err);
/* A list by --sort, --direction, --limit (50) and --offset, printed by its columns, as JSON, or with --quiet as ids. */
int listing_print(struct invocation *invocation, const struct listing *listing,
                  struct burrow_error *err);
