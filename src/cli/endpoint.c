/* SPDX-License-Identifier: Apache-2.0 */
/* Which server a command talks to; see endpoint.h. */
#include "cli/endpoint.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/data_dir.h"
#include "base/mem.h"
#include "cli/contexts.h"
#include "cli/exit.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000
#define STEP_MS 20
#define QUIET_TIME "10m" // a server that was started here ends so long after its last use

// ---- Ctrl-C ----

static int cancel_pipe[2] = {-1, -1};
static volatile sig_atomic_t n_signals;

static void on_signal(int number)
{
    int saved = errno;

    if (n_signals++ > 0)
        _exit(EXIT_SIGNAL + number);
    (void)!write(cancel_pipe[1], "x", 1);
    errno = saved;
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

int endpoint_cancel_fd(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    if (cancel_pipe[0] >= 0 || pipe2(cancel_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return cancel_pipe[0];
    for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++) {
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(ending_signals[i], &action, NULL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); // a file that may not become so large is an error as others
    return cancel_pipe[0];
}

bool endpoint_is_cancelled(void)
{
    return n_signals > 0;
}

void endpoint_give_signals_back(void)
{
    (void)signal(SIGXFSZ, SIG_DFL);
    for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++) {
        struct sigaction before;
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler == on_signal)
            (void)signal(ending_signals[i], SIG_DFL);
    }
}

// ---- the local server ----

const char *endpoint_data_dir(const struct invocation *invocation)
{
    static char own[PATH_MAX];
    const char *variable = getenv("BURROW_DATA"), *home = getenv("HOME");
    const char *named = invocation->data_dir ? invocation->data_dir : variable;
    struct error ignored; // what has no absolute name is told of where it is opened

    if (named && *named) {
        (void)data_dir_resolve(&named, own, &ignored);
        return named;
    }
    if (geteuid() == 0 || !home)
        return DATA_DIR_DEFAULT;
    (void)snprintf(own, sizeof own, "%s/.local/share/burrow", home);
    autofree char *socket_path = xasprintf("%s/burrow.sock", own);
    return access(socket_path, F_OK) == 0 ? own : DATA_DIR_DEFAULT;
}

static char *socket_url(const char *data_dir)
{
    return xasprintf("unix:%s/burrow.sock", data_dir);
}

static int open_client(struct invocation *invocation, const char *url, const char *key,
                       struct burrow_error *err)
{
    const struct burrow_options options = {
        .url = url,
        .api_key = key ? key : "",
        .cancel_fd = endpoint_cancel_fd(),
        .user_agent = "burrow/" BURROW_VERSION,
        .timeout_ms = 600000,
    };

    return burrow_open(&options, &invocation->client, err);
}

/* Whether somebody listens. */
static bool has_listener(const char *data_dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    autofd directory = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/burrow.sock",
                   directory);
    return directory >= 0 && fd >= 0 &&
           (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN);
}

/* Whether one has the data directory: it may still be starting, or stopping. */
static bool has_server(const char *data_dir)
{
    autofree char *path = xasprintf("%s/server.lock", data_dir);
    autofd lock = open(path, O_RDONLY | O_CLOEXEC);

    return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The caller frees it; NULL where there is none. */
static char *server_program(void)
{
    static const char *const places[] = {"", "../libexec/burrow/"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
        autofree char *path =
            xasprintf("%.*s%sburrow-server", (int)(slash + 1 - self), self, places[i]);
        if (access(path, X_OK) == 0)
            return take(path);
    }
    return NULL;
}

/* In a session of its own, so that no Ctrl-C of ours reaches it; what it logs goes to a file. */
static pid_t spawn_server(const char *program, const char *data_dir)
{
    autofree char *log = xasprintf("%s/server.log", data_dir);
    pid_t child = fork();

    if (child != 0)
        return child;
    (void)setsid();
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    (void)dup2(file >= 0 ? file : nothing, STDERR_FILENO);
    for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
        (void)signal(ending_signals[i], SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execl(program, "burrow-server", "serve", "--data", data_dir, "--listen", "127.0.0.1:0",
                "--end-when-quiet", QUIET_TIME, "--stand-in", "yes", (char *)NULL);
    _exit(127);
}

static int wait_for_server(pid_t child, const char *data_dir, struct burrow_error *err)
{
    uint64_t until = clock_monotonic_ms() + START_MS;
    bool is_over = false; // maybe since another server was quicker, which is waited for then
    int status;

    while (clock_monotonic_ms() < until) {
        struct pollfd cancel = {.fd = endpoint_cancel_fd(), .events = POLLIN};
        if (has_listener(data_dir))
            return 0;
        is_over |= waitpid(child, &status, WNOHANG) == child;
        if (is_over && !has_server(data_dir) && !has_listener(data_dir))
            return say_fail(err, BURROW_UNREACHABLE,
                            "the server that was started here ended at once: '%s/server.log' says "
                            "why",
                            data_dir);
        if (poll(&cancel, 1, STEP_MS) > 0)
            return say_fail(err, BURROW_CANCELLED, "interrupted");
    }
    return say_fail(err, BURROW_TIMEOUT,
                    "the server that was started here is not ready: see '%s/server.log'", data_dir);
}

static int start_server(const char *data_dir, struct burrow_error *err)
{
    autofree char *program = server_program();

    if (geteuid() != 0) {
        (void)say_fail(err, BURROW_UNREACHABLE,
                       "no server is configured, and starting one here needs root");
        (void)snprintf(err->remedy, sizeof err->remedy,
                       "set BURROW_URL, 'burrow context add' one, or use sudo");
        return -1;
    }
    if (!program)
        return say_fail(
            err, BURROW_LOCAL,
            "the server's program, burrow-server, is not beside burrow; install burrow as "
            "a whole, or set BURROW_URL");
    if (mkdir(data_dir, 0700) < 0 && errno != EEXIST)
        return say_fail_sys(err, "make the data directory '%s'", data_dir);
    say_note("starting a server in the background (data in '%s'); it ends after " QUIET_TIME
             " without use and sandboxes",
             data_dir);
    pid_t child = spawn_server(program, data_dir);
    if (child < 0)
        return say_fail_sys(err, "start the server");
    return wait_for_server(child, data_dir, err);
}

// ---- choosing ----

static int connect_locally(struct invocation *invocation, enum endpoint_patience patience,
                           struct burrow_error *err)
{
    const char *data_dir = endpoint_data_dir(invocation);
    autofree char *url = socket_url(data_dir);
    struct burrow_error missing = {0};
    struct error error = {0};

    if (data_dir_check(data_dir, &error) < 0) // who listens there could be anybody
        return say_fail(err, BURROW_DENIED, "%s", error.text);
    if (open_client(invocation, url, invocation->api_key, err) < 0) // its owner needs no key
        return -1;
    if (burrow_connect(invocation->client, &missing) == 0)
        return 0; // the first request uses the connection
    burrow_close(take(invocation->client));
    if (missing.kind == BURROW_CANCELLED)
        return say_fail(err, BURROW_CANCELLED, "%s", missing.text);
    if (patience == ENDPOINT_LOOK)
        return say_fail(err, BURROW_UNREACHABLE, "no local server is running");
    if (start_server(data_dir, err) < 0)
        return -1;
    return open_client(invocation, url, invocation->api_key, err);
}

/* That of the environment is for the server that the environment names, where it names one: another one does not get to know it. */
static const char *choose_key(const struct invocation *invocation)
{
    const char *variable = getenv("BURROW_URL"), *url = invocation->url;
    bool is_another = invocation->context || (url && variable && strcmp(url, variable) != 0);

    if (invocation->api_key)
        return invocation->api_key;
    return variable && *variable && is_another ? NULL : getenv("BURROW_API_KEY");
}

int endpoint_connect(struct invocation *invocation, enum endpoint_patience patience,
                     struct burrow_error *err)
{
    const char *url = invocation->url, *key = invocation->api_key;
    const char *usual_key = choose_key(invocation);
    autocontext context = {0};

    if (!url && !invocation->context && !invocation->data_dir)
        url = getenv("BURROW_URL");
    if (url && *url)
        return open_client(invocation, url, usual_key, err);
    if (!invocation->data_dir) {
        int found = contexts_find(invocation->context, &context, err);
        if (found < 0)
            return -1;
        if (found > 0) // what is said now comes before what is kept
            return open_client(invocation, context.url,
                               !key && context.key ? context.key : usual_key, err);
    }
    return connect_locally(invocation, patience, err);
}

int endpoint_is_named(const struct invocation *invocation, struct burrow_error *err)
{
    const char *variable = getenv("BURROW_URL");
    autocontext context = {0};

    if (invocation->url || invocation->context)
        return 1;
    if (invocation->data_dir)
        return 0;
    return variable && *variable ? 1 : contexts_find(NULL, &context, err);
}
