/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a PID 1 that answers questions about files with any packets; the asker's promises to
 * its callbacks hold. */
#include "base/auto.h"
#include "engine/files.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAXIMUM 1000

struct seen {
    uint64_t items, bytes;
    uint64_t announced; // by EXPORT's records
    bool is_export;
};

static int on_item(void *data, const struct files_item *item, struct error *err)
{
    struct seen *seen = data;
    mode_t type = item->mode & S_IFMT;
    seen->items++;
    if (!files_path_is_plain(item->path))
        __builtin_trap();
    if (!seen->is_export)
        return 0;
    if (seen->bytes != seen->announced || (type != S_IFREG && type != S_IFDIR && type != S_IFLNK))
        __builtin_trap();
    seen->announced += item->size;
    return 0;
}

static int on_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct seen *seen = data;
    seen->bytes += length;
    if (seen->bytes > MAXIMUM || (seen->is_export && seen->bytes > seen->announced))
        __builtin_trap();
    return 0;
}

/* Packets of the input, each behind its length in two bytes, wait in the socket before anything is
 * asked. */
static void say_all(int sock, const uint8_t *data, size_t size)
{
    while (size > 2) {
        size_t length = data[0] | (size_t)data[1] << 8;
        if (length > size - 2)
            length = size - 2;
        if (send(sock, data + 2, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return;
        data += 2 + length;
        size -= 2 + length;
    }
}

static int on_match(void *data, const struct files_match *match, struct error *err)
{
    struct seen *seen = data;
    uint8_t last = 0;
    seen->items++;
    if (match->text_size) // it lies in memory of ours
        last = (uint8_t)match->text[match->text_size - 1];
    if (match->path[0] && !files_path_is_plain(match->path))
        __builtin_trap();
    return last == 0xff ? error_set(err, ERROR_INVALID, "enough") : 0;
}

static int on_alive(void *data, struct error *err)
{
    return 0;
}

static ssize_t fill_nothing(void *data, void *bytes, size_t size, struct error *err)
{
    return 0;
}

static int ask_more(int conv, int verb, struct seen *seen, struct error *err)
{
    const struct files_patience patience = {.on_alive = on_alive};
    const struct files_find find = {
        .pattern = "", .after = "", .kinds = FILES_KIND_ANY, .maximum = MAXIMUM};
    const struct files_search search = {
        .pattern = "a", .names = "", .line_bytes = 100, .file_bytes = 100, .maximum = MAXIMUM};
    const struct files_save save = {
        .mode = FILES_KEEP_MODE, .uid = FILES_KEEP_ID, .gid = FILES_KEEP_ID, .condition = "*"};
    struct files_item item;
    switch (verb) {
    case 5:
        return files_find(conv, "x", &find, &patience, on_item, seen, NULL, err);
    case 6:
        return files_search(conv, "x", &search, NULL, on_match, seen, NULL, err);
    case 7:
        return files_save(conv, "x", &save, fill_nothing, NULL, &item, err);
    default:
        return files_copy(conv, "x", "y", 0, &patience, NULL, err);
    }
}

static void ask(int conv, uint8_t verb, struct error *err)
{
    struct seen seen = {.is_export = verb % 9 == 0};
    struct files_item item;
    char target[FILES_MAX_PATH];
    int result = -1;
    switch (verb % 9) {
    case 0:
        result = files_export(conv, "x", MAXIMUM, on_item, on_data, &seen, NULL, err);
        break;
    case 1:
        result = files_list(conv, "x", true, MAXIMUM, on_item, &seen, NULL, err);
        break;
    case 2:
        result = files_read(conv, "x", 0, MAXIMUM, &item, on_data, &seen, NULL, err);
        break;
    case 3:
        result = files_stat(conv, "x", true, &item, target, err);
        break;
    case 4:
        result = files_write_buffer(conv, "x", 0600, 0, "abc", 3, err);
        break;
    default:
        result = ask_more(conv, verb % 9, &seen, err);
    }
    if (seen.items > MAXIMUM && !seen.is_export)
        __builtin_trap();
    if (result < 0 && (!err->text[0] || error_is(err, ERROR_NONE)))
        __builtin_trap();
    if (result == 0 && seen.is_export && seen.bytes != seen.announced)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    int pair[2];
    if (size == 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    autofd conv = pair[0], peer = pair[1];
    say_all(peer, data + 1, size - 1);
    (void)shutdown(peer, SHUT_WR);
    ask(conv, data[0], &err);
    return 0;
}
