/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a stranger's tar archive; see tar_take.h. */
#include "cli/tar_take.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "cli/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512
#define LONG_MAX_BYTES ((uint64_t)64 << 10)

enum stage { STAGE_HEADER, STAGE_CONTENT, STAGE_TEXT, STAGE_SKIP, STAGE_PADDING, STAGE_END };

struct tar_take {
    struct entry_maker *maker;
    enum stage stage;
    char block[BLOCK];
    size_t filled;
    uint64_t left, padding;
    char type;
    struct buffer text;        // of a long name or of pax
    char name[ENTRY_NAME + 1]; // one that was cut is still too long
    char link[ENTRY_NAME];
    bool has_name, has_link, has_size; // told before the header
    uint64_t size;
    bool has_content; // a file is being made
};

struct tar_take *tar_take_new(struct entry_maker *maker)
{
    struct tar_take *tar = xnew(struct tar_take);

    tar->maker = maker;
    buffer_init(&tar->text, LONG_MAX_BYTES);
    return tar;
}

void tar_take_free(struct tar_take *tar)
{
    if (!tar)
        return;
    if (tar->has_content)
        entry_drop_file(tar->maker);
    buffer_clear(&tar->text);
    free(tar);
}

// ---- entries ----

static int make_entry(struct tar_take *tar, unsigned mode, uint64_t size, struct burrow_error *err)
{
    tar->has_content = false;
    switch (tar->type) {
    case '5':
        return entry_make_directory(tar->maker, tar->name, mode, err);
    case '0':
    case '\0':
        return entry_begin_file(tar->maker, tar->name, mode, size, &tar->has_content, err);
    case '1':
        return entry_make_hard_link(tar->maker, tar->name, tar->link, err);
    case '2':
        return entry_make_link(tar->maker, tar->name, tar->link, err);
    default:
        entry_refuse(tar->maker);
        return 0;
    }
}

static int end_file(struct tar_take *tar, struct burrow_error *err)
{
    if (!tar->has_content)
        return 0;
    tar->has_content = false;
    return entry_end_file(tar->maker, err);
}

// ---- headers ----

static bool read_number(const char *field, size_t size, uint64_t *out)
{
    uint64_t number = 0;

    if (field[0] & 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (number >> 55)
                return false;
            number = number << 8 | (unsigned char)field[i];
        }
        *out = number;
        return !(field[0] & 0x7f);
    }
    size_t i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(field[i] - '0');
    *out = number;
    return i == size || field[i] == ' ' || field[i] == '\0';
}

static bool is_sum_right(const char block[BLOCK])
{
    uint64_t wanted = 0, sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
    return read_number(block + 148, 8, &wanted) && wanted == sum;
}

static void read_names(struct tar_take *tar)
{
    const char *block = tar->block;
    bool has_prefix = memcmp(block + 257, "ustar\0", 6) == 0 && block[345];

    if (!tar->has_name && has_prefix)
        (void)snprintf(tar->name, sizeof tar->name, "%.155s/%.100s", block + 345, block);
    else if (!tar->has_name)
        (void)snprintf(tar->name, sizeof tar->name, "%.100s", block);
    if (!tar->has_link)
        (void)snprintf(tar->link, sizeof tar->link, "%.100s", block + 157);
}

static void begin_content(struct tar_take *tar, enum stage stage, uint64_t size)
{
    tar->left = size;
    tar->padding = (BLOCK - size % BLOCK) % BLOCK;
    tar->stage = size ? stage : STAGE_HEADER;
}

static int damaged(struct burrow_error *err)
{
    return say_fail(err, BURROW_PROTOCOL, "what the server sent is no tar archive");
}

static int take_header(struct tar_take *tar, struct burrow_error *err)
{
    static const char zeros[BLOCK];
    uint64_t size = 0, mode = 0;

    tar->filled = 0;
    if (memcmp(tar->block, zeros, BLOCK) == 0) {
        tar->stage = STAGE_END;
        return 0;
    }
    if (!is_sum_right(tar->block) || !read_number(tar->block + 124, 12, &size) ||
        !read_number(tar->block + 100, 8, &mode))
        return damaged(err);
    tar->type = tar->block[156];
    if (strchr("xgLK", tar->type) && tar->type) {
        if (size > LONG_MAX_BYTES)
            return damaged(err);
        tar->text.length = 0;
        begin_content(tar, STAGE_TEXT, size);
        return 0;
    }
    if (tar->has_size)
        size = tar->size;
    read_names(tar);
    if (strchr("12345", tar->type) && tar->type)
        size = 0;
    int result = make_entry(tar, (unsigned)mode, size, err);
    tar->has_name = tar->has_link = tar->has_size = false;
    begin_content(tar, tar->has_content ? STAGE_CONTENT : STAGE_SKIP, size);
    return result == 0 && size == 0 ? end_file(tar, err) : result;
}

/* "27 path=some/name\n" and so on. */
static void take_pax(struct tar_take *tar)
{
    char *at = tar->text.data, *end = at + tar->text.length;

    while (at < end) {
        char *rest;
        unsigned long length = strtoul(at, &rest, 10);
        if (length < 4 || length > (size_t)(end - at) || *rest != ' ' || rest + 1 >= at + length)
            return;
        char *key = rest + 1, *stop = at + length - 1;
        *stop = '\0';
        if (strncmp(key, "path=", 5) == 0) {
            (void)snprintf(tar->name, sizeof tar->name, "%s", key + 5);
            tar->has_name = true;
        } else if (strncmp(key, "linkpath=", 9) == 0) {
            (void)snprintf(tar->link, sizeof tar->link, "%s", key + 9);
            tar->has_link = true;
        } else if (strncmp(key, "size=", 5) == 0) {
            tar->size = strtoull(key + 5, NULL, 10);
            tar->has_size = true;
        }
        at += length;
    }
}

static void take_text(struct tar_take *tar)
{
    const char *text = tar->text.data ? tar->text.data : "";

    if (tar->type == 'x')
        take_pax(tar);
    if (tar->type == 'L') {
        (void)snprintf(tar->name, sizeof tar->name, "%s", text);
        tar->has_name = true;
    }
    if (tar->type == 'K') {
        (void)snprintf(tar->link, sizeof tar->link, "%s", text);
        tar->has_link = true;
    }
}

static int take_content(struct tar_take *tar, const char *data, size_t part,
                        struct burrow_error *err)
{
    struct error error = {0};

    if (tar->stage == STAGE_CONTENT && entry_add_bytes(tar->maker, data, part, err) < 0)
        return -1;
    if (tar->stage == STAGE_TEXT && buffer_add(&tar->text, data, part, &error) < 0)
        return damaged(err);
    tar->left -= part;
    if (tar->left)
        return 0;
    if (tar->stage == STAGE_TEXT)
        take_text(tar);
    if (end_file(tar, err) < 0)
        return -1;
    tar->left = tar->padding;
    tar->stage = tar->left ? STAGE_PADDING : STAGE_HEADER;
    return 0;
}

int tar_take_bytes(struct tar_take *tar, const void *data, size_t length, struct burrow_error *err)
{
    const char *at = data;

    while (length && tar->stage != STAGE_END) {
        size_t part;
        if (tar->stage == STAGE_HEADER) {
            part = BLOCK - tar->filled < length ? BLOCK - tar->filled : length;
            memcpy(tar->block + tar->filled, at, part);
            tar->filled += part;
            if (tar->filled == BLOCK && take_header(tar, err) < 0)
                return -1;
        } else {
            part = tar->left < length ? (size_t)tar->left : length;
            if (tar->stage == STAGE_PADDING) {
                tar->left -= part;
                if (tar->left == 0)
                    tar->stage = STAGE_HEADER;
            } else if (take_content(tar, at, part, err) < 0) {
                return -1;
            }
        }
        at += part;
        length -= part;
    }
    return 0;
}

int tar_take_end(struct tar_take *tar, struct burrow_error *err)
{
    bool is_whole = tar->stage == STAGE_END || (tar->stage == STAGE_HEADER && tar->filled == 0);

    if (entry_maker_settle(tar->maker, err) < 0)
        return -1;
    return is_whole ? 0 : say_fail(err, BURROW_BROKEN, "what the server sent ended in the middle");
}
