/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what is kept of sandboxes: short ways to change files and to keep them. */
#pragma once
#include "core/snapshot/checkpoint.h"
#include "core/snapshot/snapshot.h"
#include "core_fixture.h"

/* Runs `sh -c script` in a sandbox, which must succeed; its output, valid until the next call. */
const char *shell_in(const char *sandbox, const char *script);
/* A new snapshot of it; its id. */
void keep_snapshot(const char *sandbox, const char *name, char id[ID_TEXT]);
void keep_checkpoint(const char *sandbox, const char *name);
/* A new sandbox over a snapshot. */
void make_sandbox_from(const char *snapshot, char id[ID_TEXT]);

/* Layers that there are on the disk. */
unsigned count_layers(void);
/* Scratches of sandboxes that nobody in the registry or the pool has. */
unsigned count_stray_scratches(void);
