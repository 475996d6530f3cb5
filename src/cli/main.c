/* SPDX-License-Identifier: Apache-2.0 */
/* Program burrow: the tree of commands has all the rest. */
#include "cli/command_tree.h"

#include <fcntl.h>
#include <unistd.h>

/* A caller may have closed stdin, stdout or stderr; nothing else may come to be fd 0, 1 or 2. */
static void fill_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDWR); // the lowest free one is this one
    }
}

int main(int argc, char **argv)
{
    fill_standard_fds();
    return tree_run(argc, argv);
}
