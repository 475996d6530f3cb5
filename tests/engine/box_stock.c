/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what there is; see box_stock.h. */
#include "box_stock.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines of a file that contain every one of the words (NULL: any). */
static unsigned count_lines(const char *path, const char *first, const char *second)
{
    char line[4096];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        count += (!first || strstr(line, first)) && (!second || strstr(line, second));
    if (file)
        (void)fclose(file);
    return count;
}

/* Of this process; without user namespaces, which engines keep from box to box on purpose. */
static unsigned count_fds(void)
{
    unsigned count = 0;
    autodir dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char target[256] = "";
        (void)!readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        count += strncmp(target, "user:", 5) != 0;
    }
    return count;
}

static unsigned count_children(void)
{
    char path[64];
    char text[4096];
    unsigned count = 0;
    struct error ignored;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (fd_read_knob(AT_FDCWD, path, text, sizeof text, &ignored) == 0) {
        for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
            count++;
    }
    return count;
}

static bool note_name(const char *name, void *data)
{
    (void)fprintf(data, " %s", name);
    return true; // is somebody's: stays
}

static void note_sockets(FILE *out, int run_fd)
{
    autodir dir = fdopendir(openat(run_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            (void)fprintf(out, " %s", entry->d_name);
    }
}

static unsigned count_own_locks(void)
{
    char pid[32];
    (void)snprintf(pid, sizeof pid, " %d ", (int)getpid());
    return count_lines("/proc/locks", "FLOCK", pid);
}

char *take_stock(struct engine *engine)
{
    char *text = NULL;
    size_t size = 0;
    struct error ignored = {0};
    FILE *out = open_memstream(&text, &size);

    (void)fprintf(out, "mounts %u children %u locks %u groups",
                  count_lines("/proc/self/mountinfo", engine->data_dir, NULL), count_children(),
                  count_own_locks());
    (void)cgroup_sweep(engine->cgroups, note_name, out, &ignored);
    (void)fprintf(out, " scratches");
    (void)volume_sweep(engine->volume, note_name, out, &ignored);
    (void)fprintf(out, " sockets");
    note_sockets(out, engine->run_fd);
    (void)fprintf(out, " fds %u", count_fds());
    (void)fclose(out);
    return text;
}

static void find_loops(FILE *out, const char *data_dir)
{
    autodir dir = opendir("/sys/block");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[512];
        char text[4096];
        struct error ignored;
        (void)snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
        if (strncmp(entry->d_name, "loop", 4) == 0 &&
            fd_read_knob(AT_FDCWD, path, text, sizeof text, &ignored) == 0 &&
            strstr(text, data_dir))
            (void)fprintf(out, "loop device %s; ", entry->d_name);
    }
}

char *find_leftovers(const char *data_dir, const char *engine_name, char **paths)
{
    char *text = NULL;
    size_t size = 0;
    char path[128];
    FILE *out = open_memstream(&text, &size);

    unsigned mounts = count_lines("/proc/self/mountinfo", data_dir, NULL);
    if (mounts)
        (void)fprintf(out, "%u mounts; ", mounts);
    find_loops(out, data_dir);
    for (; *paths; paths++) {
        if (access(*paths, F_OK) == 0)
            (void)fprintf(out, "%s; ", *paths);
    }
    (void)snprintf(path, sizeof path, "/run/burrow/%s", engine_name);
    if (access(path, F_OK) == 0)
        (void)fprintf(out, "%s; ", path);
    if (access(data_dir, F_OK) == 0)
        (void)fprintf(out, "%s; ", data_dir);
    if (count_children())
        (void)fprintf(out, "%u children; ", count_children());
    if (count_own_locks())
        (void)fprintf(out, "%u locks; ", count_own_locks());
    (void)fclose(out);
    return text;
}
