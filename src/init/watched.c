/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by the kernel's number and by their way; see watched.h. */
#include "init/watched.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

static struct watched_dir **chain_of(struct watched *watched, int number)
{
    return &watched->chains[(unsigned)number % WATCHED_CHAINS];
}

struct watched_dir *watched_find(struct watched *watched, int number)
{
    struct watched_dir *dir = *chain_of(watched, number);

    while (dir && dir->number != number)
        dir = dir->next;
    return dir;
}

struct watched_dir *watched_child(struct watched_dir *parent, const char *name)
{
    struct watched_dir *dir = parent->children;

    while (dir && strcmp(dir->name, name) != 0)
        dir = dir->sibling;
    return dir;
}

static void leave_parent(struct watched_dir *dir)
{
    if (!dir->parent)
        return;
    struct watched_dir **at = &dir->parent->children;
    while (*at != dir)
        at = &(*at)->sibling;
    *at = dir->sibling;
    dir->sibling = NULL;
    dir->parent = NULL;
}

static void join_parent(struct watched_dir *dir, struct watched_dir *parent)
{
    dir->parent = parent;
    if (!parent)
        return;
    dir->sibling = parent->children;
    parent->children = dir;
}

static bool is_below(const struct watched_dir *dir, const struct watched_dir *above)
{
    while (dir && dir != above)
        dir = dir->parent;
    return dir != NULL;
}

bool watched_move(struct watched_dir *dir, struct watched_dir *parent, const char *name)
{
    if (is_below(parent, dir))
        return true; // the same directory at two places: the first counts
    char *copy = strdup(name);
    if (!copy)
        return false;
    free(dir->name);
    dir->name = copy;
    leave_parent(dir);
    join_parent(dir, parent);
    return true;
}

struct watched_dir *watched_add(struct watched *watched, int number, struct watched_dir *parent,
                                const char *name)
{
    struct watched_dir *dir = watched_find(watched, number);

    if (dir)
        return watched_move(dir, parent, name) ? dir : NULL;
    dir = calloc(1, sizeof *dir);
    if (!dir || !(dir->name = strdup(name))) {
        free(dir);
        return NULL;
    }
    dir->number = number;
    dir->next = *chain_of(watched, number);
    *chain_of(watched, number) = dir;
    join_parent(dir, parent);
    if (!parent)
        watched->top = dir;
    watched->count++;
    return dir;
}

static void forget(struct watched *watched, struct watched_dir *dir)
{
    struct watched_dir **at = chain_of(watched, dir->number);

    while (*at != dir)
        at = &(*at)->next;
    *at = dir->next;
    leave_parent(dir);
    if (watched->top == dir)
        watched->top = NULL;
    watched->count--;
    (void)inotify_rm_watch(watched->inotify, dir->number); // it may be gone already
    free(dir->name);
    free(dir);
}

void watched_remove(struct watched *watched, struct watched_dir *dir)
{
    struct watched_dir *stop = dir->parent;

    for (struct watched_dir *at = dir; at != stop;) {
        if (at->children) {
            at = at->children;
            continue;
        }
        struct watched_dir *up = at == dir ? stop : at->parent;
        forget(watched, at);
        at = up;
    }
}

bool watched_path(const struct watched_dir *dir, const char *name, char *out, size_t size)
{
    size_t length = name ? strlen(name) : 0;

    for (const struct watched_dir *at = dir; at->parent; at = at->parent)
        length += strlen(at->name) + (length > 0);
    if (length >= size)
        return false;
    char *end = out + length;
    *end = '\0';
    size_t part = name ? strlen(name) : 0;
    end -= part;
    memcpy(end, name ? name : "", part);
    for (const struct watched_dir *at = dir; at->parent; at = at->parent) {
        if (*end)
            *--end = '/';
        part = strlen(at->name);
        end -= part;
        memcpy(end, at->name, part);
    }
    return true;
}
