/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a file open; see holders.h. */
#include "runtime/holders.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/quote.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMED 3
#define INIT "burrow-in" // of burrow-init, run from memory: a name has fifteen bytes

struct search {
    int proc_fd;
    struct stat file;
    int own_fd; // not meant, of this process
    char *text;
    size_t size;
    unsigned count;
};

static bool holds(const struct search *search, const char *pid)
{
    char path[64];
    bool is_own = atol(pid) == getpid(), is_found = false;

    (void)snprintf(path, sizeof path, "%.16s/fd", pid);
    int dir_fd = openat(search->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir fds = dir_fd < 0 ? NULL : fdopendir(dir_fd);
    for (struct dirent *entry; fds && !is_found && (entry = readdir(fds));) {
        struct stat info;
        is_found = isdigit((unsigned char)entry->d_name[0]) &&
                   !(is_own && atoi(entry->d_name) == search->own_fd) &&
                   fstatat(dir_fd, entry->d_name, &info, 0) == 0 &&
                   info.st_ino == search->file.st_ino && info.st_dev == search->file.st_dev;
    }
    return is_found;
}

static void read_name(const struct search *search, const char *pid, char name[20])
{
    char path[64];
    struct error ignored = {0};

    (void)snprintf(path, sizeof path, "%.16s/comm", pid);
    if (fd_read_knob(search->proc_fd, path, name, 20, &ignored) < 0)
        (void)snprintf(name, 20, "?");
    name[strcspn(name, "\n")] = '\0';
    quote_scrub(name);
}

static void look(struct search *search, const char *pid, bool is_init)
{
    char name[20] = "";

    read_name(search, pid, name);
    if ((strstr(name, INIT) != NULL) != is_init || !holds(search, pid))
        return;
    size_t used = strlen(search->text);
    if (search->count++ < NAMED)
        (void)snprintf(search->text + used, search->size - used, "%sprocess %.16s ('%s')",
                       used ? ", " : "", pid, name);
}

static void look_at_all(struct search *search, bool is_init)
{
    autodir proc = opendir("/proc");

    if (!proc)
        return;
    search->proc_fd = dirfd(proc);
    for (struct dirent *entry; (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]))
            look(search, entry->d_name, is_init);
}

unsigned holders_describe(int fd, char *text, size_t size)
{
    struct search search = {.own_fd = fd, .text = text, .size = size};

    *text = '\0';
    if (fstat(fd, &search.file) < 0)
        return 0;
    look_at_all(&search, false);
    if (search.count == 0)
        look_at_all(&search, true);
    size_t used = strlen(text);
    if (search.count > NAMED)
        (void)snprintf(text + used, size - used, " and %u more", search.count - NAMED);
    return search.count;
}
