/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a user of the box is, by the box's own /etc/passwd and /etc/group, which a guest may have
 * written. The grammar is strict: what it says is found exactly, or it is an error.
 *
 *   user | user:group        each a name ([A-Za-z_][A-Za-z0-9._-]*) or a decimal number 0 to 65535
 *
 * A number that stands in no file is fine: its group is then the same number, its home "/". With
 * `:group` that is the only group; without it, the user's own and all that name the user as a
 * member.
 *
 * Threads: any.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define USERS_MAX_ID 65535u // a box has 65536 ids
#define USERS_MAX_GROUPS 64
#define USERS_MAX_FILE (1u << 20)

struct user_info {
    uint32_t uid, gid;
    uint32_t groups[USERS_MAX_GROUPS]; // supplementary, without gid
    uint32_t n_groups;
    char name[256]; // "" when the number has none
    char home[1024];
};

/* Looks `text` up in the calling process's root. 0, or -1 with a sentence in `message`. Does not
 * allocate beyond the files' size. */
int users_find(const char *text, struct user_info *out, char *message, size_t size);

/* The same below the directory `root`. */
int users_find_in(int root, const char *text, struct user_info *out, char *message, size_t size);
