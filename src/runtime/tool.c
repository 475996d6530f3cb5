/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of the machine; see tool.h. */
#include "runtime/tool.h"

#include "base/clock.h"
#include "base/fd.h"
#include "runtime/tool_root.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TICK_MS 100
#define TOOL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

int tool_find(const char *name, char *path, size_t size)
{
    for (const char *dir = TOOL_PATH; *dir; dir += strspn(dir, ":")) {
        size_t length = strcspn(dir, ":");
        (void)snprintf(path, size, "%.*s/%s", (int)length, dir, name);
        if (access(path, X_OK) == 0)
            return 0;
        dir += length;
    }
    return -1;
}

// ---- in the child ----

__attribute__((noreturn)) static void die(const char *what)
{
    dprintf(2, "burrow: %s: %s\n", what, strerror(errno));
    _exit(125);
}

// Ends with the parent, also when that is already gone.
static void follow_parent(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(125);
}

// Proxies are the only settings of the caller that matter to a download.
static char **clean_environment(void)
{
    static const char *const kept[] = {"http_proxy", "https_proxy", "no_proxy",
                                       "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"};
    static char proxies[ARRAY_SIZE(kept)][512];
    static char *env[16] = {"PATH=" TOOL_PATH, "HOME=/root", "LC_ALL=C.UTF-8",
                            "DEBIAN_FRONTEND=noninteractive", NULL};
    size_t used = 4;

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        const char *value = getenv(kept[i]);
        if (value && (size_t)snprintf(proxies[i], sizeof proxies[i], "%s=%s", kept[i], value) <
                         sizeof proxies[i])
            env[used++] = proxies[i];
    }
    return env;
}

static void execute(const struct tool_spec *spec)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_DFL);
    (void)umask(022);
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    (void)execve(spec->argv[0], (char **)spec->argv, clean_environment());
    die(spec->argv[0]);
}

// PID 1 of the namespace: reaps everybody, ends with the program, and the kernel kills the rest.
// It cannot see its parent; `alive_fd` hangs up when that died before the death signal was asked
// for.
static void serve_namespace(const struct tool_spec *spec, int alive_fd)
{
    struct pollfd alive = {.fd = alive_fd, .events = POLLIN};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (poll(&alive, 1, 0) != 0)
        _exit(125);
    const char *fault = spec->root ? tool_root_enter(spec->root) : NULL;
    if (fault)
        die(fault);
    if (!spec->root && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        die("mount /proc");
    pid_t program = fork();
    if (program < 0)
        die("fork");
    if (program == 0)
        execute(spec);
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == program)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        if (pid < 0 && errno != EINTR)
            _exit(125);
    }
}

static void run_child(const struct tool_spec *spec, pid_t parent, int input_fd, int output_fd)
{
    follow_parent(parent);
    if (dup2(input_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0)
        _exit(125);
    // The caller may be a server: its sockets and locks must not stay open for as long as the program runs.
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    (void)setsid();
    if (chdir("/") < 0)
        die("chdir /");
    if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
        die("unshare");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("make mounts private");
    if (spec->bind_from && mount(spec->bind_from, spec->bind_to, NULL, MS_BIND, NULL) < 0)
        die(spec->bind_to);
    int alive[2], status = 0;
    if (pipe2(alive, O_CLOEXEC) < 0)
        die("make a pipe");
    pid_t init = fork();
    if (init < 0)
        die("fork");
    if (init == 0) {
        (void)close(alive[1]);
        serve_namespace(spec, alive[0]);
    }
    (void)close(1); // so that the output ends when the namespace does
    (void)close(2);
    while (waitpid(init, &status, 0) < 0 && errno == EINTR)
        continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// ---- in the caller ----

struct lines {
    const struct tool_spec *spec;
    char line[1024]; // the rest of longer lines is dropped
    size_t length;
};

static void feed_lines(struct lines *lines, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (data[i] != '\n' && data[i] != '\r') {
            if (lines->length + 1 < sizeof lines->line)
                lines->line[lines->length++] = data[i];
            continue;
        }
        lines->line[lines->length] = '\0';
        if (lines->length && lines->spec->on_line)
            lines->spec->on_line(lines->spec->data, lines->line);
        lines->length = 0;
    }
}

// Reads until the output ends. 1 when cancelled, or stopped by who looks at it: the child is killed then, and the output read to
// its end.
static int relay(const struct tool_spec *spec, int output_fd, pid_t child)
{
    struct lines lines = {.spec = spec};
    struct pollfd polls[] = {{.fd = output_fd, .events = POLLIN},
                             {.fd = spec->cancel_fd, .events = POLLIN}};
    char chunk[8192];
    int is_cancelled = 0;

    for (uint64_t ticked_ms = clock_monotonic_ms();;) {
        if (poll(polls, 2, spec->on_tick && !is_cancelled ? TICK_MS : -1) < 0 && errno != EINTR)
            return is_cancelled;
        bool is_stopped = false;
        if (spec->on_tick && !is_cancelled && clock_monotonic_ms() - ticked_ms >= TICK_MS) {
            is_stopped = spec->on_tick(spec->data) != 0;
            ticked_ms = clock_monotonic_ms();
        }
        if (polls[1].revents || is_stopped) {
            polls[1].fd = -1;
            polls[1].revents = 0;
            is_cancelled = 1;
            (void)kill(child, SIGKILL);
        }
        if (!polls[0].revents)
            continue;
        ssize_t got = read(output_fd, chunk, sizeof chunk);
        if (got <= 0)
            return is_cancelled;
        if (spec->log_fd >= 0)
            (void)fd_write_all(spec->log_fd, chunk,
                               (size_t)got); // a full disk shows in the program itself
        if (!is_cancelled)
            feed_lines(&lines, chunk, (size_t)got);
    }
}

static int open_input(const char *text, struct error *err)
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "make a memory file");
    if (text && (fd_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
        error_sys(err, "write a memory file");
        (void)close(fd);
        return -1;
    }
    return fd;
}

int tool_run(const struct tool_spec *spec, struct error *err)
{
    const char *name =
        strrchr(spec->argv[0], '/') ? strrchr(spec->argv[0], '/') + 1 : spec->argv[0];
    pid_t self = getpid();
    int ends[2], status = 0;
    autofd input = open_input(spec->input, err);

    if (input < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd output = ends[0];
    autofd child_end = ends[1];
    pid_t child = fork();
    if (child < 0)
        return error_sys(err, "start %s", name);
    if (child == 0)
        run_child(spec, self, input, child_end);
    closep(&child_end);
    int is_cancelled = relay(spec, output, child);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (is_cancelled)
        return error_set(err, ERROR_GONE, "cancelled");
    if (WIFSIGNALED(status))
        return error_set(err, ERROR_SYSTEM, "%s was killed by signal %d", name, WTERMSIG(status));
    if (WEXITSTATUS(status))
        return error_set(err, ERROR_SYSTEM, "%s failed with exit code %d", name,
                         WEXITSTATUS(status));
    return 0;
}
