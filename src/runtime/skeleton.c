/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of every runtime's root; see skeleton.h. */
#include "runtime/skeleton.h"

#include "base/fd.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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
