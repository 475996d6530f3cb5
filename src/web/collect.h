/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body as one whole in an unnamed file, however slowly it comes; no thread waits for it. Or what is made of it as it comes.
 * Threads: any; on_collected comes on a worker.
 */
#pragma once
#include "web/waiting_call.h"

struct collected {
    int fd; // closed after the call
    uint64_t size;
};

/* Called once, on a worker of the slow lane. `err` is NULL when the body is whole. */
typedef void (*on_collected)(void *data, struct collected *body, const struct error *err);

struct collect; // a body on its way

/*
 * What is made of a body before it is kept. All are called on workers, never at once; what fails is told at the end of the body, of which
 * nothing more is looked at.
 */
struct collect_decoder {
    /* Keeps what it likes of the bytes, by collect_keep. */
    int (*on_bytes)(void *data, struct collect *to, const void *bytes, size_t length,
                    struct error *err);
    int (*on_end)(void *data, struct collect *to, struct error *err);
};

/*
 * The waiting call is borrowed until then. Past `maximum` bytes: ERROR_TOO_LARGE; no byte for a minute:
 * ERROR_INVALID; more than a minute and a second for each 16 KiB: ERROR_SLOW; ERROR_GONE when the client went away. Any thread.
 */
void collect_start(const struct waiting_call *waiting, uint64_t maximum, on_collected fn,
                   void *data);
/* The same; `data` is the decoder's too, and the maximum is also that of what it keeps. */
void collect_start_decoded(const struct waiting_call *waiting, uint64_t maximum,
                           const struct collect_decoder *decoder, on_collected fn, void *data);
int collect_keep(struct collect *to, const void *bytes, size_t length, struct error *err);
/* How much has been kept so far. */
uint64_t collect_size(const struct collect *to);
