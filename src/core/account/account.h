/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account room: organisations, their API keys (key.h) and SSH keys, and requests that must happen once (once.h).
 * Threads: any but loops; accounts_local_actor: any.
 */
#pragma once
#include "base/auto.h"
#include "core/account/actor.h"
#include "core/account/account_info.h"
#include "model/page.h"

struct accounts;
struct store;

/* Makes the organisation where there is none yet. The store must outlive it. */
int accounts_open(struct store *store, struct accounts **out, struct error *err);
void accounts_free(struct accounts *accounts);
DEFINE_AUTOPTR(accounts)

/* The machine's own administrator, for the local socket. Does not block. */
void accounts_local_actor(const struct accounts *accounts, struct actor *out);

int account_organisation(struct accounts *accounts, const struct actor *actor,
                         struct organisation_info *out, struct error *err);

/* NULL: stays as it is. */
int account_change(struct accounts *accounts, const struct actor *actor, const char *name,
                   const struct quota *ceilings, struct organisation_info *out, struct error *err);

/* `line` is as in authorized_keys without options: type, base64, comment. ERROR_INVALID says what is wrong with it. */
int account_ssh_key_add(struct accounts *accounts, const struct actor *actor, const char *line,
                        struct ssh_key_info *out, bool *is_new, struct error *err);
int account_ssh_key_remove(struct accounts *accounts, const struct actor *actor,
                           const char *fingerprint, bool *found, struct error *err);
int account_ssh_key_list(struct accounts *accounts, const struct actor *actor,
                         const struct page *page, struct ssh_key_infos *out, struct error *err);
