/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of every runtime's root; see skeleton.h. */
#include "runtime/skeleton.h"

#include "base/fd.h"
#include "base/mem.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_USER 1000 // of a layer's own, beside 'burrow'
#define USER_LINE "burrow:x:1000:1000:burrow:/home/burrow:/bin/bash\n"
#define GROUP_LINE "burrow:x:1000:\n"
#define SHADOW_LINE "burrow:*:19000:0:99999:7:::\n"

static const struct tree_entry users[] = {
    {"etc/passwd", S_IFREG | 0644,
     "root:x:0:0:root:/root:/bin/bash\n" USER_LINE
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", S_IFREG | 0644,
     "root:x:0:\nadm:x:4:\ntty:x:5:\nmail:x:8:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:"
     "\n" GROUP_LINE "nogroup:x:65534:\n"},
    {"etc/shadow", S_IFREG | 0640,
     "root:*:19000:0:99999:7:::\n" SHADOW_LINE "nobody:*:19000:0:99999:7:::\n"},
    {"etc/gshadow", S_IFREG | 0640, "root:*::\nburrow:*::\nnogroup:*::\n"},
    {"etc/nsswitch.conf", S_IFREG | 0644,
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
     "protocols: files\nservices: files\nethers: files\nrpc: files\n"},
    {"etc/shells", S_IFREG | 0644, "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n"},
    {"etc/profile", S_IFREG | 0644,
     "# System-wide settings of login shells.\n"
     "PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\n"
     "export PATH\n"
     "PS1='\\u@\\h:\\w\\$ '\n"},
    {"etc/bash.bashrc", S_IFREG | 0644,
     "# System-wide settings of interactive shells.\n"
     "[ -z \"$PS1\" ] && return\n"
     "shopt -s checkwinsize\n"
     "PS1='\\u@\\h:\\w\\$ '\n"},
    {"etc/environment", S_IFREG | 0644, ""},
    {0},
};

static const struct tree_entry common[] = {
    {"dev", S_IFDIR | 0755, NULL},
    {"proc", S_IFDIR | 0755, NULL},
    {"sys", S_IFDIR | 0755, NULL},
    {"run", S_IFDIR | 0755, NULL},
    {"run/lock", S_IFDIR | 01777, NULL},
    {"tmp", S_IFDIR | 01777, NULL},
    {"var/tmp", S_IFDIR | 01777, NULL},
    {"var/lib", S_IFDIR | 0755, NULL},
    {"var/log", S_IFDIR | 0755, NULL},
    {"var/cache", S_IFDIR | 0755, NULL},
    {"root", S_IFDIR | 0700, NULL},
    {"home", S_IFDIR | 0755, NULL},
    {"home/burrow", S_IFDIR | 0755, NULL, 1000},
    {"workspace", S_IFDIR | 01777, NULL},
    {"etc/hosts", S_IFREG | 0644,
     "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
    {"etc/hostname", S_IFREG | 0644, "burrow\n"},
    {"etc/resolv.conf", S_IFREG | 0644, "nameserver 127.0.0.1\n"},
    {"etc/machine-id", S_IFREG | 0644, ""},
    {0},
};

static int append_line(int root_fd, const char *path, const char *line, struct error *err)
{
    autofd fd = openat(root_fd, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (fd_write_all(fd, line, strlen(line)) < 0)
        return error_sys(err, "write '%s'", path);
    return 0;
}

/* Behind the first line, which is root's: of several names for one number, programs show the first. */
static int insert_line(int root_fd, const char *path, const char *line, struct error *err)
{
    autobuffer text = {.maximum = 1 << 20};
    autofd fd = openat(root_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "read '%s'", path);
    const char *end = text.length ? memchr(text.data, '\n', text.length) : NULL;
    size_t first = end ? (size_t)(end + 1 - text.data) : 0;
    if (lseek(fd, (off_t)first, SEEK_SET) < 0 || fd_write_all(fd, line, strlen(line)) < 0 ||
        fd_write_all(fd, text.data + first, text.length - first) < 0)
        return error_sys(err, "write '%s'", path);
    return 0;
}

int skeleton_add_user(int root_fd, struct error *err)
{
    if (append_line(root_fd, "etc/passwd", USER_LINE, err) < 0 ||
        append_line(root_fd, "etc/group", GROUP_LINE, err) < 0)
        return -1;
    return append_line(root_fd, "etc/shadow", SHADOW_LINE, err);
}

int skeleton_write_users(int root_fd, struct error *err)
{
    return tree_write(root_fd, users, err);
}

int skeleton_write(int root_fd, struct error *err)
{
    static const char *const emptied[] = {"dev", "run", "tmp", "var/tmp"};

    for (size_t i = 0; i < ARRAY_SIZE(emptied); i++)
        if (tree_empty(root_fd, emptied[i], err) < 0)
            return -1;
    return tree_write(root_fd, common, err);
}

// The file as the layers show it, into the top one.
static int bring_up(int root_fd, const char *top, const char *const *layers, size_t n_layers,
                    const char *path, mode_t mode, struct error *err)
{
    autobuffer text = {.maximum = 1 << 20};

    if (faccessat(root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    for (size_t i = 0; i < n_layers; i++) {
        autofree char *full = xasprintf("%s/%s/rootfs/%s", top, layers[i], path);
        autofd fd = open(full, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (fd_read_buffer(fd, &text, err) < 0)
            return error_wrap(err, "read '%s'", full);
        const struct tree_entry entries[] = {
            {path, S_IFREG | mode, text.data ? text.data : ""},
            {0},
        };
        return tree_write(root_fd, entries, err);
    }
    return error_set(err, ERROR_INVALID, "it stands on no users: there is no '/%s'", path);
}

static int add_one(int root_fd, const char *name, unsigned id, struct error *err)
{
    autofree char *user = xasprintf("%s:x:%u:%u:%s:/home/%s:/bin/bash\n", name, id, id, name, name);
    autofree char *group = xasprintf("%s:x:%u:\n", name, id);
    autofree char *shadow = xasprintf("%s:*:19000:0:99999:7:::\n", name);
    autofree char *home = xasprintf("home/%s", name);
    const struct tree_entry entries[] = {{home, S_IFDIR | 0755, NULL, id}, {0}};

    if (insert_line(root_fd, "etc/passwd", user, err) < 0 ||
        insert_line(root_fd, "etc/group", group, err) < 0 ||
        insert_line(root_fd, "etc/shadow", shadow, err) < 0)
        return -1;
    return tree_write(root_fd, entries, err);
}

int skeleton_add_users(int root_fd, const char *top, const char *const *layers, size_t n_layers,
                       const char **added, struct error *err)
{
    if (bring_up(root_fd, top, layers, n_layers, "etc/passwd", 0644, err) < 0 ||
        bring_up(root_fd, top, layers, n_layers, "etc/group", 0644, err) < 0 ||
        bring_up(root_fd, top, layers, n_layers, "etc/shadow", 0640, err) < 0)
        return -1;
    for (unsigned id = FIRST_USER; *added; added++, id++)
        if (add_one(root_fd, *added, id, err) < 0)
            return -1;
    return 0;
}
