/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that were started ahead; see resident.h. */
#include "core/code/resident.h"

#include "base/clock.h"
#include "core/code/code_impl.h"
#include "core/sandbox/sandbox_box.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define NAME "burrow-resident"
#define ANSWER_MS 5000 // then a new interpreter is quicker

struct spare_resident resident_describe(void)
{
    const struct code_driver driver = code_language_driver(CODE_PYTHON);
    static const char *const argv[] = {"python3", "-", NAME, "waiting", NULL};

    return (struct spare_resident){
        .argv = argv, .input = driver.script, .input_length = driver.length};
}

bool resident_speaks(enum code_language language)
{
    return code_language_driver(language).script == code_language_driver(CODE_PYTHON).script;
}

static int connect_to(struct sandbox *sandbox, int *fd, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    return held ? box_connect_name(sandbox->box, NAME, fd, err) : -1;
}

/* It may be a moment old, and not listen yet. */
static int await_connection(struct sandbox *sandbox, uint64_t until, int *fd, struct error *err)
{
    int result;

    while ((result = connect_to(sandbox, fd, err)) == BOX_NOBODY_LISTENS) {
        if (clock_monotonic_ms() > until)
            return error_set(err, ERROR_UNAVAILABLE, "the interpreter made ahead does not listen");
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return result;
}

static int write_command(const struct command *command, struct buffer *out, struct error *err)
{
    const char *const *argv = command->argv;

    if (code_put(out, "name", argv[2], strlen(argv[2]), err) < 0 ||
        (argv[3] && code_put(out, "word", argv[3], strlen(argv[3]), err) < 0) ||
        (command->directory &&
         code_put(out, "directory", command->directory, strlen(command->directory), err) < 0) ||
        (command->user && code_put(out, "user", command->user, strlen(command->user), err) < 0) ||
        code_put_env(out, command->env, err) < 0)
        return -1;
    return buffer_add(out, "\n", 1, err);
}

static int await(int fd, short events, uint64_t until, struct error *err)
{
    struct pollfd ready = {.fd = fd, .events = events};
    uint64_t now = clock_monotonic_ms();

    if (now < until && poll(&ready, 1, (int)(until - now)) > 0)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "the interpreter made ahead does not answer");
}

static int send_all(int fd, const struct buffer *text, uint64_t until, struct error *err)
{
    for (size_t sent = 0; sent < text->length;) {
        if (await(fd, POLLOUT, until, err) < 0)
            return -1;
        ssize_t n = send(fd, text->data + sent, text->length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return error_set(err, ERROR_UNAVAILABLE, "the interpreter made ahead is gone");
        sent += (size_t)n;
    }
    return 0;
}

int resident_hand_over(void *data, struct sandbox *sandbox, const struct command *command,
                       struct error *err)
{
    uint64_t until = clock_monotonic_ms() + ANSWER_MS;
    autobuffer text = {0};
    autofd fd = -1;
    char answer = 0;

    (void)data;
    if (write_command(command, &text, err) < 0 || await_connection(sandbox, until, &fd, err) != 0 ||
        send_all(fd, &text, until, err) < 0 || await(fd, POLLIN, until, err) < 0)
        return -1;
    if (recv(fd, &answer, 1, MSG_DONTWAIT) == 1 && answer == 'y')
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "the interpreter made ahead cannot become that");
}
