/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to become of a request, decided by its head alone.
 * Threads: plain values.
 */
#pragma once
#include "net/gather.h"

#include <stdbool.h>
#include <stdint.h>

enum http_body {
    HTTP_BODY_GATHER, // read to its end into request->body, then handed out
    HTTP_BODY_STREAM, // handed out at once, with request->stream, also when there is no body
    HTTP_BODY_SKIP,   // read to its end and thrown away, then handed out
    HTTP_BODY_REFUSE, // handed out at once, to be refused: what comes of the body is thrown away
    HTTP_BODY_ASK,    // handed to on_ask; nothing is read until response_decide says what to do
};

struct http_plan {
    enum http_body body;
    uint64_t body_bytes; // as the limit says, unless changed here: 413
    int refuse_status;   // not 0: no further; on_bad_request is called with these
    const char *refuse_text;
    bool is_known;       // the client has shown a key: its connection is no stranger's any more
    enum gather_who who; // whose memory a gathered body takes
    uint64_t who_id;     // of a key; addresses are known here
};
