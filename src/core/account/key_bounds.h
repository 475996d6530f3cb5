/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a key can be made or changed to: never mightier than the one that asks. Private to the room.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/key.h"
#include "store/keys.h"

/* Fills in what the request says, checked; texts are borrowed from it, scopes are written to `scopes`, tools to `tools`. */
int key_bounds_settle(struct accounts *accounts, const struct key_request *request,
                      struct key_record *record, char scopes[SCOPES_TEXT],
                      char tools[MCP_TOOLS_TEXT], struct error *err);

/* The same for one that is there. */
int key_bounds_change(struct accounts *accounts, const struct actor *actor,
                      const struct key_change *change, struct key_record *record,
                      char scopes[SCOPES_TEXT], char tools[MCP_TOOLS_TEXT], struct error *err);
