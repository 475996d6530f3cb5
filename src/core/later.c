/* SPDX-License-Identifier: Apache-2.0 */
/* What of the core's contracts is not kept yet: each call says so. A part that is written takes its call out of here. */
#include "core/core.h"
#include "core/difference.h"
#include "core/space.h"
#include "core/transfer.h"

static int later(const char *what, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s is not available yet", what);
}

#define LATER(name, what, ...)                                                                     \
    int name(__VA_ARGS__)                                                                          \
    {                                                                                              \
        return later(what, err);                                                                   \
    }
#define ASKED struct core *core, const struct actor *actor

uint64_t transfer_room(struct core *core)
{
    return (uint64_t)core_settings(core)->file_limit_bytes;
}
LATER(transfer_export, "an export", ASKED, const char *id, uint64_t maximum, int *fd,
      uint64_t *size, struct error *err)
LATER(transfer_import, "an import", ASKED, const struct transfer_request *request, int archive_fd,
      struct snapshot_record *out, struct error *err)
LATER(difference_get, "a difference", ASKED, const char *sandbox_id,
      const struct difference_request *request, struct difference *out, struct error *err)
void difference_clear(struct difference *difference)
{
}
LATER(space_get, "use of the disk", ASKED, struct space *out, struct error *err)
LATER(space_prune, "pruning", ASKED, const struct space_pruning *pruning,
      struct space_use freed[SPACE_PARTS], struct error *err)
