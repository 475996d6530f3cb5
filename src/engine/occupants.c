/* SPDX-License-Identifier: Apache-2.0 */
/* Who lives in the boxes of a data directory; see occupants.h. */
#include "engine/occupants.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/quote.h"
#include "engine/pid_one.h"
#include "engine/slot.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMED = 3, NAME = 20 };

struct occupant {
    unsigned slot;
    long init, guest, owner; // process ids; 0: none seen
    char guest_name[NAME];
};

struct occupants {
    struct occupant *items;
    size_t count;
};

static bool read_proc(int proc_fd, const char *pid, const char *file, char *text, size_t size)
{
    char path[64];
    struct error ignored = {0};

    (void)snprintf(path, sizeof path, "%.16s/%s", pid, file);
    return fd_read_knob(proc_fd, path, text, size, &ignored) >= 0;
}

/* The slot of the box that a process is in, from a line such as "0::/burrow-fe00-5501/17/run/1". */
static bool find_slot(const char *cgroups, const char *group, unsigned *slot)
{
    size_t length = strlen(group);
    char name[16];

    for (const char *at = cgroups; (at = strstr(at, group)); at += length) {
        if (at == cgroups || at[-1] != '/' || at[length] != '/')
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + length + 1, "/\n"),
                       at + length + 1);
        return slot_parse(name, slot);
    }
    return false;
}

static struct occupant *occupant_of(struct occupants *all, unsigned slot)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].slot == slot)
            return &all->items[i];
    all->items = xrealloc(all->items, all->count + 1, sizeof *all->items);
    all->items[all->count] = (struct occupant){.slot = slot};
    return &all->items[all->count++];
}

static long number_behind(const char *status, const char *field)
{
    const char *at = strstr(status, field);
    return at ? strtol(at + strlen(field), NULL, 10) : 0;
}

static void look_at(int proc_fd, const char *pid, const char *group, struct occupants *all)
{
    char text[4096];
    unsigned slot = 0;

    if (!read_proc(proc_fd, pid, "cgroup", text, sizeof text) || !find_slot(text, group, &slot) ||
        !read_proc(proc_fd, pid, "status", text, sizeof text))
        return;
    struct occupant *occupant = occupant_of(all, slot);
    if (pid_one_is(text)) {
        occupant->init = atol(pid);
        occupant->owner = number_behind(text, "\nPPid:");
    } else if (!occupant->guest) {
        occupant->guest = atol(pid);
        (void)read_proc(proc_fd, pid, "comm", occupant->guest_name, NAME);
        quote_scrub(occupant->guest_name); // it chooses it
    }
}

/* A box that its owner has left belongs to whoever collects orphans. */
static void add_owner(int proc_fd, const struct occupant *occupant, char *text, size_t size)
{
    char pid[24], name[NAME] = "";

    (void)snprintf(pid, sizeof pid, "%ld", occupant->owner);
    if (occupant->owner > 1 && read_proc(proc_fd, pid, "comm", name, sizeof name) &&
        strncmp(name, "burrow", 6) == 0)
        (void)snprintf(text + strlen(text), size - strlen(text), " of process %s ('%s')", pid,
                       name);
}

static void add_occupant(int proc_fd, const struct occupant *occupant, char *text, size_t size)
{
    size_t used = strlen(text);
    const char *comma = used ? ", " : "";

    if (occupant->guest)
        (void)snprintf(text + used, size - used, "%sprocess %ld ('%s')", comma, occupant->guest,
                       occupant->guest_name);
    else
        (void)snprintf(text + used, size - used, "%san idle one, process %ld", comma,
                       occupant->init);
    add_owner(proc_fd, occupant, text, size);
}

unsigned occupants_describe(const char *group, char *text, size_t size)
{
    autodir proc = opendir("/proc");
    struct occupants all = {0};
    struct dirent *entry;

    *text = '\0';
    while (proc && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]))
            look_at(dirfd(proc), entry->d_name, group, &all);
    for (size_t i = 0; i < all.count && i < MAX_NAMED; i++)
        add_occupant(dirfd(proc), &all.items[i], text, size);
    if (all.count > MAX_NAMED)
        (void)snprintf(text + strlen(text), size - strlen(text), " and %zu more",
                       all.count - MAX_NAMED);
    free(all.items);
    return (unsigned)all.count;
}
