/* SPDX-License-Identifier: Apache-2.0 */
/* Organisations and the SSH keys of their people. Calls block for the database. */
#pragma once
#include "core/account/actor.h"
#include "store/accounts.h"

struct core;

int account_organisation(struct core *core, const struct actor *actor,
                         struct organisation_record *out, struct error *err);

/* `line` is as in authorized_keys without options: type, base64, comment. ERROR_INVALID says what is wrong with it. */
int account_ssh_key_add(struct core *core, const struct actor *actor, const char *line,
                        struct ssh_key_record *out, bool *is_new, struct error *err);
int account_ssh_key_remove(struct core *core, const struct actor *actor, const char *fingerprint,
                           bool *found, struct error *err);
int account_ssh_key_list(struct core *core, const struct actor *actor, const struct page *page,
                         struct ssh_key_list *out, struct error *err);
