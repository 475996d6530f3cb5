/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the file server share: a conversation, its buffers, how it answers. Private to
 * src/init/files*.c.
 * Threads: one per object; the conversation.
 */
#pragma once
#include "base/error.h"
#include "engine/files_wire.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Result of functions here when the other end is gone: nothing is left to say. */
#define TALK_OVER (-2)

struct talk {
    int sock;
    int base; // O_PATH directory that relative paths start from
    struct files_request_wire request;
    uint16_t type, flags;     // of the request
    bool is_taking;           // the asker's frames are under way until COMMIT or ABORT
    struct files_total total; // goes into END
    size_t out_used;          // bytes of items gathered in `out`
    char path[FILES_MAX_PATH];
    char second[FILES_MAX_PATH];
    char target[FILES_MAX_PATH];
    char item_path[FILES_MAX_RECORD_PATH];
    uint8_t in[FILES_MAX_FRAME] __attribute__((aligned(8))); // WATCH: the kernel's events
    uint8_t out[FILES_MAX_FRAME];
};

/* What answers a request: 0 (END follows), -1 with the error to send, or TALK_OVER. */
typedef int (*talk_verb)(struct talk *talk, struct error *err);

int files_do_list(struct talk *talk, struct error *err);
int files_do_export(struct talk *talk, struct error *err);
int files_do_remove(struct talk *talk, struct error *err);
int files_do_write(struct talk *talk, struct error *err);
int files_do_import(struct talk *talk, struct error *err);
int files_do_watch(struct talk *talk, struct error *err);

/* The next request; fields are set from it. 0, or TALK_OVER. */
int talk_next(struct talk *talk);

/* The asker's next frame of a WRITE or IMPORT, in talk->in. 0, or TALK_OVER. */
int talk_receive(struct talk *talk, struct files_frame *out);

/* 0, or TALK_OVER. */
int talk_send(struct talk *talk, uint16_t type, const void *data, size_t length);
int talk_send_error(struct talk *talk, const struct error *error);

/* Fills an item; a link's target is read from the entry `name` of `dir` (or of `dir` itself, when
 * "") into talk->target. */
void talk_describe(struct talk *talk, int dir, const char *name, const char *path,
                   const struct stat *info, struct files_item *out);

/* Gathers items, a frame goes out when it is full; talk_flush sends the rest. 0, or TALK_OVER. */
int talk_item(struct talk *talk, const struct files_item *item);
int talk_flush(struct talk *talk);

/* True when the other end hung up: long work without words stops then. */
bool talk_is_over(const struct talk *talk);
