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
#include <time.h>

/* Result of functions here when the other end is gone: nothing is left to say. */
#define TALK_OVER (-2)

struct talk {
    int sock;
    int base; // O_PATH directory that relative paths start from
    struct files_request_wire request;
    uint16_t type, flags;     // of the request
    bool drops_set_ids;       // of modes that are asked for
    bool is_taking;           // the asker's frames are under way until COMMIT or ABORT
    struct files_total total; // goes into END
    size_t out_used;          // bytes of items gathered in `out`
    time_t spoke_at;          // the last sign of life
    char path[FILES_MAX_PATH];
    char second[FILES_MAX_PATH];
    char third[FILES_MAX_RECORD_PATH];
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
int files_do_save(struct talk *talk, struct error *err);
int files_do_set_notes(struct talk *talk, struct error *err);
int files_do_notes(struct talk *talk, struct error *err);
int files_do_find(struct talk *talk, struct error *err);
int files_do_search(struct talk *talk, struct error *err);
int files_do_copy(struct talk *talk, struct error *err);
int files_do_rename(struct talk *talk, struct error *err);

/* The name of what is not whole yet, beside what it takes the place of: one that nobody else has. -1 with errno. */
#define FILES_BESIDE 32
int files_name_beside(char out[FILES_BESIDE]);
/* Takes away what has this name, if it still is the file of the fd. */
void files_take_back(int parent, const char *name, int fd);

/* Writes the asker's DATA to a file. 1: committed; 0: given up by the asker; else as a verb. */
int files_take_data(struct talk *talk, int fd, struct error *err);

/* Starts a walk through the directory that the request names. */
struct walk;
int files_open_tree(struct talk *talk, struct walk *walk, struct error *err);
/* Enters what the walk gave last. Paths longer than a record may have are counted and left out; so is what cannot be opened. */
void files_enter_or_skip(struct talk *talk, struct walk *walk);

/* An entry of a directory with all below it. A `talk` of NULL: done whether anybody waits or not. */
int files_remove_tree(struct talk *talk, int parent, const char *name, struct error *err);

/* Whether the request's condition (talk->second, FILES_UNLESS) holds for a file as it is; NULL: there is none. Where it may
 * change meanwhile, under the lock. */
int files_check_condition(struct talk *talk, const struct stat *info, struct error *err);
struct lock;
struct lock *files_lock_changes(void); // taken; lock_release

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

/* Says each second that the work goes on, to an asker that wants it; call it often. 0, or TALK_OVER. */
int talk_alive(struct talk *talk);

/* True when the other end hung up: long work without words stops then. */
bool talk_is_over(const struct talk *talk);
