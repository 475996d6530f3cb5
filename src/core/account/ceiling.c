/* SPDX-License-Identifier: Apache-2.0 */
/* How many of a thing there may be; see ceiling.h. */
#include "core/account/ceiling.h"

#include "base/options.h"

#include <inttypes.h>

static const struct {
    const char *noun, *plural;
} names[] = {
    [KEPT_STREAMS] = {"stream", "streams"},
    [KEPT_SNAPSHOTS] = {"snapshot", "snapshots"},
    [KEPT_CHECKPOINTS] = {"checkpoint", "checkpoints"},
    [KEPT_BUILDS] = {"snapshot", "builds"},
};

static int check(struct store *store, enum store_kept kind, int64_t most, const char *organisation,
                 struct error *err)
{
    int64_t have = 0;

    if (most == 0)
        return 0;
    if (store_count_kept(store, kind, organisation, NULL, most, &have, err) < 0)
        return -1;
    if (have < most)
        return 0;
    return error_refuse(err, ERROR_FULL, names[kind].noun,
                        "%" PRId64 " %s are as many as this server keeps%s: remove some or raise "
                        "--%s-%s",
                        most, names[kind].plural, organisation ? " for one organisation" : "",
                        organisation ? "organisation" : "max", names[kind].plural);
}

static int check_member(struct store *store, enum store_kept kind, int64_t most,
                        const struct owner *owner, struct error *err)
{
    int64_t share = most > 1 ? most / 2 : most;
    int64_t have = 0;

    if (share == 0 || !owner->member)
        return 0;
    if (store_count_kept(store, kind, owner->organisation, owner->member, share, &have, err) < 0)
        return -1;
    if (have < share)
        return 0;
    return error_refuse(err, ERROR_FULL, names[kind].noun,
                        "%" PRId64 " %s are as many as one owner may have here, half of all: "
                        "remove some",
                        share, names[kind].plural);
}

int64_t ceiling_time(int64_t ms, int64_t ceiling_ms)
{
    return ceiling_ms != 0 && (ms == 0 || ms > ceiling_ms) ? ceiling_ms : ms;
}

int ceiling_check_time(const char *setting, int64_t ms, int64_t ceiling_ms, struct error *err)
{
    char wanted[DURATION_TEXT];
    char most[DURATION_TEXT];

    if (ceiling_ms == 0 || ms <= ceiling_ms)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%s %s is more than this server gives (%s): ask for less or raise --max-%s",
                     setting, option_number(OPTION_DURATION, ms, wanted),
                     option_number(OPTION_DURATION, ceiling_ms, most), setting);
}

int ceiling_check(struct store *store, enum store_kept kind, int64_t most,
                  int64_t organisation_most, const struct owner *owner, struct error *err)
{
    bool is_less = most && (!organisation_most || most < organisation_most);

    if (check_member(store, kind, is_less ? most : organisation_most, owner, err) < 0 ||
        check(store, kind, organisation_most, owner->organisation, err) < 0)
        return -1;
    return check(store, kind, most, NULL, err);
}
