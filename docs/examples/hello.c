/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a sandbox of its own: cc hello.c $(pkg-config --cflags --libs libburrow) && ./a.out uname -a */
#include <burrow.h>

#include <stdio.h>
#include <unistd.h>

static int on_output(void *context, int stream, const void *data, size_t length)
{
    (void)context;
    return write(stream, data, length) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct burrow_client *client = NULL;
    struct burrow_result result;
    struct burrow_error err;
    const char *const usual[] = {"echo", "hello from a sandbox", NULL};
    const struct burrow_command command = {.argv =
                                               argc > 1 ? (const char *const *)argv + 1 : usual};

    if (burrow_open(NULL, &client, &err) < 0 ||
        burrow_run(client, &command, on_output, NULL, &result, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        burrow_close(client);
        return 125;
    }
    burrow_close(client);
    return result.exit_code;
}
