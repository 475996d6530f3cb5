/* SPDX-License-Identifier: Apache-2.0 */
/* The floor as a program: floor [--usr] ROOT COMMAND [ARGUMENT ...], everything made and removed in
 * one run. */
#include "floor.h"

#include <string.h>
#include <sys/wait.h>

static int run(const char *root, bool has_host_usr, char **argv, struct error *err)
{
    autoptr(floor) floor = NULL;
    int status = 0;
    if (floor_new(root, has_host_usr, &floor, err) < 0 || floor_fill_network(floor, err) < 0 ||
        floor_run(floor, (const char *const *)argv, &status, err) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    bool has_host_usr = argc > 1 && strcmp(argv[1], "--usr") == 0;
    struct error err = {0};

    argc -= has_host_usr;
    argv += has_host_usr;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: floor [--usr] ROOT COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    int code = run(argv[1], has_host_usr, argv + 2, &err);
    if (code < 0)
        (void)fprintf(stderr, "floor: %s\n", err.text);
    return code < 0 ? 125 : code;
}
