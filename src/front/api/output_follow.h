/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows an execution as records: what it writes on stdout and stderr, as it comes, and then how it ended. A record's id says how much
 * of both was told, so that whoever lost the connection goes on from there, also at the next server. Costs memory and no thread.
 * Threads: any.
 */
#pragma once
#include "web/output_sides.h"
#include "web/call.h"
#include "web/event_format.h"

struct output_follow_request {
    const struct execution_info *info;
    enum event_format format;
    bool is_left_out[OUTPUT_SIDES];
    uint64_t offsets
        [OUTPUT_SIDES];    // of the first byte that is wanted; OUTPUT_FROM_NOW: the next that comes
    bool tells_start;      // the first record says what was started
    bool has_changes;      // the last record has the files that were changed
    bool is_alone;         // the sandbox is for this alone, and ends with it
    bool ends_with_client; // and when the client goes away
    bool is_now;           // what there is by now, and how it ended where it has
};

/*
 * Answers the call: started (where asked for), stdout and stderr, exit. ERROR_INVALID, about the stream's name, for an offset past what
 * there is. When the server stops, the client gets what is there and no last chunk.
 */
int output_follow_start(struct call *call, const struct output_follow_request *request,
                        struct error *err);

/* "1024.17", as the ids of records are: how much of stdout and stderr was told. False: it is none. */
bool output_follow_read_id(const char *text, uint64_t offsets[OUTPUT_SIDES]);
