/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of organisations and keys to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/account/account_info.h"
#include "store/accounts.h"
#include "store/keys.h"

void ssh_key_info_take(struct ssh_key_info *out, struct ssh_key_record *record);
void ssh_key_infos_take(struct ssh_key_infos *out, struct ssh_key_list *list);
void organisation_info_take(struct organisation_info *out, struct organisation_record *record);
void key_info_take(struct key_info *out, struct key_record *record);
void key_infos_take(struct key_infos *out, struct key_list *list);
