/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the snapshot room; see snapshots.h. */
#include "core/snapshot/snapshots.h"

#include "base/mem.h"
#include "core/snapshot/list_cache.h"

struct snapshots *snapshots_new(const struct snapshots *parts)
{
    struct snapshots *snapshots = xnew(struct snapshots);

    *snapshots = *parts;
    snapshots->lists = list_cache_new(parts->settings->data_dir);
    return snapshots;
}

void snapshots_free(struct snapshots *snapshots)
{
    if (!snapshots)
        return;
    list_cache_free(snapshots->lists);
    free(snapshots);
}
