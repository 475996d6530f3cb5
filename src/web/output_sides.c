/* SPDX-License-Identifier: Apache-2.0 */
/* Places in output; see output_sides.h. */
#include "web/output_sides.h"

#include <inttypes.h>
#include <string.h>

const char *const output_side_names[OUTPUT_SIDES] = {"stdout", "stderr"};

bool output_sides_open(struct output_sides *sides, struct streams *streams,
                       const struct execution_info *info, bool is_quick)
{
    const char *ids[OUTPUT_SIDES] = {info->stdout_stream, info->stderr_stream};

    if (ids[0] && ids[1] && strcmp(ids[0], ids[1]) == 0)
        ids[1] = NULL; // told once
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        struct output_place *place = &sides->at[i];
        if (place->stream || place->is_left_out || !ids[i])
            continue;
        place->stream = stream_open_kept(streams, ids[i], is_quick);
        if (!place->stream && is_quick)
            return false;
    }
    return true;
}

int output_sides_place(struct output_sides *sides, const uint64_t offsets[OUTPUT_SIDES],
                       struct error *err)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        struct output_place *place = &sides->at[i];
        struct stream_progress progress = {0};
        if (place->stream)
            stream_progress(place->stream, &progress);
        if (offsets[i] != OUTPUT_FROM_NOW && offsets[i] > progress.size_bytes)
            return error_refuse(err, ERROR_INVALID, "output",
                                "there is no byte %" PRIu64 " of %s yet: it has %" PRIu64,
                                offsets[i], output_side_names[i], progress.size_bytes);
        place->offset = offsets[i] == OUTPUT_FROM_NOW ? progress.size_bytes : offsets[i];
    }
    return 0;
}

bool output_sides_watch(struct output_sides *sides, struct hub *hub, void (*fn)(void *data),
                        void *data)
{
    bool is_new = false;

    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        struct output_place *place = &sides->at[i];
        if (!place->stream || place->watch)
            continue;
        place->watch = hub_watch(hub, stream_id(place->stream), fn, data);
        is_new = true;
    }
    return is_new;
}

void output_sides_unwatch(struct output_sides *sides)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        watch_free(take(sides->at[i].watch));
}

bool output_sides_are_told(const struct output_sides *sides)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        struct stream_progress progress = {.is_complete = true};
        if (sides->at[i].stream)
            stream_progress(sides->at[i].stream, &progress);
        if (!progress.is_complete || sides->at[i].offset < progress.size_bytes)
            return false;
    }
    return true;
}

void output_sides_clear(struct output_sides *sides)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        stream_free(sides->at[i].stream);
}
