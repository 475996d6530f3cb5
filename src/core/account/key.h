/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API keys: made once, shown once, remembered as hashes. key_check answers from memory what it was asked within the last second.
 * Threads: any but loops; key_check_quick, key_check_id_quick and key_shown: any.
 */
#pragma once
#include "core/account/account.h"
#include "core/account/mcp_tool.h"
#include "model/network.h"

/* "brw_" and 52 letters and digits: 260 random bits. A token begins with "brt_". */
#define KEY_TEXT 64
#define KEY_MINIMUM 20 // of one that a person chose

struct key_request {
    const struct actor
        *maker; // who asks for it, which bounds what it can be; NULL: the machine's own root
    const char *name;
    const char
        *text; // chosen by a person; NULL: make one. ERROR_INVALID when shorter than KEY_MINIMUM
    bool is_admin;               // adds SCOPE_ADMIN
    const char *member;          // whose it is; NULL: the maker's, or nobody's in particular
    unsigned scopes;             // 0: read, run and manage; also organisation where it is nobody's
    const char *const *runtimes; // that it may start sandboxes from, ended by NULL; NULL: all
    bool has_no_network;
    const char *const
        *network_allow;   // rules that their networks may have, ended by NULL; NULL: any
    const char *selector; // labels of the sandboxes it sees; NULL: all
    uint32_t tools;       // mcp_tool.h: that it is for alone; 0: it is for everything
    struct quota quota;   // 0: no bound
    int64_t expires_at;   // 0: never
};

/* How many of the first characters of what was sent as a key lists and logs show; 0 of what can be none. At most KEY_SHOWN. */
#define KEY_SHOWN 12
size_t key_shown(const char *text);

/* Whether a person may choose this one: ERROR_INVALID, noun "key". */
int key_check_chosen(const char *text, struct error *err);

/*
 * `text` (KEY_TEXT bytes) gets the key when it was made; it is told nowhere else. A chosen one that exists
 * already is no error. ERROR_DENIED when it would be mightier than its maker.
 */
int key_create(struct accounts *accounts, const struct key_request *request, char *text,
               struct key_info *out, struct error *err);
/* By id, by what lists show of it, or by eight or more characters it begins with; which say the one key in use. ERROR_NOT_FOUND, ERROR_CONFLICT when ambiguous or revoked. */
int key_revoke(struct accounts *accounts, const char *id, struct error *err);
int key_list(struct accounts *accounts, const struct page *page, struct key_infos *out,
             struct error *err);

/* The same for one that asks: those it may see are its member's, or with SCOPE_ORGANISATION all. */
int key_get(struct accounts *accounts, const struct actor *actor, const char *id,
            struct key_info *out, struct error *err);
int key_list_own(struct accounts *accounts, const struct actor *actor, const struct page *page,
                 struct key_infos *out, struct error *err);
int key_revoke_own(struct accounts *accounts, const struct actor *actor, const char *id,
                   struct error *err);

/* What is to be otherwise; what has no mark stays. */
struct key_change {
    bool has_name, has_scopes, has_runtimes, has_network, has_network_allow, has_selector,
        has_tools, has_quota, has_expiry;
    const char *name;
    unsigned scopes;
    const char *const *runtimes;
    bool has_no_network;
    const char *const *network_allow;
    const char *selector;
    uint32_t tools;
    struct quota quota;
    int64_t expires_at;
};
/* ERROR_DENIED when the key is mightier than who asks, or would be. */
int key_change(struct accounts *accounts, const struct actor *actor, const char *id,
               const struct key_change *change, struct key_info *out, struct error *err);

/* What a new sandbox would be. */
struct key_wish {
    const char *runtime;
    const char *const *labels; // "name=value"; NULL: none
    const struct network_wish *network;
    bool is_open; // the network leads anywhere where no rule says otherwise
};
/* ERROR_DENIED when the actor's key is not for such sandboxes. */
int key_rules_check(struct accounts *accounts, const struct actor *actor,
                    const struct key_wish *wish, struct error *err);

/* Whose a key is. ERROR_UNAUTHORIZED for every kind of wrong one, in the same time and words. */
int key_check(struct accounts *accounts, const char *text, struct actor *out, struct error *err);
/*
 * For what goes on after its request: whether the key is still good for the scope. "" is the machine's own root, which always is.
 * ERROR_UNAUTHORIZED, noun "key": it was revoked or has expired. ERROR_SCOPE.
 */
int key_check_again(struct accounts *accounts, const char *id, enum key_scope scope,
                    struct error *err);
/* The same for whoever needs to know what it may see: who it is now. */
int key_get_actor(struct accounts *accounts, const char *id, struct actor *out, struct error *err);
/* The same as key_check from memory alone, without blocking. */
enum key_known {
    KEY_UNKNOWN, // the database would have to be asked
    KEY_VALID,
    KEY_STALE, // was valid when it was last asked for; the database will tell whether it still is
    KEY_WRONG,
};
enum key_known key_check_quick(struct accounts *accounts, const char *text, struct actor *out);
/*
 * Both for a key by its id, where something else has shown that this key stands behind the request. "" is the machine's own root. ERROR_UNAUTHORIZED, noun
 * "key": it was revoked or has expired.
 */
int key_check_id(struct accounts *accounts, const char *id, struct actor *out, struct error *err);
enum key_known key_check_id_quick(struct accounts *accounts, const char *id, struct actor *out);
/*
 * Tells of keys and tokens that were revoked, by whomever, or have expired, or may less than before, within seconds; token_id NULL: a key, and its tokens
 * with it. NULL: no longer.
 * The callback must not block, and may take no lock that stands above LOCK_KEYS.
 */
void key_watch_ends(struct accounts *accounts,
                    void (*on_ended)(void *data, const char *key_id, const char *token_id),
                    void *data);

/* Forgets what it remembers of checks. */
void key_forget_checks(struct accounts *accounts);
