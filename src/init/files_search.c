/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching lines of files by a pattern. Files are read in pieces and matched as they come (base/pattern.h: in linear time), so neither
 * a long line nor a hostile expression takes memory; the line is read again for its text. Files that are too large, hold a NUL
 * at their beginning or cannot be read are passed over and counted.
 */
#include "base/auto.h"
#include "base/pattern.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES 8192u
#define BINARY_BYTES 8192u // that are looked at for a NUL
#define ALIVE_EVERY 32     // entries

struct search {
    struct talk *talk;
    struct walk walk;
    struct pattern *pattern;
    struct pattern *names; // NULL: any path
    // of the file
    int fd;
    const char *path; // "": what was asked for itself
    uint64_t line;
    uint64_t line_at;  // where it begins
    uint64_t match_at; // about where it was known to match
    bool is_match;
};

static void search_clear(struct search *search)
{
    pattern_free(search->pattern);
    pattern_free(search->names);
    walk_clear(&search->walk);
}
#define autosearch __attribute__((cleanup(search_clear))) struct search

static size_t line_bytes(const struct search *search)
{
    uint32_t wanted = search->talk->request.line_bytes;
    return wanted < MAX_LINE_BYTES ? wanted : MAX_LINE_BYTES;
}

/* The part of a line that is told: all of it, or around the match. */
static int send_match(struct search *search, uint64_t line_end)
{
    struct talk *talk = search->talk;
    size_t room = line_bytes(search), start = 0;
    uint64_t length = line_end - search->line_at, at = search->line_at;
    bool is_cut = length > room;

    if (is_cut && search->match_at > at + room / 2)
        at = search->match_at - room / 2;
    if (length > room)
        length = line_end - at < room ? line_end - at : room;
    char *text = (char *)talk->out;
    ssize_t got = pread(search->fd, text, (size_t)length, (off_t)at);
    if (got < 0)
        got = 0; // cut off meanwhile
    struct files_match_wire match = {
        .line = search->line,
        .offset = at,
        .is_cut = is_cut,
        .text_size = (uint32_t)got,
        .path_size = (uint16_t)(strlen(search->path) + 1),
    };
    if (!is_cut && pattern_locate(search->pattern, text, (size_t)got, &start))
        match.column = (uint32_t)start + 1;
    struct iovec parts[] = {
        {&match, sizeof match},
        {(void *)search->path, match.path_size},
        {text, (size_t)got},
    };
    talk->total.items++;
    return files_frame_send(talk->sock, FILES_MATCH, 0, parts, 3) < 0 ? TALK_OVER : 0;
}

/* 1: as many matches as were asked for. */
static int end_line(struct search *search, uint64_t line_end)
{
    bool is_match = search->is_match || pattern_end(search->pattern);

    if (is_match && search->talk->total.items == search->talk->request.maximum) {
        search->talk->total.is_truncated = 1;
        return 1;
    }
    if (is_match) {
        if (!search->is_match)
            search->match_at = line_end;
        if (send_match(search, line_end) < 0)
            return TALK_OVER;
    }
    search->line++;
    search->line_at = line_end + 1;
    search->is_match = false;
    pattern_begin(search->pattern);
    return 0;
}

/* A piece of the file that begins at `at`. */
static int search_piece(struct search *search, const char *bytes, size_t length, uint64_t at)
{
    for (size_t done = 0; done < length;) {
        const char *newline = memchr(bytes + done, '\n', length - done);
        size_t end = newline ? (size_t)(newline - bytes) : length, used = 0;
        if (!search->is_match && pattern_feed(search->pattern, bytes + done, end - done, &used)) {
            search->is_match = true;
            search->match_at = at + done + used;
        }
        if (!newline)
            return 0;
        int result = end_line(search, at + end);
        if (result)
            return result;
        done = end + 1;
    }
    return 0;
}

/* A carriage return before the newline is part of the line, as grep has it. */
static int search_file(struct search *search, uint64_t size)
{
    char *piece = (char *)search->talk->in; // nothing is received meanwhile
    uint64_t at = 0;

    search->line = 1;
    search->line_at = 0;
    search->is_match = false;
    pattern_begin(search->pattern);
    while (at < size) {
        ssize_t got = pread(search->fd, piece, FILES_MAX_FRAME, (off_t)at);
        if (got <= 0)
            break;
        if (at == 0 &&
            memchr(piece, '\0', (size_t)got < BINARY_BYTES ? (size_t)got : BINARY_BYTES)) {
            search->talk->total.skipped++;
            return 0;
        }
        int result = search_piece(search, piece, (size_t)got, at);
        if (result)
            return result;
        at += (uint64_t)got;
        search->talk->total.bytes += (uint64_t)got;
        if (talk_alive(search->talk) < 0)
            return TALK_OVER;
    }
    return at > search->line_at ? end_line(search, at) : 0;
}

static int search_opened(struct search *search, int fd, const char *path, const struct stat *info)
{
    if ((uint64_t)info->st_size > search->talk->request.file_bytes) {
        search->talk->total.skipped++;
        return 0;
    }
    search->fd = fd;
    search->path = path;
    return search_file(search, (uint64_t)info->st_size);
}

static bool is_named(struct search *search)
{
    const char *path = search->walk.path;
    return !search->names || pattern_matches(search->names, path, strlen(path));
}

static int search_entry(struct search *search)
{
    struct walk *walk = &search->walk;
    struct talk *talk = search->talk;
    struct error ignored;
    struct stat info;

    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return 0; // gone meanwhile
    if (S_ISDIR(info.st_mode)) {
        bool is_deep = talk->request.depth && walk->depth >= talk->request.depth;
        if (!is_deep && (strlen(walk->path) + 257 >= FILES_MAX_RECORD_PATH || walk_enter(walk) < 0))
            talk->total.skipped++;
        return 0;
    }
    if (!S_ISREG(info.st_mode) || !is_named(search))
        return 0;
    autofd fd = inside_openat(walk_dir(walk), walk_name(walk), O_RDONLY | O_NOFOLLOW, 0,
                              RESOLVE_NO_SYMLINKS);
    if (fd < 0 || inside_check(fd, S_IFREG, walk->path, &info, &ignored) < 0) {
        talk->total.skipped++;
        return 0;
    }
    return search_opened(search, fd, walk->path, &info);
}

static int search_walk(struct search *search, struct error *err)
{
    for (unsigned count = 1;; count++) {
        enum walk_step step = walk_next(&search->walk);
        if (step == WALK_FAILED)
            return error_path(err, "search " INSIDE_SHOWN, search->talk->path);
        if (step == WALK_END)
            return 0;
        int result = step == WALK_ENTRY ? search_entry(search) : 0;
        if (result)
            return result < 0 ? result : 0;
        if (count % ALIVE_EVERY == 0 && talk_alive(search->talk) < 0)
            return TALK_OVER;
    }
}

static int search_top(struct search *search, struct error *err)
{
    struct talk *talk = search->talk;
    struct stat info;
    autofd place = inside_openat(talk->base, talk->path, O_PATH, 0, 0);

    if (place < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    if (inside_check(place, 0, talk->path, &info, err) < 0)
        return -1;
    bool is_directory = S_ISDIR(info.st_mode);
    autofd fd =
        inside_open(talk->base, talk->path, is_directory ? O_RDONLY | O_DIRECTORY : O_RDONLY,
                    is_directory ? S_IFDIR : S_IFREG, &info, err);
    if (fd < 0)
        return -1;
    if (!is_directory) {
        int result = search_opened(search, fd, "", &info);
        return result < 0 ? result : 0;
    }
    if (walk_init(&search->walk, take_fd(fd), false) < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    return search_walk(search, err);
}

int files_do_search(struct talk *talk, struct error *err)
{
    autosearch search = {.talk = talk, .fd = -1};
    enum pattern_kind kind = talk->flags & FILES_FIXED ? PATTERN_FIXED : PATTERN_EXPRESSION;

    if (pattern_new(talk->second, kind, talk->flags & FILES_IGNORE_CASE, &search.pattern, err) < 0)
        return -1;
    if (talk->third[0] && pattern_new(talk->third, PATTERN_GLOB, false, &search.names, err) < 0)
        return -1;
    return search_top(&search, err);
}
