/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts processes. The child shares PID 1's memory on a stack of its own until it executes, so it costs no
 * page-table copy; PID 1 does not wait for that, so a child that a guest stops half-way stalls nobody.
 */
#include "init/init.h"

#include "base/auto.h"
#include "engine/kernel.h"
#include "engine/raw.h"
#include "init/set_ids.h"
#include "init/users.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <termios.h>

#define STACK_SIZE 16384
#define MAX_PATH 4096
#define PROGRAM_FD 3 // in the child
/*
 * After a spawn; then twice as long each time, while a guest stops a child half-way. Not sooner: the look ends with a
 * write for which the kernel goes through all processes of the machine, and by then most commands have ended or been
 * followed by another.
 */
#define SETTLE_FIRST_US 20000
#define SETTLE_LAST_US 100000
#define FORKED_ONLY 0x40u // PF_FORKNOEXEC in /proc/PID/stat

/* All a child needs, in one mapping that stays until the child has executed or ended. */
struct spawn {
    char stack[STACK_SIZE] __attribute__((aligned(16)));
    volatile int alive; // the kernel clears it when the child leaves our memory
    volatile int failed_sys;
    const char *volatile failed_what;
    const char **argv;
    const char **env;
    const char *path; // PATH
    void *strings;    // backs argv, env and directory
    const char *directory;
    struct user_info user;
    int stdio[3];
    int tasks_fd;   // v1 leaf
    int program_fd; // executed in the place of argv[0]; -1: none
    uint32_t max_files;
    bool has_terminal, drops_set_ids;
    // How a file begins that is there, although executing it says that something is not.
    char head[96];
    char candidate[MAX_PATH];
};

_Noreturn static void give_up(struct spawn *s, const char *what, long code)
{
    s->failed_what = what;
    s->failed_sys = (int)-code;
    for (;;)
        (void)RAW(SYS_exit, 127, 0, 0, 0, 0);
}

/* At a number of its own, closed by executing it. */
static void keep_program(struct spawn *s)
{
    long code = 0;

    if (s->program_fd == PROGRAM_FD)
        code = RAW(SYS_fcntl, PROGRAM_FD, F_SETFD, FD_CLOEXEC, 0, 0);
    else if (s->program_fd >= 0)
        code = RAW(SYS_dup3, s->program_fd, PROGRAM_FD, O_CLOEXEC, 0, 0);
    if (code < 0)
        give_up(s, "keep its program", code);
}

static void arrange_stdio(struct spawn *s)
{
    long code = 0;
    if (s->has_terminal) {
        code = RAW(SYS_ioctl, s->stdio[0], TIOCSCTTY, 0, 0, 0);
        if (code < 0)
            give_up(s, "take the terminal", code);
    }
    // None of the three is below 3: PID 1 keeps those numbers for itself.
    for (int i = 0; i < 3; i++) {
        code = RAW(SYS_dup3, s->stdio[i], i, 0, 0, 0);
        if (code < 0)
            give_up(s, "arrange standard input and output", code);
    }
    keep_program(s);
    code = RAW(SYS_close_range, s->program_fd < 0 ? 3 : PROGRAM_FD + 1, ~0u, 0, 0, 0);
    if (code < 0)
        give_up(s, "close files", code);
}

static void limit_files(struct spawn *s)
{
    struct rlimit limit = {s->max_files, s->max_files};
    long code = RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL, 0);
    if (code < 0 && code != -EPERM) // where not even PID 1 may have as many
        give_up(s, "limit open files", code);
}

static void become_user(struct spawn *s)
{
    long code = RAW(SYS_setgroups, s->user.n_groups, s->user.groups, 0, 0, 0);
    if (code >= 0)
        code = RAW(SYS_setresgid, s->user.gid, s->user.gid, s->user.gid, 0, 0);
    // Of another user it keeps the mark until it executes: where the host dumps everything, others of that user could
    // trace it, and with it PID 1, before the next call but one.
    if (code >= 0 && s->user.uid != 0)
        code = RAW(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (code >= 0)
        code = RAW(SYS_setresuid, s->user.uid, s->user.uid, s->user.uid, 0, 0);
    // Other credentials reset it, for all who share this memory, to the host's fs.suid_dumpable.
    if (code >= 0)
        code = RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (code < 0)
        give_up(s, "become the user", code);
}

static void drop_set_ids(struct spawn *s)
{
    long code = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &set_ids_filter, 0, 0);
    if (code < 0)
        give_up(s, "filter set-id bits", code);
}

static long open_dir(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    return RAW(SYS_openat2, AT_FDCWD, path, &how, sizeof how, 0);
}

/* Makes the missing directories of directory, as the user and with the user's rights. */
static void make_dirs(struct spawn *s)
{
    size_t i = 0;
    for (; s->directory[i] && i < MAX_PATH - 1; i++) {
        if (i > 0 && s->directory[i] == '/') {
            s->candidate[i] = '\0';
            (void)RAW(SYS_mkdir, s->candidate, 0755, 0, 0, 0);
        }
        s->candidate[i] = s->directory[i];
    }
    s->candidate[i] = '\0';
    (void)RAW(SYS_mkdir, s->candidate, 0755, 0, 0, 0);
}

static void enter_cwd(struct spawn *s)
{
    long fd = open_dir(s->directory);
    if (fd == -ENOENT) {
        make_dirs(s);
        fd = open_dir(s->directory);
    }
    long code = fd < 0 ? fd : RAW(SYS_fchdir, fd, 0, 0, 0, 0);
    if (code < 0)
        give_up(s, "enter the working directory", code);
    (void)RAW(SYS_close, fd, 0, 0, 0, 0);
}

/* Puts directory[0..length) + '/' + name into candidate. */
static bool join(struct spawn *s, const char *directory, size_t length, const char *name)
{
    size_t at = 0;
    if (length + strlen(name) + 2 > MAX_PATH)
        return false;
    for (; at < length; at++)
        s->candidate[at] = directory[at];
    if (length > 0)
        s->candidate[at++] = '/';
    while (*name)
        s->candidate[at++] = *name++;
    s->candidate[at] = '\0';
    return true;
}

static long execute(struct spawn *s, const char *path)
{
    return RAW(SYS_execve, path, s->argv, s->env, 0, 0);
}

/* What a script asks for is in its first line. As the user: PID 1 follows no path of a guest's. */
static long read_head(struct spawn *s, const char *path)
{
    long fd = RAW(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, 0);
    if (fd < 0)
        return fd;
    (void)RAW(SYS_read, fd, s->head, sizeof s->head - 1, 0, 0);
    (void)RAW(SYS_close, fd, 0, 0, 0, 0);
    return 0;
}

/* Until one file is executed, or read. */
static long for_each_in_path(struct spawn *s, long (*on_candidate)(struct spawn *, const char *))
{
    long worst = -ENOENT;
    for (const char *at = s->path;; at++) {
        const char *end = at;
        while (*end && *end != ':')
            end++;
        if (join(s, at, (size_t)(end - at), s->argv[0])) {
            long code = on_candidate(s, s->candidate);
            if (code != -ENOENT && code != -ENOTDIR && code != -EACCES)
                return code;
            if (code == -EACCES)
                worst = code;
        }
        if (!*end)
            return worst;
        at = end;
    }
}

static void child_main(void *data)
{
    struct spawn *s = data;
    uint64_t no_signals = 0;

    (void)RAW(SYS_setsid, 0, 0, 0, 0, 0);
    (void)RAW(SYS_setpriority, PRIO_PROCESS, 0, 0, 0, 0); // PID 1's is above that of guests
    if (s->tasks_fd >= 0 && RAW(SYS_write, s->tasks_fd, "0", 1, 0, 0) != 1)
        give_up(s, "enter its control group", -EIO);
    arrange_stdio(s);
    limit_files(s);
    become_user(s);
    enter_cwd(s);
    if (s->drops_set_ids)
        drop_set_ids(s);
    (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, 8, 0);
    if (s->program_fd >= 0)
        give_up(s, "execute", RAW(SYS_execveat, PROGRAM_FD, "", s->argv, s->env, AT_EMPTY_PATH));
    bool is_path = strchr(s->argv[0], '/');
    long code = is_path ? execute(s, s->argv[0]) : for_each_in_path(s, execute);
    if (code == -ENOENT)
        (void)(is_path ? read_head(s, s->argv[0]) : for_each_in_path(s, read_head));
    give_up(s, "execute", code);
}

static struct spawn *take_memory(struct init *init)
{
    struct spawn *s = init->spare;
    if (s) {
        init->spare = NULL;
        return s;
    }
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return s == MAP_FAILED ? NULL : s;
}

static void give_memory(struct init *init, struct spawn *s)
{
    free(s->strings);
    free(s->argv);
    if (!init->spare)
        init->spare = s;
    else
        (void)munmap(s, sizeof *s);
}

static const char *find_env(const char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    }
    return NULL;
}

/* argv, env and the defaults the user expects, as pointers into a copy of the message's strings. */
static bool copy_strings(struct spawn *s, const struct link_spawn_view *view)
{
    static const char default_path[] =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    const struct link_spawn *spawn = view->spawn;
    size_t extra = sizeof s->user.home + sizeof s->user.name + 16;
    char *strings = malloc(spawn->strings + extra);
    const char **list = malloc(sizeof *list * (spawn->n_argv + spawn->n_env + 6));

    s->strings = strings;
    s->argv = list;
    if (!strings || !list)
        return false;
    memcpy(strings, view->user, spawn->strings);
    char *at = strings + strlen(strings) + 1;
    s->directory = *at ? at : s->user.home;
    at += strlen(at) + 1;
    for (uint32_t i = 0; i < spawn->n_argv; i++, at += strlen(at) + 1)
        *list++ = at;
    *list++ = NULL;
    s->env = list;
    for (uint32_t i = 0; i < spawn->n_env; i++, at += strlen(at) + 1)
        *list++ = at;
    *list = NULL;
    char *more = strings + spawn->strings;
    if (!find_env(s->env, "HOME")) {
        *list++ = more;
        *list = NULL;
        more += sprintf(more, "HOME=%s", s->user.home) + 1;
    }
    if (!find_env(s->env, "USER")) {
        *list++ = more;
        *list = NULL;
        (void)sprintf(more, "USER=%s", s->user.name);
    }
    if (!find_env(s->env, "PATH")) {
        *list++ = default_path;
        *list = NULL;
    }
    s->path = find_env(s->env, "PATH");
    return true;
}

static void end_at_once(struct process *process, enum process_cause cause, int code, int sys,
                        const char *format, const char *what)
{
    process->has_ended = true;
    process->end = (struct link_exit){.cause = cause, .code = code, .sys = sys};
    (void)snprintf(process->end.text, sizeof process->end.text, format, what);
}

/* Root needs no look at files a guest may have changed. */
static int find_user(const char *text, struct user_info *out, char *message, size_t size)
{
    if (*text)
        return users_find(text, out, message, size);
    *out = (struct user_info){.home = "/root", .name = "root"};
    return 0;
}

static int open_terminal(struct process *process, const struct link_spawn *spawn, uid_t uid)
{
    struct winsize size = {.ws_row = spawn->rows, .ws_col = spawn->cols};
    int unlock = 0;
    autofd master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return -1;
    if (size.ws_row && size.ws_col)
        (void)ioctl(master, TIOCSWINSZ, &size);
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -1;
    if (uid != 0)
        (void)fchown(slave, uid, (gid_t)-1);
    process->terminal_fd = take_fd(master);
    return slave;
}

/* What a terminal shows goes to the spool, and what the engine sends into the terminal. */
static bool spool_terminal(struct process *process, const struct link_spawn *spawn, int slave,
                           int spool_fd)
{
    int master = process->terminal_fd;

    process->outputs[0] = (struct output){
        .pipe_fd = fcntl(master, F_DUPFD_CLOEXEC, 3),
        .end_fd = -1,
        .spool_fd = spool_fd,
        .cap = spawn->output_cap_bytes,
        .is_terminal = true,
    };
    process->input.sink_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    process->input.is_terminal = true;
    process->screen_fd = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    return fcntl(master, F_SETFL, O_NONBLOCK) == 0 && process->outputs[0].pipe_fd >= 0 &&
           process->input.sink_fd >= 0 && process->screen_fd >= 0;
}

/* A pipe that PID 1 fills from what the engine sends; the read end, or -1. */
static int open_input(struct process *process)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    (void)fchmod(ends[0], 0666); // whoever it runs as can open it again, as /dev/stdin
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    process->input.sink_fd = ends[1];
    return ends[0];
}

/* A pipe whose read end PID 1 pumps into the spool; the write end, or -1. */
static int spool_through_pipe(struct output *output, const struct link_spawn *spawn, int spool_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)close(spool_fd);
        return -1;
    }
    (void)fchmod(ends[0], 0666); // whoever it runs as can open it again, as /dev/stdout
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *output = (struct output){
        .pipe_fd = ends[0],
        .end_fd = ends[1],
        .spool_fd = spool_fd,
        .cap = spawn->output_cap_bytes,
        .has_timestamps = spawn->flags & SPAWN_TIMESTAMPS,
    };
    return ends[1];
}

static bool open_screen(struct process *process, struct link_message *message,
                        const struct link_spawn *spawn, struct spawn *s)
{
    autofd spool = link_spawn_take(message, spawn->fds, SPAWN_STDOUT);

    s->has_terminal = true;
    s->stdio[0] = open_terminal(process, spawn, s->user.uid);
    if (s->stdio[0] < 0)
        return false;
    if (spool >= 0 && !spool_terminal(process, spawn, s->stdio[0], take_fd(spool)))
        return false;
    s->stdio[1] = fcntl(s->stdio[0], F_DUPFD_CLOEXEC, 3);
    s->stdio[2] = fcntl(s->stdio[0], F_DUPFD_CLOEXEC, 3);
    return s->stdio[2] >= 0;
}

/* What a process without input reads: one for all of them, as most are. */
static int open_nothing(struct init *init)
{
    if (init->nothing_fd < 0)
        init->nothing_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return init->nothing_fd;
}

static bool open_stdio(struct init *init, struct process *process, struct link_message *message,
                       const struct link_spawn *spawn, struct spawn *s)
{
    if (spawn->output == OUTPUT_TTY)
        return open_screen(process, message, spawn, s);
    s->stdio[0] = spawn->flags & SPAWN_INPUT ? open_input(process)
                                             : link_spawn_take(message, spawn->fds, SPAWN_STDIN);
    if (s->stdio[0] < 0 && spawn->flags & SPAWN_INPUT)
        return false;
    for (int i = 1; i < 3; i++) {
        int fd = link_spawn_take(message, spawn->fds, i == 1 ? SPAWN_STDOUT : SPAWN_STDERR);
        if (fd >= 0 && spawn->output == OUTPUT_SPOOL) {
            fd = spool_through_pipe(&process->outputs[i - 1], spawn, fd);
            if (fd < 0)
                return false;
        }
        s->stdio[i] = fd;
    }
    if (spawn->flags & SPAWN_ONE_OUTPUT)
        s->stdio[2] = fcntl(s->stdio[1], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++) {
        if (s->stdio[i] < 0)
            s->stdio[i] = i ? open("/dev/null", O_WRONLY | O_CLOEXEC) : open_nothing(init);
        if (s->stdio[i] < 0)
            return false;
    }
    return true;
}

/*
 * Children begin life as the kernel's first choice when the box runs out of memory; PID 1 stays its last. All that share a
 * memory share this rank (__set_oom_adj in fs/proc/base.c), so PID 1 has theirs until they have executed.
 */
static void set_oom_rank(struct init *init, const char *rank)
{
    if (init->oom_adj_fd >= 0)
        (void)!pwrite(init->oom_adj_fd, rank, strlen(rank), 0);
}

static long clone_child(struct init *init, struct spawn *s, int into_fd)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_CHILD_CLEARTID,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)s->stack,
        .stack_size = STACK_SIZE,
        .child_tid = (uint64_t)(uintptr_t)&s->alive,
    };
    if (into_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)into_fd;
    }
    s->alive = 1;
    if (!init->is_rank_raised)
        set_oom_rank(init, "500");
    init->is_rank_raised = true;
    init->settle_us = SETTLE_FIRST_US;
    init->settle_at_us = init_now_us() + SETTLE_FIRST_US;
    long pid = raw_clone3(&args, init->secret, child_main, s);
    if (pid < 0)
        s->alive = 0;
    return pid;
}

/* The child has copies, and reads the numbers from this memory. PID 1 keeps /dev/null, and the ends of outputs until the process ends. */
static void close_stdio(const struct init *init, struct process *process, const struct spawn *s)
{
    for (int i = 0; i < 3; i++) {
        bool is_kept = s->stdio[i] == (i ? process->outputs[i - 1].end_fd : init->nothing_fd);
        if (s->stdio[i] >= 0 && !is_kept)
            (void)close(s->stdio[i]);
    }
    for (int i = 0; i < 2 && process->has_ended; i++)
        closep(&process->outputs[i].end_fd);
}

void spawn_start(struct init *init, struct process *process, struct link_message *message,
                 const struct link_spawn_view *view)
{
    const struct link_spawn *spawn = view->spawn;
    autofd into_fd = link_spawn_take(message, spawn->fds, SPAWN_LEAF_INTO);
    autofd tasks_fd = link_spawn_take(message, spawn->fds, SPAWN_LEAF_TASKS);
    autofd program_fd = link_spawn_take(message, spawn->fds, SPAWN_PROGRAM);
    struct spawn *s = take_memory(init);
    char text[160];

    process->kill_fd = link_spawn_take(message, spawn->fds, SPAWN_LEAF_KILL);
    process->freezer_fd = link_spawn_take(message, spawn->fds, SPAWN_LEAF_FREEZER);
    process->procs_fd = link_spawn_take(message, spawn->fds, SPAWN_LEAF_PROCS);
    if (!s) {
        end_at_once(process, CAUSE_NOT_RUN, 126, ENOMEM, "%s", "the sandbox is out of memory");
        return;
    }
    memset((char *)s + STACK_SIZE, 0, sizeof *s - STACK_SIZE - MAX_PATH);
    s->stdio[0] = s->stdio[1] = s->stdio[2] = -1;
    s->tasks_fd = tasks_fd;
    s->program_fd = program_fd;
    s->max_files = init->max_files;
    s->drops_set_ids = init->drops_set_ids;
    if (find_user(view->user, &s->user, text, sizeof text) < 0)
        end_at_once(process, CAUSE_NOT_RUN, 126, EINVAL, "%s", text);
    else if (!copy_strings(s, view))
        end_at_once(process, CAUSE_NOT_RUN, 126, ENOMEM, "%s", "the sandbox is out of memory");
    else if (!open_stdio(init, process, message, spawn, s))
        end_at_once(process, CAUSE_NOT_RUN, 126, errno, "%s",
                    "cannot open standard input and output");
    else {
        process->started_us = init_now_us();
        long pid = clone_child(init, s, into_fd);
        if (pid < 0)
            end_at_once(process, CAUSE_NOT_RUN, 126, (int)-pid,
                        pid == -EAGAIN ? "%s: the sandbox has reached its process limit"
                                       : "%s: cannot start a process",
                        s->argv[0]);
        else
            process->pid = (pid_t)pid;
        process->oom_kills = process_count_oom_kills(init); // beside the child's first steps
    }
    close_stdio(init, process, s);
    if (process->has_ended)
        give_memory(init, s);
    else
        process->spawn = s;
}

/* The file is there; its interpreter is not. What it names is a guest's text, so only plain characters of it are shown. */
static void explain_interpreter(struct link_exit *end, const struct spawn *s)
{
    const char *at = s->head + 2 + strspn(s->head + 2, " \t");
    char name[64] = "";
    size_t length = strcspn(at, " \t\r\n");

    for (size_t i = 0; i < length && i < sizeof name - 1; i++)
        name[i] = at[i] > ' ' && at[i] < 0x7f ? at[i] : '?';
    if (strncmp(s->head, "#!", 2) != 0)
        (void)snprintf(end->text, sizeof end->text,
                       "cannot execute '%.80s': the loader it was linked for is not in the sandbox",
                       s->argv[0]);
    else if (at[length] == '\r')
        (void)snprintf(end->text, sizeof end->text,
                       "cannot execute '%.60s': its lines end with CRLF, and there is no "
                       "interpreter '%s\\r'; save it with LF line ends",
                       s->argv[0], name);
    else
        (void)snprintf(end->text, sizeof end->text,
                       "cannot execute '%.80s': its interpreter '%s' is not in the sandbox",
                       s->argv[0], name);
}

static void explain(struct process *process, const struct spawn *s)
{
    int sys = s->failed_sys;
    bool is_there = s->head[0] != '\0';
    bool is_missing =
        !is_there && strcmp(s->failed_what, "execute") == 0 && (sys == ENOENT || sys == ENOTDIR);
    struct link_exit *end = &process->end;

    end->sys = sys;
    end->cause = is_missing ? CAUSE_NOT_FOUND : CAUSE_NOT_RUN;
    end->code = is_missing ? 127 : 126;
    if (is_there)
        explain_interpreter(end, s);
    else if (is_missing)
        (void)snprintf(end->text, sizeof end->text, "command '%.120s' not found in the sandbox",
                       s->argv[0]);
    else if (strcmp(s->failed_what, "execute") == 0)
        (void)snprintf(end->text, sizeof end->text, "cannot execute '%.120s': %s", s->argv[0],
                       strerror(sys));
    else
        (void)snprintf(end->text, sizeof end->text, "cannot %s (working directory '%.90s'): %s",
                       s->failed_what, s->directory, strerror(sys));
}

bool spawn_finish(struct init *init, struct process *process)
{
    struct spawn *s = take(process->spawn);
    bool has_failed = s && s->failed_sys;

    if (has_failed)
        explain(process, s);
    if (s)
        give_memory(init, s);
    return has_failed;
}

/*
 * True once nothing of ours is the child's any more. `alive` is cleared a moment before that; the kernel's flag of those
 * that forked and did not execute goes a moment after (begin_new_exec in fs/exec.c).
 */
static bool has_left(const struct process *process)
{
    char path[32];
    char text[256];
    unsigned flags = 0;

    if (process->spawn->alive)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)process->pid);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    char *end = strrchr(text, ')'); // of its name, which it chooses
    return !end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 ||
           !(flags & FORKED_ONLY);
}

void spawn_settle(struct init *init)
{
    bool has_any = false;
    uint64_t now = init->is_rank_raised ? init_now_us() : 0;
    if (!init->is_rank_raised || now < init->settle_at_us)
        return;
    for (struct process *process = init->processes; process; process = process->next) {
        if (!process->spawn)
            continue;
        if (!has_left(process))
            has_any = true;
        else if (!process->spawn->failed_sys)
            give_memory(init, take(process->spawn));
    }
    if (has_any) {
        init->settle_us = init->settle_us < SETTLE_LAST_US ? init->settle_us * 2 : SETTLE_LAST_US;
        init->settle_at_us = now + init->settle_us;
        return;
    }
    set_oom_rank(init, "0");
    init->is_rank_raised = false;
}
