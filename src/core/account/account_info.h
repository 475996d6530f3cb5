/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of organisations and the keys of their people.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "model/page.h"
#include "model/quota.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct ssh_key_info {
    const char *fingerprint;
    const char *type;
    const char *comment;
    const char *public_key; // type and base64, as in authorized_keys
    const char *name;       // NULL: none was given
    const char *member;     // whose it is; NULL: nobody's in particular
    const char *key_id;     // of the API key that added it and that it ends with; NULL: none did
    bool is_in_use;         // the API key that it ends with is
    int64_t created_at;
    int64_t used_at; // to the minute
};
void ssh_key_info_clear(struct ssh_key_info *info);

struct ssh_key_infos {
    struct ssh_key_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void ssh_key_infos_clear(struct ssh_key_infos *infos);

struct organisation_info {
    const char *id;
    const char *name;
    struct quota ceilings; // 0: none
    int64_t created_at;
};
void organisation_info_clear(struct organisation_info *info);

struct key_info {
    const char *id;
    const char *prefix; // what lists show of the key
    const char *name;
    const char *member;          // whose it is; NULL: nobody's in particular
    const char *made_by;         // the id of a key; NULL: none
    const char *sandbox_id;      // of a token
    unsigned scopes;             // scope.h
    bool is_admin;               // has SCOPE_ADMIN
    const char *const *runtimes; // that it may start sandboxes from; NULL: all
    bool has_no_network;
    const char *const *network_allow; // rules that their networks may have; NULL: any
    const char *selector;             // NULL: all sandboxes
    uint32_t tools;                   // mcp_tool.h; 0: it is for everything
    struct quota quota;
    int64_t created_at;
    int64_t used_at;    // to the minute
    int64_t expires_at; // 0: never
    int64_t revoked_at; // 0: valid
};
void key_info_clear(struct key_info *info);
bool key_info_is_in_use(const struct key_info *info); // now: neither revoked nor expired

struct key_infos {
    struct key_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void key_infos_clear(struct key_infos *infos);
