/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of fields of all records, for those that need another one's. Private to the store.
 * Threads: plain values.
 */
#pragma once
#include "store/record.h"

extern const struct record sandbox_table, execution_table, stream_table, event_table, key_table;
extern const struct record organisation_table, ssh_key_table, idempotency_table;
extern const struct record audit_table;
extern const struct record snapshot_table, checkpoint_table, layer_table;
extern const struct record webhook_table, delivery_table;
extern const struct record network_seen_table;
extern const struct record port_table;
