/* SPDX-License-Identifier: Apache-2.0 */
/* fsopen(2) and its family; see fs_context.h. */
#include "engine/fs_context.h"

#include "base/auto.h"
#include "engine/kernel.h"

#include <string.h>

/* The kernel's own words about what it did not like, after errno's; see "message retrieval" in
 * fsopen(2). */
static int refused(struct error *err, int context, const char *what, const char *type)
{
    char message[256];

    error_sys(err, "%s %s", what, type);
    int code = err->sys;
    ssize_t got = read(context, message, sizeof message - 1);
    if (got <= 2)
        return -1;
    message[got] = '\0';
    message[strcspn(message, "\n")] = '\0';
    return error_sys_code(err, code, "%s %s (%s)", what, type, message + 2);
}

static int set_options(int context, const char *type, const struct fs_option *options,
                       struct error *err)
{
    for (; options->key; options++) {
        int command = options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (sys_fsconfig(context, command, options->key, options->value, 0) == 0)
            continue;
        char what[64];
        (void)snprintf(what, sizeof what, "set option '%s' of", options->key);
        return refused(err, context, what, type);
    }
    return 0;
}

int fs_context_mount(const char *type, const struct fs_option *options, int *mount_fd,
                     struct error *err)
{
    autofd context = sys_fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0 && errno == ENODEV)
        return error_set(err, ERROR_UNAVAILABLE, "this kernel has no %s", type);
    if (context < 0)
        return error_sys(err, "open a context for %s", type);
    if (set_options(context, type, options, err) < 0)
        return -1;
    if (sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return refused(err, context, "mount", type);
    int fd = sys_fsmount(context, FSMOUNT_CLOEXEC,
                         MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
    if (fd < 0)
        return refused(err, context, "mount", type);
    *mount_fd = fd;
    return 0;
}

int fs_context_change(int mount_fd, const struct fs_option *options, struct error *err)
{
    autofd context = (int)syscall(SYS_fspick, mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
    if (context < 0)
        return error_sys(err, "open a context for changing a file system");
    if (set_options(context, "the file system", options, err) < 0)
        return -1;
    if (sys_fsconfig(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
        return refused(err, context, "change", "the file system");
    return 0;
}

int fs_context_attach(int mount_fd, int dir_fd, const char *name, struct error *err)
{
    if (sys_move_mount(mount_fd, "", dir_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "mount at '%s'", name);
    return 0;
}
