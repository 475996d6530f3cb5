/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine holds for an engine under test, as text: equal texts before and after mean that nothing was left. */
#pragma once
#include "engine/box.h"

/* Mounts below the data directory, fds, children, boxes' groups, scratches, sockets, slot locks of this process. Malloc'd. */
char *take_stock(struct engine *engine);

/*
 * What remains of a data directory whose engines are closed and whose volume is detached, and of other paths
 * (NULL-terminated); "" when nothing does. Malloc'd.
 */
char *find_leftovers(const char *data_dir, const char *engine_name, char **paths);
