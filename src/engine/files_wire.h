/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the engine and burrow-init talk about files: frames over a SOCK_SEQPACKET socket; both ends
 * compile this file. One frame is one packet: a header, then a payload. Each end takes the other's
 * frames for hostile: every length is checked here, every string ends in a NUL that is counted and
 * holds no other. Nothing here allocates.
 *
 * A request is answered by exactly one END or ERROR, which comes last:
 *   READ            ITEM, DATA..., END
 *   STAT, NOTES     ITEM, END
 *   LIST            ITEM... (several entries a frame), END
 *   FIND            the same, in the order of files_path_compare
 *   SEARCH          MATCH..., END
 *   EXPORT          RECORDS (with FILES_TOGETHER), or ITEM (one record) and its DATA... (item.size bytes), ..., END
 *   SAVE            the asker sends DATA..., then COMMIT or ABORT; ITEM (what is there now), END
 *   WRITE           the asker sends DATA..., then COMMIT or ABORT; END
 *   IMPORT          the asker sends RECORDS, or ITEM and its DATA..., then COMMIT or ABORT; END
 *   WATCH           EVENT (FILES_STARTED), EVENT... as things happen; END when the directory is gone. The asker ends it by
 *                   closing the conversation
 *   others          END
 * An ERROR for SAVE, WRITE and IMPORT may come early; the asker's frames are then dropped until COMMIT or
 * ABORT. Work that takes long without a word says ALIVE from time to time, where the asker wants that.
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
#define FILES_PIECE                                                                                \
    (FILES_MAX_FRAME - 4096u) // of a file's bytes that are sent at once: whole pages

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
    FILES_SAVE,   // a whole file, beside and then in the place of what is there; or behind it
    FILES_FIND,   // a listing in order, by a pattern, from a place on
    FILES_SEARCH, // lines of files by a pattern
    FILES_COPY,
    FILES_WATCH,     // a directory, until the asker goes
    FILES_SET_NOTES, // of a file: all anew
    FILES_NOTES,
    FILES_REQUESTS,
    FILES_ITEM = 32, // struct files_item_wire and strings, one or more
    FILES_DATA,      // bytes
    FILES_COMMIT,    // the asker has sent everything
    FILES_ABORT,     // the asker gives up: what it began is taken back where that is possible
    FILES_END,       // struct files_total
    FILES_ERROR,     // struct files_failure and a sentence
    FILES_MATCH,     // struct files_match_wire, path and text
    FILES_ALIVE,     // nothing: the work goes on
    FILES_EVENT,     // struct files_event_wire and strings, one or more
    FILES_RECORDS,   // small records, one or more: each an item and all its bytes
    FILES_TYPES
};

/* Flags of requests. */
#define FILES_PARENTS 1u     // WRITE, SAVE, MKDIR, RENAME, COPY, IMPORT: make missing directories
#define FILES_EXCLUSIVE 2u   // WRITE, MKDIR: it must be new; RENAME, COPY: nothing may stand there
#define FILES_RECURSIVE 4u   // LIST, REMOVE, WATCH: with everything below
#define FILES_FOLLOW 8u      // STAT, CHOWN: of what a link leads to
#define FILES_MISSING_OK 16u // REMOVE
#define FILES_OWNERS 32u     // IMPORT: give files to the ids in the records
#define FILES_UNLESS 64u     // SAVE, REMOVE: only if none of the etags is the file's
#define FILES_APPEND 128u    // SAVE: behind what is there, which stays the same file
#define FILES_FIXED 256u     // SEARCH: the pattern is a text and no expression
#define FILES_IGNORE_CASE 512u // SEARCH
#define FILES_PATIENT 1024u    // COPY, FIND, REMOVE, RENAME, SEARCH: signs of life are wanted
#define FILES_TOGETHER 2048u   // EXPORT: small records may come together, as RECORDS

struct files_header {
    uint16_t type;
    uint16_t flags;
    uint32_t length; // of the payload
};

/* FIND: what is told of. */
#define FILES_KIND_FILE 1u
#define FILES_KIND_DIRECTORY 2u
#define FILES_KIND_LINK 4u
#define FILES_KIND_OTHER 8u
#define FILES_KIND_ANY 15u

#define FILES_KEEP_MODE UINT32_MAX // SAVE: as it is; 0644 for what is new

/*
 * Payload of every request; the path stands behind it, then two more strings that may be empty:
 *   RENAME, COPY   where to
 *   SAVE, REMOVE   etags of which the file must have one, with ',' between; "*": any; "": no condition
 *   FIND           a glob, for paths below `path`; and the path behind which to begin
 *   SEARCH         an expression or a text; and a glob for paths below `path`
 *   SET_NOTES      what their names begin with in the kernel; and "NAME=VALUE" of each, with line breaks between
 *   NOTES          the first of these; the item's target is the second
 */
struct files_request_wire {
    uint64_t offset;  // READ
    uint64_t maximum; // READ, EXPORT: bytes; LIST, FIND: items; SEARCH: matches; WATCH: directories
    uint64_t file_bytes; // SEARCH: larger files are passed over
    uint32_t mode;       // WRITE and MKDIR (of what is new), SAVE, CHMOD
    uint32_t uid;        // CHOWN, SAVE: FILES_KEEP_ID leaves it, or is the user's
    uint32_t gid;
    uint32_t depth;      // FIND, SEARCH: how many levels of directories; 0: all
    uint32_t kinds;      // FIND
    uint32_t line_bytes; // SEARCH: of a line that are told
    uint16_t path_size;  // with NUL
    uint16_t second_size;
    uint16_t third_size;
    uint16_t pad;
};

struct files_item_wire {
    uint64_t size;
    uint64_t disk_bytes;
    int64_t mtime_ns;
    int64_t ctime_ns;
    int64_t atime_ns;
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

struct files_match_wire {
    uint64_t line;   // from 1
    uint64_t offset; // of the text in the file
    uint32_t column; // of the match in the text, in bytes, from 1; 0: not known
    uint32_t is_cut; // the text is a part of the line
    uint32_t text_size;
    uint16_t path_size; // with NUL
    uint16_t pad;
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
    const char *third;
};

struct files_match {
    uint64_t line, offset;
    uint32_t column;
    bool is_cut;
    const char *path; // below what was searched; "": that itself
    const char *text; // without its newline; any bytes
    size_t text_size;
};

struct files_item {
    uint64_t size;
    uint64_t disk_bytes; // that it takes; less than size where it has holes
    int64_t mtime_ns, ctime_ns, atime_ns;
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

/*
 * The record at *at of a RECORDS frame, which then stands behind it; *content points to its item.size bytes. False when
 * malformed; call while *at < frame->length.
 */
bool files_record_next(const struct files_frame *frame, size_t *at, struct files_item *out,
                       const uint8_t **content);

/*
 * Small records that are gathered for one RECORDS frame: a frame for each would be most of the work. Whoever gathers them has the
 * room, FILES_MAX_DATA bytes.
 */
struct files_batch {
    uint8_t *room;
    size_t length; // of the whole records in it
};

/* Whether a record goes into batches at all; whether this batch has room for it still. */
bool files_batch_takes(const struct files_item *item);
bool files_batch_has_room(const struct files_batch *batch, const struct files_item *item);
/* Writes the item behind the records in it and returns where its item.size bytes belong. files_batch_keep then counts it in: a record
 * whose bytes cannot be had is left out. */
uint8_t *files_batch_begin(struct files_batch *batch, const struct files_item *item);
void files_batch_keep(struct files_batch *batch, const struct files_item *item);

/* The same for events. */
bool files_event_next(const struct files_frame *frame, size_t *at, struct files_event *out);
size_t files_event_size(const struct files_event *event);
size_t files_event_write(const struct files_event *event, uint8_t *room);

bool files_match_parse(const struct files_frame *frame, struct files_match *out);

/* What a file is known by as long as nobody touches it: changes with its content, owner, mode and place. */
#define FILES_ETAG_SIZE 80
const char *files_item_etag(const struct files_item *item, char etag[FILES_ETAG_SIZE]);

/* A directory comes before what is in it, and that before what follows the directory. <0, 0, >0. */
int files_path_compare(const char *a, const char *b);

/* A path that stays below where it starts by its spelling: relative, no empty, "." or ".." part,
 * not too long. */
bool files_path_is_plain(const char *path);
