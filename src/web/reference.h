/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients name snapshots and checkpoints by: an id with its prefix, or a name. The core's ids are bare.
 * Threads: plain values.
 */
#pragma once
#include "web/call.h"

#include <stdbool.h>

/* Whether it is spelled as an id with this prefix. */
bool reference_is_id(const char *text, const char *prefix);
/* Without the prefix where it is an id; else as it is. */
const char *reference_of(const char *text, const char *prefix);
/* The same for snapshots, whose names may have an organisation in front: "@org_…/name:tag", given the prefixes of both. */
const char *reference_of_snapshot(struct call *call, const char *text, const char *prefix,
                                  const char *organisation_prefix);
