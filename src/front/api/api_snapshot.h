/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files about snapshots share: how one is told, and how a path names one.
 * Threads: any but loops.
 */
#pragma once
#include "core/snapshot/snapshot.h"
#include "front/api/api.h"

/* Answers with the snapshot. Returns 0. */
int api_snapshot_answer(struct call *call, int status, const struct snapshot_info *info);
extern const struct answer_field api_snapshot_fields[];
extern const struct route_answer api_snapshot_answers[], api_snapshot_made_answers[];

/* The core's id of the snapshot that the path's first parameter names: by id, name:tag, tag or name. One given by its id may be deleted. */
int api_snapshot(struct call *call, const char **id, struct error *err);
