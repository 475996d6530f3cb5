/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime that is this machine's own /usr, seen read-only, with an /etc that holds what
 * programs need and nothing that is the machine's own business: no keys, no accounts, no /home,
 * /root or /var.
 */
#include "runtime/make.h"
#include "runtime/skeleton.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Below /etc; patterns. What is here is world-readable on every system and the same for everybody.
static const char *const copied[] = {
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d",    "ca-certificates.conf",
    "localtime",   "timezone",   "mime.types",      "services",
    "protocols",   "magic",      "debian_version",  "os-release",
    "inputrc",     "perl",       "ssl/openssl.cnf", "python3*",
};

static int copy_settings(int slash_fd, int root_fd, struct error *err)
{
    int result = 0;

    for (size_t i = 0; i < ARRAY_SIZE(copied) && result == 0; i++) {
        char pattern[128];
        glob_t found = {0};

        (void)snprintf(pattern, sizeof pattern, "/etc/%s", copied[i]);
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t j = 0; j < found.gl_pathc && result == 0; j++)
                result = tree_copy_public(slash_fd, root_fd, found.gl_pathv[j] + 1, err);
        globfree(&found);
    }
    return result;
}

// Those of manual pages are most of them, and there are no manual pages in a box.
static int copy_alternatives(int slash_fd, int root_fd, struct error *err)
{
    autodir links = opendir("/etc/alternatives");

    if (!links)
        return errno == ENOENT ? 0 : error_sys(err, "list '/etc/alternatives'");
    for (struct dirent *entry; (entry = readdir(links));) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "etc/alternatives/%s", entry->d_name);
        if (entry->d_name[0] != '.' && !(dot && strcmp(dot, ".gz") == 0) &&
            tree_copy_public(slash_fd, root_fd, path, err) < 0)
            return -1;
    }
    return 0;
}

// ---- certificates ----

// Links into /usr/share are certificates that everybody has; files of /etc/ssl/certs may be the
// machine's own.
static bool is_public_certificate(int certs_fd, const char *name, int out_fd)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(certs_fd, name, target, sizeof target - 1);

    if (length < 0)
        return strcmp(name, "ca-certificates.crt") == 0;
    target[length] = '\0';
    if (strncmp(target, "/usr/", 5) == 0)
        return true;
    return !strchr(target, '/') && faccessat(out_fd, target, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Names by hash point at names of files, so the second round takes what points at the first's.
static int copy_certificates(int slash_fd, int root_fd, struct error *err)
{
    static const struct tree_entry place[] = {{"etc/ssl/certs", S_IFDIR | 0755, NULL}, {0}};

    if (tree_write(root_fd, place, err) < 0)
        return -1;
    autofd out_fd = openat(root_fd, place[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out_fd < 0)
        return error_sys(err, "open '%s'", place[0].path);
    for (int round = 0; round < 2; round++) {
        autodir certs = opendir("/etc/ssl/certs");
        if (!certs)
            return errno == ENOENT ? 0 : error_sys(err, "list '/etc/ssl/certs'");
        for (struct dirent *entry; (entry = readdir(certs));) {
            char path[PATH_MAX];
            (void)snprintf(path, sizeof path, "etc/ssl/certs/%s", entry->d_name);
            if (entry->d_name[0] != '.' &&
                is_public_certificate(dirfd(certs), entry->d_name, out_fd) &&
                tree_copy_public(slash_fd, root_fd, path, err) < 0)
                return -1;
        }
    }
    return 0;
}

// ---- the root ----

// Where the machine has merged /usr these are links; where not, they are shown as /usr is.
static int place_directory(struct making *making, const char *path, struct error *err)
{
    struct tree_entry entries[] = {{path + 1, S_IFDIR | 0755, NULL}, {0}};
    char target[PATH_MAX];
    struct stat info;

    if (lstat(path, &info) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "look at '%s'", path);
    if (S_ISLNK(info.st_mode)) {
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            return error_sys(err, "read link '%s'", path);
        target[length] = '\0';
        entries[0].mode = S_IFLNK;
        entries[0].text = target;
    } else {
        making_bind(making, path, path);
    }
    return tree_write(making->root_fd, entries, err);
}

int make_host(struct making *making, struct error *err)
{
    static const char *const places[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                         "/lib32", "/lib64", "/libx32"};
    autofd slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (slash_fd < 0)
        return error_sys(err, "open '/'");
    making_tell(making, "copying public settings", 100);
    // Looked at first: what changes while we copy makes the result stale, never silently old.
    making_watch(making, "/var/lib/dpkg/status");
    making_watch(making, "/etc/ld.so.cache");
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (place_directory(making, places[i], err) < 0)
            return -1;
    if (copy_settings(slash_fd, making->root_fd, err) < 0 ||
        copy_alternatives(slash_fd, making->root_fd, err) < 0 ||
        copy_certificates(slash_fd, making->root_fd, err) < 0 ||
        skeleton_write_users(making->root_fd, err) < 0)
        return -1;
    return skeleton_write(making->root_fd, err);
}
