/* SPDX-License-Identifier: Apache-2.0 */
/* The asking end of conversations about files; see files.h. */
#include "engine/files.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/quote.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

/* One question and what its answer is fed to. */
struct ask {
    int conv;
    uint16_t type;
    uint64_t bytes_left; // that DATA may still bring
    uint64_t items_left; // that ITEM may still bring
    uint64_t allowed;    // EXPORT: bytes of all further records
    files_on_item on_item;
    files_on_data on_data;
    files_on_match on_match;
    void *data;
    struct files_patience patience;
    const char *last; // FIND: the path before, in `last_path`
    char *last_path;
    struct files_total total;
    uint8_t *buffer; // of the receiver
    uint8_t *out;    // of the sender, for WRITE and IMPORT
};

static void ask_clear(struct ask *ask)
{
    free(ask->buffer);
    free(ask->out);
    free(ask->last_path);
}
#define autoask __attribute__((cleanup(ask_clear))) struct ask

int files_set_timeout(int conv, unsigned timeout_ms, struct error *err)
{
    struct timeval value = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    if (setsockopt(conv, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value) < 0 ||
        setsockopt(conv, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value) < 0)
        return error_sys(err, "set a timeout for file work");
    return 0;
}

/* No frame after this can be trusted to belong to what is asked next. */
static void end_conversation(const struct ask *ask)
{
    (void)shutdown(ask->conv, SHUT_RDWR);
}

static int broken(const struct ask *ask, struct error *err)
{
    end_conversation(ask);
    return error_set(err, ERROR_GONE, "the sandbox sent an answer about files that makes no sense");
}

/* The sentence came from the box: control characters would reach a terminal. */
static int take_error(const struct ask *ask, const struct files_frame *frame, struct error *err)
{
    struct files_failure failure;
    const char *text = NULL;
    if (!files_failure_parse(frame, &failure, &text))
        return broken(ask, err);
    bool is_known = failure.kind > ERROR_NONE && failure.kind <= ERROR_SYSTEM;
    bool is_full = failure.sys == ENOSPC || failure.sys == EDQUOT;
    error_set(err,
              is_full    ? ERROR_DISK_FULL
              : is_known ? (enum error_reason)failure.kind
                         : ERROR_SYSTEM,
              "%s", text);
    err->sys = failure.sys > 0 && failure.sys < 4096 ? failure.sys : 0;
    quote_scrub(err->text);
    return -1;
}

/* PID 1 that serves nobody says why before it closes; a reset may come in front of that. */
static bool has_refused(const struct ask *ask, struct error *err)
{
    struct files_frame frame;

    for (int i = 0; i < 2; i++) {
        if (files_frame_receive(ask->conv, ask->buffer, &frame, MSG_DONTWAIT) == 1)
            return frame.type == FILES_ERROR && take_error(ask, &frame, err) < 0;
    }
    return false;
}

static int lost(const struct ask *ask, struct error *err)
{
    int code = errno;
    bool is_told = (code == EPIPE || code == ECONNRESET) && has_refused(ask, err);
    end_conversation(ask);
    if (is_told)
        return -1;
    if (code == EAGAIN || code == EWOULDBLOCK)
        return error_set(err, ERROR_SLOW_SANDBOX,
                         "the sandbox took too long to answer about files");
    if (code == EPROTO)
        return broken(ask, err);
    return error_set(err, ERROR_GONE, "the sandbox ended while it was asked about files");
}

static int send_frame(const struct ask *ask, uint16_t type, const void *data, size_t length,
                      struct error *err)
{
    struct iovec part = {(void *)data, length};
    return files_frame_send(ask->conv, type, 0, &part, 1) < 0 ? lost(ask, err) : 0;
}

static int receive(const struct ask *ask, struct files_frame *frame, struct error *err)
{
    int got = files_frame_receive(ask->conv, ask->buffer, frame, 0);
    if (got == 0)
        errno = ECONNRESET;
    return got <= 0 ? lost(ask, err) : 0;
}

static int check_path(const char *path, struct error *err)
{
    size_t length = strlen(path);
    if (length == 0)
        return error_set(err, ERROR_INVALID, "a path in the sandbox is empty");
    if (length >= FILES_MAX_PATH)
        return error_set(err, ERROR_INVALID, "path '%.64s...' is longer than %u bytes", path,
                         FILES_MAX_PATH - 1);
    return 0;
}

/* The two other strings of a request may be empty. */
static int ask_begin_strings(struct ask *ask, const struct files_request_wire *request,
                             unsigned flags, const char *path, const char *second,
                             const char *third, struct error *err)
{
    struct files_request_wire fixed = *request;
    if (check_path(path, err) < 0 || (*second && check_path(second, err) < 0))
        return -1;
    if (strlen(third) >= FILES_MAX_RECORD_PATH)
        return error_set(err, ERROR_INVALID, "path '%.64s...' is longer than %u bytes", third,
                         FILES_MAX_RECORD_PATH - 1);
    fixed.path_size = (uint16_t)(strlen(path) + 1);
    fixed.second_size = (uint16_t)(strlen(second) + 1);
    fixed.third_size = (uint16_t)(strlen(third) + 1);
    struct iovec parts[] = {
        {&fixed, sizeof fixed},
        {(void *)path, fixed.path_size},
        {(void *)second, fixed.second_size},
        {(void *)third, fixed.third_size},
    };
    if (ask->patience.on_alive)
        flags |= FILES_PATIENT;
    ask->buffer = xcalloc(1, FILES_MAX_FRAME);
    if (files_frame_send(ask->conv, ask->type, (uint16_t)flags, parts, 4) < 0)
        return lost(ask, err);
    return 0;
}

static int ask_begin(struct ask *ask, const struct files_request_wire *request, unsigned flags,
                     const char *path, const char *second, struct error *err)
{
    if (second && check_path(second, err) < 0)
        return -1;
    return ask_begin_strings(ask, request, flags, path, second ? second : "", "", err);
}

static int stopped(const struct ask *ask)
{
    end_conversation(ask);
    return -1;
}

/* EXPORT: what is made of it elsewhere must not be led astray by names or types. */
static bool is_good_record(const struct files_item *item)
{
    mode_t type = item->mode & S_IFMT;
    if (!files_path_is_plain(item->path) || item->is_hard_link)
        return false;
    if (type == S_IFLNK)
        return item->size == 0 && item->target[0];
    return !item->target[0] && (type == S_IFREG || (type == S_IFDIR && item->size == 0));
}

static bool is_good_item(const struct ask *ask, const struct files_item *item)
{
    switch (ask->type) {
    case FILES_EXPORT: // not before the last one's data is complete
        return ask->bytes_left == 0 && item->size <= ask->allowed && is_good_record(item);
    case FILES_LIST:
        return files_path_is_plain(item->path);
    case FILES_FIND: // each behind the one before, so that paging ends
        return files_path_is_plain(item->path) && files_path_compare(ask->last, item->path) < 0;
    default:
        return item->path[0] == '\0';
    }
}

static int take_item(struct ask *ask, const struct files_item *item, struct error *err)
{
    if (!ask->on_item || ask->items_left == 0 || !is_good_item(ask, item))
        return broken(ask, err);
    ask->items_left--;
    ask->total.items++;
    if (ask->type == FILES_EXPORT) {
        ask->bytes_left = item->size;
        ask->allowed -= item->size;
    }
    return ask->on_item(ask->data, item, err) < 0 ? stopped(ask) : 0;
}

static int take_items(struct ask *ask, const struct files_frame *frame, struct error *err)
{
    size_t at = 0;
    do { // one at least
        struct files_item item;
        if (!files_item_next(frame, &at, &item))
            return broken(ask, err);
        if (take_item(ask, &item, err) < 0)
            return -1;
        if (ask->type == FILES_FIND)
            ask->last = memcpy(ask->last_path, item.path, strlen(item.path) + 1);
    } while (at < frame->length);
    return 0;
}

static int take_match(struct ask *ask, const struct files_frame *frame, struct error *err)
{
    struct files_match match;
    if (!ask->on_match || ask->items_left == 0 || !files_match_parse(frame, &match) ||
        (match.path[0] && !files_path_is_plain(match.path)))
        return broken(ask, err);
    ask->items_left--;
    ask->total.items++;
    return ask->on_match(ask->data, &match, err) < 0 ? stopped(ask) : 0;
}

static int take_alive(struct ask *ask, const struct files_frame *frame, struct error *err)
{
    if (frame->length || !ask->patience.on_alive)
        return broken(ask, err);
    return ask->patience.on_alive(ask->patience.data, err) < 0 ? stopped(ask) : 0;
}

static int take_bytes(struct ask *ask, const uint8_t *bytes, size_t length, struct error *err)
{
    if (!ask->on_data || length == 0 || length > ask->bytes_left)
        return broken(ask, err);
    ask->bytes_left -= length;
    ask->total.bytes += length;
    return ask->on_data(ask->data, bytes, length, err) < 0 ? stopped(ask) : 0;
}

static int take_records(struct ask *ask, const struct files_frame *frame, struct error *err)
{
    size_t at = 0;
    do {
        struct files_item item;
        const uint8_t *content;
        if (ask->type != FILES_EXPORT || !files_record_next(frame, &at, &item, &content))
            return broken(ask, err);
        if (take_item(ask, &item, err) < 0 ||
            (item.size && take_bytes(ask, content, (size_t)item.size, err) < 0))
            return -1;
    } while (at < frame->length);
    return 0;
}

static int take_end(struct ask *ask, const struct files_frame *frame, struct error *err)
{
    struct files_total said;
    if (!files_total_parse(frame, &said) || (ask->type == FILES_EXPORT && ask->bytes_left))
        return broken(ask, err);
    ask->total.skipped = said.skipped;
    if (ask->type == FILES_COPY || ask->type == FILES_SEARCH)
        ask->total.bytes = said.bytes;
    if (ask->type == FILES_COPY)
        ask->total.items = said.items;
    ask->total.is_truncated = said.is_truncated != 0;
    return 0;
}

/* Feeds everything up to the answer's end to the callbacks. */
static int ask_finish(struct ask *ask, struct error *err)
{
    for (;;) {
        struct files_frame frame;
        if (receive(ask, &frame, err) < 0)
            return -1;
        int result = 0;
        switch (frame.type) {
        case FILES_ITEM:
            result = take_items(ask, &frame, err);
            break;
        case FILES_DATA:
            result = take_bytes(ask, frame.payload, frame.length, err);
            break;
        case FILES_RECORDS:
            result = take_records(ask, &frame, err);
            break;
        case FILES_MATCH:
            result = take_match(ask, &frame, err);
            break;
        case FILES_ALIVE:
            result = take_alive(ask, &frame, err);
            break;
        case FILES_END:
            return take_end(ask, &frame, err);
        case FILES_ERROR:
            return take_error(ask, &frame, err);
        default:
            result = broken(ask, err);
        }
        if (result < 0)
            return -1;
    }
}

static int ask_simple(int conv, uint16_t type, const struct files_request_wire *request,
                      unsigned flags, const char *path, const char *second, struct error *err)
{
    autoask ask = {.conv = conv, .type = type};
    if (ask_begin(&ask, request, flags, path, second, err) < 0)
        return -1;
    return ask_finish(&ask, err);
}

struct one_item {
    struct files_item item;
    char *target;
    files_on_data on_data;
    void *data;
};

static int keep_item(void *data, const struct files_item *item, struct error *err)
{
    struct one_item *one = data;
    one->item = *item;
    if (one->target)
        memcpy(one->target, item->target, strlen(item->target) + 1);
    one->item.path = one->item.target = "";
    return 0;
}

static int pass_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct one_item *one = data;
    return one->on_data(one->data, bytes, length, err);
}

int files_read(int conv, const char *path, uint64_t offset, uint64_t maximum,
               struct files_item *item, files_on_data on_data, void *data,
               struct files_total *total, struct error *err)
{
    struct one_item one = {.on_data = on_data, .data = data};
    autoask ask = {.conv = conv, .type = FILES_READ, .bytes_left = maximum, .items_left = 1};
    ask.on_item = keep_item;
    ask.on_data = pass_data;
    ask.data = &one;
    struct files_request_wire request = {.offset = offset, .maximum = maximum};
    if (ask_begin(&ask, &request, 0, path, NULL, err) < 0 || ask_finish(&ask, err) < 0)
        return -1;
    if (ask.items_left)
        return broken(&ask, err);
    if (item)
        *item = one.item;
    if (total)
        *total = ask.total;
    return 0;
}

static int data_to_fd(void *data, const void *bytes, size_t length, struct error *err)
{
    const int *fd = data;
    return fd_write_all(*fd, bytes, length) < 0 ? error_sys(err, "write what the sandbox sent") : 0;
}

int files_read_to_fd(int conv, const char *path, uint64_t offset, uint64_t maximum, int fd,
                     struct files_item *item, struct files_total *total, struct error *err)
{
    return files_read(conv, path, offset, maximum, item, data_to_fd, &fd, total, err);
}

int files_list(int conv, const char *path, bool is_recursive, uint64_t maximum,
               files_on_item on_item, void *data, struct files_total *total, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_LIST, .items_left = maximum};
    ask.on_item = on_item;
    ask.data = data;
    struct files_request_wire request = {.maximum = maximum};
    unsigned flags = is_recursive ? FILES_RECURSIVE : 0;
    if (ask_begin(&ask, &request, flags, path, NULL, err) < 0 || ask_finish(&ask, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

int files_find(int conv, const char *path, const struct files_find *what,
               const struct files_patience *patience, files_on_item on_item, void *data,
               struct files_total *total, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_FIND, .items_left = what->maximum};
    ask.on_item = on_item;
    ask.data = data;
    ask.patience = patience ? *patience : (struct files_patience){0};
    ask.last = what->after;
    ask.last_path = xcalloc(1, FILES_MAX_RECORD_PATH);
    struct files_request_wire request = {
        .maximum = what->maximum, .depth = what->depth, .kinds = what->kinds};
    if (ask_begin_strings(&ask, &request, 0, path, what->pattern, what->after, err) < 0 ||
        ask_finish(&ask, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

int files_search(int conv, const char *path, const struct files_search *what,
                 const struct files_patience *patience, files_on_match on_match, void *data,
                 struct files_total *total, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_SEARCH, .items_left = what->maximum};
    ask.on_match = on_match;
    ask.data = data;
    ask.patience = patience ? *patience : (struct files_patience){0};
    struct files_request_wire request = {.maximum = what->maximum,
                                         .depth = what->depth,
                                         .file_bytes = what->file_bytes,
                                         .line_bytes = what->line_bytes};
    if (ask_begin_strings(&ask, &request, what->flags, path, what->pattern, what->names, err) < 0 ||
        ask_finish(&ask, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

/* For as long as it takes. */
static int ask_patiently(struct ask *ask, const struct files_patience *patience, unsigned flags,
                         const char *path, const char *second, struct error *err)
{
    struct files_request_wire request = {0};
    ask->patience = patience ? *patience : (struct files_patience){0};
    if (ask_begin_strings(ask, &request, flags, path, second, "", err) < 0)
        return -1;
    return ask_finish(ask, err);
}

int files_copy(int conv, const char *from, const char *to, unsigned flags,
               const struct files_patience *patience, struct files_total *total, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_COPY};
    if (check_path(to, err) < 0 || ask_patiently(&ask, patience, flags, from, to, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

int files_move(int conv, const char *from, const char *to, unsigned flags,
               const struct files_patience *patience, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_RENAME};
    return check_path(to, err) < 0 ? -1 : ask_patiently(&ask, patience, flags, from, to, err);
}

int files_remove_if(int conv, const char *path, unsigned flags, const char *condition,
                    const struct files_patience *patience, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_REMOVE};
    return ask_patiently(&ask, patience, flags, path, condition, err);
}

int files_stat(int conv, const char *path, bool is_followed, struct files_item *item, char *target,
               struct error *err)
{
    struct one_item one = {.target = target};
    autoask ask = {.conv = conv, .type = FILES_STAT, .items_left = 1};
    ask.on_item = keep_item;
    ask.data = &one;
    struct files_request_wire request = {0};
    unsigned flags = is_followed ? FILES_FOLLOW : 0;
    if (ask_begin(&ask, &request, flags, path, NULL, err) < 0 || ask_finish(&ask, err) < 0)
        return -1;
    if (ask.items_left)
        return broken(&ask, err);
    if (item)
        *item = one.item;
    return 0;
}

int files_set_notes(int conv, const char *path, const char *prefix, const char *notes,
                    struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_SET_NOTES};
    struct files_request_wire request = {0};

    if (ask_begin_strings(&ask, &request, 0, path, prefix, notes, err) < 0)
        return -1;
    return ask_finish(&ask, err);
}

int files_notes(int conv, const char *path, const char *prefix, char notes[FILES_MAX_PATH],
                struct error *err)
{
    struct one_item one = {.target = notes};
    autoask ask = {.conv = conv, .type = FILES_NOTES, .items_left = 1};
    struct files_request_wire request = {0};

    ask.on_item = keep_item;
    ask.data = &one;
    if (ask_begin(&ask, &request, 0, path, prefix, err) < 0 || ask_finish(&ask, err) < 0)
        return -1;
    return ask.items_left ? broken(&ask, err) : 0;
}

int files_mkdir(int conv, const char *path, uint32_t mode, unsigned flags, struct error *err)
{
    struct files_request_wire request = {.mode = mode};
    return ask_simple(conv, FILES_MKDIR, &request, flags, path, NULL, err);
}

int files_remove(int conv, const char *path, unsigned flags, struct error *err)
{
    struct files_request_wire request = {0};
    return ask_simple(conv, FILES_REMOVE, &request, flags, path, NULL, err);
}

int files_rename(int conv, const char *from, const char *to, unsigned flags, struct error *err)
{
    struct files_request_wire request = {0};
    return ask_simple(conv, FILES_RENAME, &request, flags, from, to, err);
}

int files_chmod(int conv, const char *path, uint32_t mode, struct error *err)
{
    struct files_request_wire request = {.mode = mode};
    return ask_simple(conv, FILES_CHMOD, &request, 0, path, NULL, err);
}

int files_chown(int conv, const char *path, uint32_t uid, uint32_t gid, unsigned flags,
                struct error *err)
{
    struct files_request_wire request = {.uid = uid, .gid = gid};
    return ask_simple(conv, FILES_CHOWN, &request, flags, path, NULL, err);
}

int files_export(int conv, const char *path, uint64_t maximum, files_on_item on_item,
                 files_on_data on_data, void *data, struct files_total *total, struct error *err)
{
    autoask ask = {
        .conv = conv, .type = FILES_EXPORT, .items_left = UINT64_MAX, .allowed = maximum};
    ask.on_item = on_item;
    ask.on_data = on_data;
    ask.data = data;
    struct files_request_wire request = {.maximum = maximum};
    if (ask_begin(&ask, &request, FILES_TOGETHER, path, NULL, err) < 0 || ask_finish(&ask, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

/* True when PID 1 answered before we were through: it refused, the rest need not be sent. */
static bool has_early_answer(const struct ask *ask)
{
    uint8_t byte;
    return recv(ask->conv, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Says how it ended and takes the one answer. An error of ours is kept over the one that follows
 * from it. */
static int finish_sending(struct ask *ask, int result, struct error *err)
{
    struct error answer = {0};
    uint16_t type = result == 0 ? FILES_COMMIT : FILES_ABORT;
    if (send_frame(ask, type, NULL, 0, &answer) == 0 && ask_finish(ask, &answer) == 0)
        return result;
    if (result == 0)
        *err = answer;
    return -1;
}

/* Sends what `fill` gives, `size` bytes or to its end. 0: all of it; 1: PID 1 has answered
 * meanwhile. */
static int send_data(struct ask *ask, files_fill fill, void *data, uint64_t size, bool is_exact,
                     struct error *err)
{
    if (!ask->out)
        ask->out = xcalloc(1, FILES_PIECE);
    while (size > 0) {
        if (has_early_answer(ask))
            return 1;
        size_t room = size < FILES_PIECE ? (size_t)size : FILES_PIECE;
        ssize_t got = fill(data, ask->out, room, err);
        if (got < 0)
            return -1;
        if (got == 0 && is_exact)
            return error_set(err, ERROR_INVALID, "the data of a record ends too early");
        if (got == 0)
            return 0;
        if (send_frame(ask, FILES_DATA, ask->out, (size_t)got, err) < 0)
            return -1;
        size -= (uint64_t)got;
    }
    return 0;
}

int files_write(int conv, const char *path, uint32_t mode, unsigned flags, files_fill fill,
                void *data, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_WRITE};
    struct files_request_wire request = {.mode = mode};
    if (ask_begin(&ask, &request, flags, path, NULL, err) < 0)
        return -1;
    int result = send_data(&ask, fill, data, UINT64_MAX, false, err);
    return finish_sending(&ask, result < 0 ? -1 : 0, err);
}

int files_save(int conv, const char *path, const struct files_save *how, files_fill fill,
               void *data, struct files_item *item, struct error *err)
{
    struct one_item one = {0};
    autoask ask = {.conv = conv, .type = FILES_SAVE, .items_left = 1};
    ask.on_item = keep_item;
    ask.data = &one;
    struct files_request_wire request = {.mode = how->mode, .uid = how->uid, .gid = how->gid};
    if (ask_begin_strings(&ask, &request, how->flags, path, how->condition, "", err) < 0)
        return -1;
    int result = send_data(&ask, fill, data, UINT64_MAX, false, err);
    if (finish_sending(&ask, result < 0 ? -1 : 0, err) < 0)
        return -1;
    if (ask.items_left)
        return broken(&ask, err);
    if (item)
        *item = one.item;
    return 0;
}

/* The record as PID 1 takes it: bytes are a file's alone, targets a link's. */
static int check_record(const struct files_item *item, struct files_item *record, struct error *err)
{
    bool is_link = item->is_hard_link || S_ISLNK(item->mode);
    size_t maximum = item->is_hard_link ? FILES_MAX_RECORD_PATH : FILES_MAX_PATH;

    *record = *item;
    if (!is_link)
        record->target = "";
    if (item->is_hard_link || !S_ISREG(item->mode))
        record->size = 0;
    if (!files_path_is_plain(record->path))
        return error_set(err, ERROR_INVALID, "'%.300s' would lead out of the directory",
                         record->path);
    if (strlen(record->target) >= maximum)
        return error_set(err, ERROR_INVALID, "the target of link '%.300s' is too long",
                         record->path);
    return 0;
}

struct record_source {
    files_next_item next;
    files_fill fill;
    void *data;
};

/* 0, or 1 when PID 1 has answered meanwhile. */
static int send_batch(struct ask *ask, struct files_batch *batch, struct error *err)
{
    size_t length = batch->length;

    batch->length = 0;
    if (has_early_answer(ask))
        return 1;
    return length ? send_frame(ask, FILES_RECORDS, batch->room, length, err) : 0;
}

static int batch_record(struct files_batch *batch, const struct files_item *record,
                        const struct record_source *from, struct error *err)
{
    uint8_t *to = files_batch_begin(batch, record);

    for (uint64_t left = record->size; left > 0;) {
        ssize_t got = from->fill(from->data, to, (size_t)left, err);
        if (got < 0)
            return -1;
        if (got == 0)
            return error_set(err, ERROR_INVALID, "the data of a record ends too early");
        to += got;
        left -= (uint64_t)got;
    }
    files_batch_keep(batch, record);
    return 0;
}

/* 0, or 1 when PID 1 has answered meanwhile. */
static int send_record(struct ask *ask, struct files_batch *batch, const struct files_item *item,
                       const struct record_source *from, struct error *err)
{
    bool is_small = files_batch_takes(item);
    int result = is_small && files_batch_has_room(batch, item) ? 0 : send_batch(ask, batch, err);

    if (result == 0 && is_small)
        result = batch_record(batch, item, from, err);
    else if (result == 0 && (result = send_frame(ask, FILES_ITEM, ask->out,
                                                 files_item_write(item, ask->out), err)) == 0)
        result = send_data(ask, from->fill, from->data, item->size, true, err);
    if (result)
        return result;
    ask->total.items++;
    ask->total.bytes += item->size;
    return 0;
}

/* Up to the end, or the first that cannot be had: what came before it goes. */
static int send_records(struct ask *ask, const struct record_source *from, struct error *err)
{
    autofree uint8_t *room = xcalloc(1, FILES_MAX_DATA);
    struct files_batch batch = {.room = room};
    struct error ignored = {0};
    int result = 0;

    ask->out = xcalloc(1, FILES_MAX_DATA);
    while (result == 0) {
        struct files_item item = {.path = "", .target = ""}, record;
        int got = from->next(from->data, &item, err);
        if (got == 0)
            return send_batch(ask, &batch, err) < 0 ? -1 : 0;
        result = got < 0 || check_record(&item, &record, err) < 0
                     ? -1
                     : send_record(ask, &batch, &record, from, err);
    }
    if (result < 0)
        (void)send_batch(ask, &batch, &ignored);
    return result < 0 ? -1 : 0;
}

int files_import(int conv, const char *path, unsigned flags, files_next_item next_item,
                 files_fill fill, void *data, struct files_total *total, struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_IMPORT};
    struct files_request_wire request = {0};
    if (ask_begin(&ask, &request, flags, path, NULL, err) < 0)
        return -1;
    const struct record_source from = {next_item, fill, data};
    int result = send_records(&ask, &from, err);
    if (finish_sending(&ask, result, err) < 0)
        return -1;
    if (total)
        *total = ask.total;
    return 0;
}

int files_watch(int conv, const char *path, bool is_recursive, unsigned directories,
                struct error *err)
{
    autoask ask = {.conv = conv, .type = FILES_WATCH};
    const struct files_request_wire request = {.maximum = directories};
    struct files_frame frame;
    struct files_event event;
    size_t at = 0;

    if (ask_begin(&ask, &request, is_recursive ? FILES_RECURSIVE : 0, path, NULL, err) < 0 ||
        receive(&ask, &frame, err) < 0)
        return -1;
    if (frame.type == FILES_ERROR)
        return take_error(&ask, &frame, err);
    if (frame.type != FILES_EVENT || !files_event_next(&frame, &at, &event) ||
        event.kind != FILES_STARTED || at != frame.length)
        return broken(&ask, err);
    return 0;
}

int files_take_events(int conv, void *buffer, files_on_event on_event, void *data,
                      struct error *err)
{
    const struct ask ask = {.conv = conv, .buffer = buffer};
    struct files_frame frame;
    struct files_event event;
    int got = files_frame_receive(conv, buffer, &frame, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got == 0)
        errno = ECONNRESET;
    if (got <= 0)
        return lost(&ask, err);
    if (frame.type == FILES_END)
        return error_set(err, ERROR_NOT_FOUND, "the directory is there no more");
    if (frame.type == FILES_ERROR)
        return take_error(&ask, &frame, err);
    for (size_t at = 0; at < frame.length;) {
        if (frame.type != FILES_EVENT || !files_event_next(&frame, &at, &event))
            return broken(&ask, err);
        on_event(data, &event);
    }
    return 1;
}
