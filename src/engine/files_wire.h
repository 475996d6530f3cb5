/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the engine and burrow-init talk about files: frames over a SOCK_SEQPACKET socket; both ends
 * compile this file. One frame is one packet: a header, then a payload. Each end takes the other's
 * frames for hostile: every length is checked here, every string ends in a NUL that is counted and
 * holds no other. Nothing here allocates.
 *
 * A request is answered by exactly one END or ERROR, which comes last:
 *   READ            ITEM, DATA..., END
 *   STAT            ITEM, END
 *   LIST            ITEM... (several entries a frame), END
 *   EXPORT          ITEM (one record), DATA... (item.size bytes), ITEM, ..., END
 *   WRITE, IMPORT   the asker sends DATA..., or ITEM and its DATA..., then COMMIT or ABORT; END
 *   WATCH           EVENT (FILES_STARTED), EVENT... as things happen; END when the directory is gone. The asker ends it by
 *                   closing the conversation
 *   others          END
 * An ERROR for WRITE and IMPORT may come early; the asker's frames are then dropped until COMMIT or
 * ABORT.
 *
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define FILES_MAX_FRAME 65536u       // with its header
#define FILES_MAX_PATH 4096u         // of a request and of a link's target, with its NUL
#define FILES_MAX_RECORD_PATH 30720u // of an item below the asked-for directory, with its NUL
#define FILES_MAX_TEXT 1024u         // of an error's sentence, with its NUL
#define FILES_MAX_ID 65535u          // a box has 65536 user and group ids
#define FILES_KEEP_ID UINT32_MAX     // CHOWN: leave it as it is
#define FILES_MAX_DATA (FILES_MAX_FRAME - (uint32_t)sizeof(struct files_header))

enum files_type {
    FILES_READ = 1,
    FILES_WRITE,
    FILES_LIST,
    FILES_STAT,
    FILES_MKDIR,
    FILES_REMOVE,
    FILES_RENAME,
    FILES_CHMOD,
    FILES_CHOWN,
    FILES_EXPORT,
    FILES_IMPORT,
    FILES_WATCH,  // a directory, until the asker goes
    FILES_ITEM,   // struct files_item_wire and strings, one or more
    FILES_DATA,   // bytes
    FILES_COMMIT, // the asker has sent everything
    FILES_ABORT,  // the asker gives up: what it began is taken back where that is possible
    FILES_END,    // struct files_total
    FILES_ERROR,  // struct files_failure and a sentence
    FILES_EVENT,  // struct files_event_wire and strings, one or more
    FILES_TYPES
};

/* Flags of requests. */
#define FILES_PARENTS 1u // WRITE, MKDIR, RENAME, IMPORT: make missing directories
#define FILES_EXCLUSIVE                                                                            \
    2u // WRITE: the file must be new; RENAME: nothing may stand there; MKDIR: must be new
#define FILES_RECURSIVE 4u   // LIST, REMOVE, WATCH: with everything below
#define FILES_FOLLOW 8u      // STAT, CHOWN: of what a link leads to
#define FILES_MISSING_OK 16u // REMOVE
#define FILES_OWNERS 32u     // IMPORT: give files to the ids in the records

struct files_header {
    uint16_t type;
    uint16_t flags;
    uint32_t length; // of the payload
};

/* Payload of every request; the path and, for RENAME, the second path stand behind it. */
struct files_request_wire {
    uint64_t offset;  // READ
    uint64_t maximum; // READ, EXPORT: bytes; LIST: items; WATCH: directories
    uint32_t mode;    // WRITE and MKDIR (of what is new), CHMOD
    uint32_t uid;     // CHOWN
    uint32_t gid;
    uint16_t path_size; // with NUL
    uint16_t second_size;
};

struct files_item_wire {
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
    uint32_t mode; // type and permissions, as stat(2) has them
    uint32_t uid;
    uint32_t gid;
    uint32_t links;
    uint16_t path_size;    // with NUL
    uint16_t target_size;  // with NUL
    uint32_t is_hard_link; // a record for a file seen earlier: the target is its path
};

/* What has happened in a directory that is watched. */
enum files_event_kind {
    FILES_STARTED = 1, // from now on; no paths
    FILES_CREATED,     // or moved in from elsewhere
    FILES_CHANGED,     // its content
    FILES_ATTRIBUTES,  // its mode, owner or times
    FILES_REMOVED,     // or moved away
    FILES_MOVED,       // from `path` to `second`, both in what is watched
    FILES_OVERFLOW,    // something happened that could not be told: look again; no paths
    FILES_EVENT_KINDS
};

struct files_event_wire {
    uint16_t kind;
    uint16_t is_directory;
    uint16_t path_size;   // with NUL
    uint16_t second_size; // with NUL
};

struct files_total {
    uint64_t bytes;
    uint64_t items;
    uint64_t skipped;      // things of other types, unreadable, or too deep to name
    uint32_t is_truncated; // there was more than `maximum`
    uint32_t pad;
};

struct files_failure {
    int32_t sys;   // errno or 0
    uint32_t kind; // enum error_reason
};

struct files_frame {
    uint16_t type;
    uint16_t flags;
    uint32_t length;
    const uint8_t *payload; // in the receiver's buffer
};

struct files_request {
    struct files_request_wire fixed;
    const char *path;
    const char *second; // "" when there is none
};

struct files_item {
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
    uint32_t mode, uid, gid, links;
    bool is_hard_link;
    const char *path;   // STAT and READ: ""
    const char *target; // of a link; else ""
};

struct files_event {
    enum files_event_kind kind;
    bool is_directory;
    const char *
        path; // relative to what is watched, plain (files_path_is_plain); "" where the kind has none
    const char *second; // likewise
};

/* Sends one frame made of the parts. -1 with errno (EMSGSIZE when too large). Never raises SIGPIPE.
 */
int files_frame_send(int sock, uint16_t type, uint16_t flags, const struct iovec *parts,
                     unsigned n_parts);

/*
 * Receives one frame into `buffer` (FILES_MAX_FRAME bytes). 1: a frame; 0: the other end is gone;
 * -1 with errno (EPROTO for anything malformed). Attached fds are never taken.
 */
int files_frame_receive(int sock, void *buffer, struct files_frame *out, int recv_flags);

/* Takes a received packet apart; false when it is malformed. */
bool files_frame_parse(const void *packet, size_t size, struct files_frame *out);
bool files_request_parse(const struct files_frame *frame, struct files_request *out);
bool files_total_parse(const struct files_frame *frame, struct files_total *out);
/* *text points into the frame. */
bool files_failure_parse(const struct files_frame *frame, struct files_failure *out,
                         const char **text);

/* The item at *at, which then stands behind it. False when malformed; call while *at <
 * frame->length. */
bool files_item_next(const struct files_frame *frame, size_t *at, struct files_item *out);

/* Bytes the item needs in a frame, and its writing there (`room` must be enough). */
size_t files_item_size(const struct files_item *item);
size_t files_item_write(const struct files_item *item, uint8_t *room);

/* The same for events. */
bool files_event_next(const struct files_frame *frame, size_t *at, struct files_event *out);
size_t files_event_size(const struct files_event *event);
size_t files_event_write(const struct files_event *event, uint8_t *room);

/* A path that stays below where it starts by its spelling: relative, no empty, "." or ".." part,
 * not too long. */
bool files_path_is_plain(const char *path);
