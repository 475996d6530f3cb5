/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that come with the request; see input_content.h. */
#include "core/execution/input_content.h"

#include <fcntl.h>
#include <unistd.h>

#define PIPE_BYTES (64u << 10) // that a new pipe holds, unless somebody has very many

int input_content_pipe(const void *data, size_t length, int *read_end, struct error *err)
{
    int ends[2];

    if (length > PIPE_BYTES)
        return 1;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_sys(err, "make a pipe");
    autofd from = ends[0];
    autofd to = ends[1];
    if (length > 0 && write(to, data, length) != (ssize_t)length)
        return 1;
    if (fcntl(from, F_SETFL, 0) < 0) // programs expect an input that waits
        return error_sys(err, "set up a pipe");
    *read_end = take_fd(from);
    return 0;
}

int input_content_stream(struct streams *streams, const struct actor *actor,
                         const struct stream_place *place, const void *data, size_t length,
                         struct stream **out, struct error *err)
{
    struct stream *stream = NULL;

    if (streams_prepare(streams, place, &stream, err) < 0)
        return -1;
    if (stream_append(streams, actor, stream_id(stream), data, length, err) < 0) {
        streams_discard(streams, stream);
        return -1;
    }
    streams_end(streams, stream);
    *out = stream;
    return 0;
}
