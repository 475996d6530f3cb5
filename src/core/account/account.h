/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account room: organisations, their API keys (key.h) and SSH keys (ssh_keys.h), and requests that must happen once (once.h).
 * Threads: any but loops; accounts_local_actor: any.
 */
#pragma once
#include "base/auto.h"
#include "core/account/actor.h"
#include "core/account/account_info.h"
#include "model/page.h"

struct accounts;
struct hub;
struct store;

/* Makes the organisation where there is none yet. The store must outlive it. */
int accounts_open(struct store *store, struct accounts **out, struct error *err);
void accounts_free(struct accounts *accounts);
DEFINE_AUTOPTR(accounts)

/* Where changes are announced from now on; it must outlive the accounts. Before anybody uses them. */
void accounts_set_hub(struct accounts *accounts, struct hub *hub);

/* The machine's own administrator, for the local socket. Does not block. */
void accounts_local_actor(const struct accounts *accounts, struct actor *out);

int account_organisation(struct accounts *accounts, const struct actor *actor,
                         struct organisation_info *out, struct error *err);

/* NULL: stays as it is. */
int account_change(struct accounts *accounts, const struct actor *actor, const char *name,
                   const struct quota *ceilings, struct organisation_info *out, struct error *err);
