/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keys and organisations have in use, counted in memory, and what they may have: asked for and taken in one step, so that no two can take
 * the last of something. Sandboxes count from when they are registered until they are over, commands from when they are accepted, by the day (UTC).
 * What snapshots and checkpoints take of the disk counts for the key that made them, or their sandbox, as the database knows it; it is asked where there is a bound on it.
 * Private to the core, but for quota_get.
 * Threads: any but loops; quota_give: any, memory work only.
 */
#pragma once
#include "base/limits.h"
#include "core/account/account.h"

/* Whether any bound is narrower than in `before`. */
bool quota_is_less(const struct quota *bounds, const struct quota *before);

/* What one sandbox takes, of whom. */
struct quota_share {
    char key_id[ID_TEXT]; // "": no key's
    char organisation[ID_TEXT];
    struct limits limits; // this and is_taken: under the lock of the counts, once it was taken
    bool is_taken;
};

/* ERROR_QUOTA names the figure, the bound and what is used. actor NULL: it is there already and is only counted. */
int quota_take(struct accounts *accounts, const struct actor *actor, struct quota_share *share,
               struct error *err);
/* Of one that is not taken: nothing. */
void quota_give(struct accounts *accounts, struct quota_share *share);
/* A living sandbox gets other limits. `share` has them afterwards, and when it fails as before. */
int quota_change(struct accounts *accounts, const struct actor *actor, struct quota_share *share,
                 const struct limits *limits, struct error *err);

/* Files that are being saved, until they are on record. */
struct quota_saving {
    char key_id[ID_TEXT], organisation[ID_TEXT];
    int64_t bytes;
};
/* So many bytes more are to be kept for this key: ERROR_QUOTA where the actor's own, or the organisation, may not have them. quota_saved ends it, whatever became of them. */
int quota_save(struct accounts *accounts, const struct actor *actor, const char *key_id,
               uint64_t bytes, struct quota_saving *saving, struct error *err);
void quota_saved(struct accounts *accounts, struct quota_saving *saving);
/* Before anything is saved: ERROR_QUOTA where not even one byte more may be. */
int quota_check_saved(struct accounts *accounts, const struct actor *actor, const char *key_id,
                      struct error *err);

/* One command or run of code more, today; a stranger's is nobody's. Without a bound on them nothing is counted; *is_counted says whether to give it back when it cannot run. */
int quota_run(struct accounts *accounts, const struct actor *actor, bool *is_counted,
              struct error *err);
void quota_unrun(struct accounts *accounts, const char *key_id, const char *organisation);

/* What the caller's key and organisation may have, and have. Of no key, all figures are 0. */
struct quota_state {
    struct quota bounds, used;
};
int quota_get(struct accounts *accounts, const struct actor *actor, struct quota_state *key,
              struct quota_state *organisation, struct error *err);

struct quotas;
struct quotas *quotas_new(void);
void quotas_free(struct quotas *quotas);
/* What the organisation may have from now on. */
void quotas_set_ceilings(struct quotas *quotas, const struct quota *ceilings);
