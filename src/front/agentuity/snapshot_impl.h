/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files about snapshots share.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/account.h"
#include "core/snapshot/snapshot.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

/* The organisation whose it is; left alone where that is not known. */
void snapshot_organisation(struct call *call, const struct snapshot_info *info,
                           struct organisation_info *out);

/* A view of the record, with the organisation where it is known. All is borrowed. */
struct snapshot_view snapshot_view_of(struct call *call, const struct snapshot_info *info,
                                      const struct organisation_info *organisation);

/* The snapshot that the path's first parameter names by its id. */
int snapshot_id_of(const struct call *call, const char **out, struct error *err);

/* The id of the snapshot that a text names, by whatever it is called. One given by its id may be deleted. */
int snapshot_id_named(struct call *call, const char *text, const char **id, struct error *err);

/* Answers with the snapshot, without its files. Returns 0. */
int snapshot_answer(struct call *call, int status, const struct snapshot_info *info);
