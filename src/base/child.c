/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are started; see child.h. All our files but those three are closed on exec. */
#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>

static int add_file(posix_spawn_file_actions_t *actions, int fd, int file)
{
    if (file == CHILD_NOTHING)
        return posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    return posix_spawn_file_actions_adddup2(actions, file, fd);
}

static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

int child_start(const struct child *child, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *const empty[] = {NULL};
    int code = posix_spawn_file_actions_init(&actions);

    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (!code) {
        code = set_signals(&attributes);
        for (int fd = 0; fd < 3 && !code; fd++)
            code = add_file(&actions, fd, child->files[fd]);
        if (!code)
            code = posix_spawn(pid, child->program, &actions, &attributes, child->argv,
                               child->env ? child->env : empty);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}
