/* SPDX-License-Identifier: Apache-2.0 */
/* burrow run: one command in a fresh box, here, where no server is asked (run_remote.h): output relayed, the exit code its own. */
#include "cli/commands.h"

#include "base/limits.h"
#include "base/machine.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "cli/exit.h"
#include "cli/mount_option.h"
#include "cli/relay.h"
#include "cli/remote_run.h"
#include "cli/run_image.h"
#include "cli/run_network.h"
#include "cli/run_remote.h"
#include "cli/run_report.h"
#include "cli/terminal.h"
#include "engine/box.h"
#include "engine/files.h"
#include "runtime/catalog.h"
#include "runtime/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define PROCESS_ID 1
#define EOF_STEP_MS 50 // between looks whether an end of input was read
#define MAX_EOFS 16    // that a command reads and goes on; then its terminal hangs up
#define CTRL_D "\x04"

#define LIMIT_OPTION(member, name, letter, type, argument, variable, least, usual, most, help,     \
                     ...)                                                                          \
    {                                                                                              \
        name, letter, type, offsetof(struct run_options, limits.member), argument, help, NULL, 0,  \
            most                                                                                   \
    }

/* What the table fills in. */
struct run_words {
    struct run_options run; // first: its rows have offsets of its own
    struct run_remote remote;
};
#define REMOTE_ROW(name, type, member, argument, help)                                             \
    {                                                                                              \
        name, 0, type, offsetof(struct run_words, remote.member), argument, help, NULL, 0, 0       \
    }

static const struct option_row rows[] = {
    LIMITS_ROWS(LIMIT_OPTION),
    {"pids", 0, OPTION_INTEGER, offsetof(struct run_options, limits.max_processes), "N",
     "another name of --max-processes", NULL, 0, 4000000},
    {"timeout", 0, OPTION_DURATION, offsetof(struct run_options, timeout_ms), "DURATION",
     "end it, and all it started, after this long: 30s, 5m, 1d (default: never)", NULL, 0, 0},
    {"runtime", 'r', OPTION_TEXT, offsetof(struct run_options, runtime), "NAME",
     "what it starts from (default base:latest; 'burrow runtime list')", "BURROW_RUNTIME", 0, 0},
    {"dependency", 0, OPTION_LIST, offsetof(struct run_options, dependencies), "PACKAGE",
     "install this apt package over the runtime first; kept for the next time (repeatable)", NULL,
     0, 0},
    {"package", 0, OPTION_LIST, offsetof(struct run_options, packages), "PACKAGE",
     "the same for one of npm, where the runtime has npm or bun (repeatable)", NULL, 0, 0},
    {"env", 'e', OPTION_LIST, offsetof(struct run_options, env), "KEY=VALUE",
     "set a variable; KEY alone takes yours (repeatable)", NULL, 0, 0},
    {"file", 'f', OPTION_LIST, offsetof(struct run_options, files), "PATH:LOCAL",
     "put the local file LOCAL at PATH in the sandbox first (repeatable)", NULL, 0, 0},
    {"mount", 0, OPTION_LIST, offsetof(struct run_options, mounts), "LOCAL:SANDBOX[:ro]",
     "show the directory LOCAL of this machine at SANDBOX, with the rights of its owner; ':ro' to "
     "be read alone (repeatable)",
     NULL, 0, 0},
    {"workdir", 'w', OPTION_TEXT, offsetof(struct run_options, directory), "PATH",
     "working directory (default /workspace, or the image's own)", NULL, 0, 0},
    {"user", 'u', OPTION_TEXT, offsetof(struct run_options, user), "USER[:GROUP]",
     "run as this user of the sandbox (default root, or the image's own)", NULL, 0, 0},
    {"network", 0, OPTION_FLAG, offsetof(struct run_options, has_network), NULL,
     "let it reach the Internet; never this machine, its networks or other sandboxes", NULL, 0, 0},
    {"allow", 0, OPTION_LIST, offsetof(struct run_options, allow), "RULE",
     "a network with this and no more: example.com, *.example.com:443, 9.9.9.0/24:53/udp "
     "(repeatable)",
     NULL, 0, 0},
    {"deny", 0, OPTION_LIST, offsetof(struct run_options, deny), "RULE",
     "a network without this, whatever --allow says (repeatable)", NULL, 0, 0},
    {"network-dns", 0, OPTION_TEXT, offsetof(struct run_options, network_dns), "ADDRESSES",
     "ask these for names, with commas between (default: those of /etc/resolv.conf)",
     "BURROW_NETWORK_DNS", 0, 0},
    {"network-rate", 0, OPTION_SIZE, offsetof(struct run_options, network_rate), "SIZE",
     "let it send at most so many bytes a second (default: no limit)", NULL, 0, 0},
    REMOTE_ROW("snapshot", OPTION_TEXT, snapshot, "ID-OR-TAG",
               "start from this snapshot of a server"),
    REMOTE_ROW("runtime-id", OPTION_TEXT, runtime_id, "ID", "a server's runtime by its id: srt_…"),
    REMOTE_ROW("scope", OPTION_LIST, scopes, "SCOPE",
               "kept with its sandbox on a server (repeatable)"),
    REMOTE_ROW("project-id", OPTION_TEXT, project_id, "ID",
               "which project its sandbox on a server belongs to"),
    REMOTE_ROW("org-id", OPTION_TEXT, org_id, "ID", "taken for compatibility: the key says which"),
    REMOTE_ROW("local", OPTION_FLAG, is_local, NULL,
               "run it here, also where a server is configured or running"),
    REMOTE_ROW("url", OPTION_TEXT, url, "URL", "run it on this server (default: BURROW_URL)"),
    REMOTE_ROW("context", OPTION_TEXT, context, "NAME",
               "run it on a server 'burrow context' knows"),
    REMOTE_ROW("api-key", OPTION_TEXT, api_key, "KEY", "for it (default: BURROW_API_KEY)"),
    {"tty", 't', OPTION_FLAG, offsetof(struct run_options, has_tty), NULL, "give it a terminal",
     NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct run_options, is_quiet), NULL,
     "show no output of the command", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, offsetof(struct run_options, is_json), NULL,
     "print one JSON object at the end instead of the output", NULL, 0, 0},
    {"timestamps", 0, OPTION_FLAG, offsetof(struct run_options, has_timestamps), NULL,
     "begin each line with its time", NULL, 0, 0},
    {"output-limit", 0, OPTION_SIZE, offsetof(struct run_options, output_cap_bytes), "SIZE",
     "drop what each of stdout and stderr has beyond (default: none; 64Mi with --json)", NULL, 0,
     0},
    {"output-cap", 0, OPTION_SIZE, offsetof(struct run_options, output_cap_bytes), "SIZE",
     "another name of --output-limit", NULL, 0, 0},
    {"data", 0, OPTION_TEXT, offsetof(struct run_options, data_dir), "DIR",
     "where burrow keeps things (default " CLI_DEFAULT_DATA ")", "BURROW_DATA", 0, 0},
    {0},
};

static const char *const examples[] = {
    "$ burrow run -- python3 -c 'print(6 * 7)'",
    "$ burrow run --runtime host:latest --memory 256Mi --timeout 10s -- make test",
    "$ burrow run --file /workspace/a.py:./a.py -- python3 a.py",
    "$ burrow run --mount .:/workspace -- make",
    "$ burrow run --mount ./data:/data:ro -- wc -l /data/list.csv",
    "$ echo hello | burrow run -- tr a-z A-Z",
    "$ burrow run --json -- uname -a",
    "$ burrow run --allow 'mirror.example.org:443' -- curl https://mirror.example.org/",
    NULL,
};

static const struct option_hint hints[] = {
    {"i", "input is streamed without it; -t (--tty) gives a terminal"},
    {"interactive", "input is streamed without it; --tty gives a terminal"},
    {"rm", "every run is removed at its end; leave it out"},
    {"d", "'burrow create' makes a sandbox that stays, 'burrow job create' starts a command in it"},
    {"detach",
     "'burrow create' makes a sandbox that stays, 'burrow job create' starts a command in it"},
    {"v", "--mount LOCAL:SANDBOX[:ro] shows a directory"},
    {"volume", "--mount LOCAL:SANDBOX[:ro] shows a directory"},
    {"p", "'burrow create --port PORT' exposes one"},
    {"publish", "'burrow create --port PORT' exposes one"},
    {0},
};

static const struct option_set option_set = {
    .command = "burrow run",
    .usage = "[options] [--] COMMAND [ARGUMENT...]",
    .summary = "run one command in a fresh sandbox, then remove it",
    .description =
        "The command sees its own file system, processes and loopback network, and nothing else "
        "of\n"
        "this machine. Its exit code becomes burrow's: 124 when the time limit ended it, 125 when\n"
        "burrow itself failed, 126 and 127 when it could not be executed or found, 128+n when\n"
        "signal n ended it (137 at the memory limit).",
    .rows = rows,
    .examples = examples,
    .hints = hints,
};

/* One run, from the first check to the last report. */
struct run {
    struct run_options options;
    struct engine *engine;
    struct runtime_image *image;
    struct box *box;
    struct run_network network;
    struct run_mounts mounts;
    char *runtime; // its full name, which the options name from then on
    struct relay relay;
    bool has_relay;
    struct terminal terminal;
    unsigned n_interrupts;
    uint64_t kill_at_ms; // after a SIGTERM; 0: none came
    uint64_t eof_at_ms;  // when to look again; 0: the terminal has input to come
    unsigned n_eofs;
    struct run_result result;
};

/* What this machine does not have. Disk is looked at when it is known where. */
static int check_machine(const struct limits *limits, struct error *err)
{
    const struct limits usual = LIMITS_DEFAULT;

    if (limits->memory_bytes <= usual.memory_bytes &&
        limits->cpu_millicores <= usual.cpu_millicores &&
        limits->max_processes <= usual.max_processes)
        return 0;
    const struct limits whole = machine_size();
    const struct limits room = machine_leave_room(&whole);
    return limits_check_most(limits, &room, "this machine", false, err);
}

static int check_disk(struct engine *engine, const struct limits *limits, struct error *err)
{
    const struct limits usual = LIMITS_DEFAULT;
    struct volume_space space = {0};

    if (limits->disk_bytes <= usual.disk_bytes)
        return 0;
    if (volume_space(engine_volume(engine), &space, err) < 0)
        return -1;
    const struct limits room = {.disk_bytes = (int64_t)space.total_bytes};
    return limits_check_most(limits, &room, "this machine", false, err);
}

static int check_options(struct run_options *o, struct error *err)
{
    if (limits_check(&o->limits, err) < 0 || check_machine(&o->limits, err) < 0)
        return -1;
    if (o->directory &&
        path_check_absolute(o->directory, strlen(o->directory), "the working directory", err) < 0)
        return -1;
    if (o->has_tty && (o->is_json || o->has_timestamps))
        return error_set(err, ERROR_INVALID, "--tty goes with neither --json nor --timestamps");
    for (size_t i = 0; i < o->env.count; i++) {
        if (!*o->env.items[i] || *o->env.items[i] == '=')
            return error_set(err, ERROR_INVALID, "--env '%s' has no name: use KEY=VALUE",
                             o->env.items[i]);
    }
    for (size_t i = 0; i < o->files.count; i++) {
        const char *colon = strchr(o->files.items[i], ':');
        if (!colon || colon == o->files.items[i] || !colon[1])
            return error_set(
                err, ERROR_INVALID,
                "--file '%s' is not PATH:LOCAL (path in the sandbox, colon, local file)",
                o->files.items[i]);
    }
    if (o->is_json && o->output_cap_bytes == 0)
        o->output_cap_bytes = LIMITS_OUTPUT_BYTES;
    return 0;
}

/* Local files are opened before anything is started: a missing one costs nothing. */
static int check_files(const struct run_options *o, struct error *err)
{
    for (size_t i = 0; i < o->files.count; i++) {
        const char *local = strchr(o->files.items[i], ':') + 1;
        autofd fd = open(local, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_path(err, "read the file '%s'", local);
    }
    return 0;
}

static int launch(struct run *run, struct error *err)
{
    const struct run_options *o = &run->options;
    struct runtime_image *image = run->image;
    struct box_bind binds[16];
    struct box_spec spec = {
        .layers = (const char *const *)image->layers,
        .n_layers = image->n_layers,
        .binds = binds,
        .n_binds = image->n_binds,
        .mounts = run->mounts.mounts,
        .n_mounts = run->mounts.count,
        .hold_fd = image->lock_fd,
        .limits = o->limits,
        .owner_loss = BOX_END,
        .is_one_shot = true,
        .has_network = o->has_network,
    };

    if (image->n_binds > ARRAY_SIZE(binds))
        return error_set(err, ERROR_INVALID, "the runtime '%s' has too many binds", o->runtime);
    for (size_t i = 0; i < image->n_binds; i++)
        binds[i] = (struct box_bind){image->binds[i].host, image->binds[i].box};
    if (check_disk(run->engine, &o->limits, err) < 0)
        return -1;
    if (box_launch(run->engine, &spec, &run->box, err) < 0)
        return -1;
    return o->has_network ? run_network_open(&run->network, o, run->engine, run->box, err) : 0;
}

static int put_files(struct run *run, struct error *err)
{
    const struct run_options *o = &run->options;
    autofd conversation = -1;

    if (o->files.count == 0)
        return 0;
    if (box_files(run->box, o->user, o->directory, &conversation, err) < 0)
        return -1;
    for (size_t i = 0; i < o->files.count; i++) {
        const char *colon = strchr(o->files.items[i], ':');
        char path[PATH_TEXT];
        (void)snprintf(path, sizeof path, "%.*s", (int)(colon - o->files.items[i]),
                       o->files.items[i]);
        autofd local = open(colon + 1, O_RDONLY | O_CLOEXEC);
        if (local < 0)
            return error_path(err, "read the file '%s'", colon + 1);
        struct stat info;
        uint32_t mode = fstat(local, &info) == 0 && info.st_mode & 0100 ? 0755 : 0644;
        if (files_write_from_fd(conversation, path, mode, FILES_PARENTS, local, err) < 0)
            return error_wrap(err, "put '%s' into the sandbox", colon + 1);
    }
    return 0;
}

/* The environment is the runtime's and what --env says; nothing of the caller's reaches the box unasked. */
static const char **make_env(const struct run *run)
{
    const struct run_options *o = &run->options;
    size_t n_image = 0;
    while (run->image->env && run->image->env[n_image])
        n_image++;
    const char **env = calloc(n_image + o->env.count + 3, sizeof *env);
    size_t n = 0;

    if (!env)
        return NULL;
    for (size_t i = 0; i < o->env.count; i++) {
        const char *item = o->env.items[i];
        if (strchr(item, '=')) {
            env[n++] = item;
            continue;
        }
        for (char **own = environ; *own; own++) {
            size_t length = strlen(item);
            if (strncmp(*own, item, length) == 0 && (*own)[length] == '=')
                env[n++] = *own;
        }
    }
    for (size_t i = 0; i < n_image; i++) {
        const char *equals = strchr(run->image->env[i], '=');
        size_t length = equals ? (size_t)(equals - run->image->env[i]) + 1 : 0;
        bool is_set = false;
        for (size_t j = 0; j < n && !is_set; j++)
            is_set = strncmp(env[j], run->image->env[i], length) == 0;
        if (!is_set)
            env[n++] = run->image->env[i];
    }
    for (char **own = environ; o->has_tty && *own; own++) {
        if (strncmp(*own, "TERM=", 5) == 0)
            env[n++] = *own;
    }
    return env;
}

static int on_event(void *context, struct error *err)
{
    struct run *run = context;
    struct box_event event;

    if (box_next(run->box, &event, 0, err) < 0)
        return -1;
    if (event.kind == BOX_EVENT_EXIT) {
        run->result.exit = event.exit;
        run->result.has_exit = true;
        return 1;
    }
    if (event.kind == BOX_EVENT_ENDED)
        return error_set(err, ERROR_GONE, "the sandbox ended before the command did");
    return 0;
}

static int kill_all(struct run *run, struct error *err)
{
    run->kill_at_ms = run->eof_at_ms = 0;
    return box_signal(run->box, PROCESS_ID, SIGKILL, true, err);
}

static void plan_wake(struct run *run)
{
    uint64_t first = run->kill_at_ms;

    if (run->eof_at_ms && (!first || run->eof_at_ms < first))
        first = run->eof_at_ms;
    run->relay.wake_at_ms = first;
}

/*
 * A terminal has no end of input that stays: a Ctrl-D is one for one read, and none at all for a program that had the terminal
 * otherwise when it came, as shells do while they start. So each one that was read is followed by another, as reads of a closed pipe give one each time.
 */
static int repeat_eof(struct run *run, struct error *err)
{
    int master = run->relay.out[0].from;

    run->eof_at_ms = 0;
    if (master < 0)
        return 0;
    if (run->n_eofs >= MAX_EOFS)
        return box_signal(run->box, PROCESS_ID, SIGHUP, true, err);
    if (!terminal_has_unread(master)) {
        run->n_eofs++;
        (void)!write(master, CTRL_D, 1); // what does not fit comes next time
    }
    run->eof_at_ms = clock_monotonic_ms() + EOF_STEP_MS;
    return 0;
}

static int on_wake(void *context, struct error *err)
{
    struct run *run = context;
    uint64_t now = clock_monotonic_ms();
    int result = 0;

    if (run->kill_at_ms && now >= run->kill_at_ms)
        result = kill_all(run, err);
    else if (run->eof_at_ms && now >= run->eof_at_ms)
        result = repeat_eof(run, err);
    plan_wake(run);
    return result;
}

static void on_input_end(void *context)
{
    struct run *run = context;

    run->eof_at_ms = clock_monotonic_ms() + EOF_STEP_MS;
    plan_wake(run);
}

static int on_signal(void *context, int signal, struct error *err)
{
    struct run *run = context;
    uint16_t rows_now = 0;
    uint16_t cols_now = 0;

    if (signal == SIGWINCH) {
        if (!run->options.has_tty)
            return 0;
        terminal_size(STDIN_FILENO, &rows_now, &cols_now);
        return box_resize(run->box, PROCESS_ID, rows_now, cols_now, err);
    }
    if (++run->n_interrupts >= RUN_PATIENCE || run->kill_at_ms)
        return kill_all(run, err);
    if (signal == SIGTERM) {
        run->kill_at_ms = clock_monotonic_ms() + RUN_GRACE_MS;
        plan_wake(run);
    }
    return box_signal(run->box, PROCESS_ID, signal, false, err);
}

static void set_output(struct run *run, int index, int from)
{
    const struct run_options *o = &run->options;
    struct pump *pump = &run->relay.out[index];
    int to = index ? STDERR_FILENO : STDOUT_FILENO;

    (void)fcntl(from, F_SETFL, O_NONBLOCK);
    pump_init(pump, from, o->is_json ? -1 : to, index ? "standard error" : "standard output");
    pump->owns_from = true;
    pump->cap_bytes = o->output_cap_bytes;
    if (o->is_json)
        pump->shape = PUMP_CAPTURED;
    else if (o->is_quiet)
        pump->shape = PUMP_DROPPED;
    else if (o->has_timestamps)
        pump->shape = PUMP_STAMPED;
}

static void set_input(struct run *run, int to)
{
    (void)fcntl(to, F_SETFL, O_NONBLOCK);
    pump_init(&run->relay.in, STDIN_FILENO, to, "standard input");
    run->relay.in.owns_to = true;
}

/* What is not read or shown anyway gets the box's own /dev/null, which costs nothing. */
static bool needs_pipe(const struct run_options *o, int fd)
{
    struct stat info;
    bool is_null = fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
    if (fd == STDIN_FILENO)
        return !is_null;
    return o->is_json || !(o->is_quiet || is_null);
}

struct pipes {
    int box[3];  // the command's ends of stdin, stdout, stderr; -1: it has none
    int ours[3]; // and the relay's
};

static void close_three(int fds[3])
{
    for (int i = 0; i < 3; i++)
        closep(&fds[i]);
}

static int make_pipes(const struct run_options *o, struct pipes *pipes, struct error *err)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (!needs_pipe(o, i))
            continue;
        if (pipe2(ends, O_CLOEXEC) < 0)
            return error_sys(err, "make a pipe");
        pipes->box[i] = ends[i == STDIN_FILENO ? 0 : 1];
        pipes->ours[i] = ends[i == STDIN_FILENO ? 1 : 0];
    }
    return 0;
}

static int spawn_with_pipes(struct run *run, struct process_spec *process, struct error *err)
{
    struct pipes pipes = {{-1, -1, -1}, {-1, -1, -1}};

    int result = make_pipes(&run->options, &pipes, err);
    process->output = OUTPUT_PIPE;
    process->stdin_fd = pipes.box[0];
    process->stdout_fd = pipes.box[1];
    process->stderr_fd = pipes.box[2];
    if (result == 0)
        result = box_spawn(run->box, process, NULL, err);
    close_three(pipes.box);
    if (result < 0) {
        close_three(pipes.ours);
        return -1;
    }
    if (pipes.ours[0] >= 0)
        set_input(run, pipes.ours[0]);
    for (int i = 1; i < 3; i++) {
        if (pipes.ours[i] >= 0)
            set_output(run, i - 1, pipes.ours[i]);
    }
    return 0;
}

static int spawn_with_terminal(struct run *run, struct process_spec *process, struct error *err)
{
    int master = -1;

    process->output = OUTPUT_TTY;
    terminal_size(STDIN_FILENO, &process->rows, &process->cols);
    if (box_spawn(run->box, process, &master, err) < 0)
        return -1;
    if (master < 0)
        return 0; // it could not be started; its end says why
    int copy = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
        closep(&master);
        return error_sys(err, "copy the terminal");
    }
    if (terminal_make_raw(&run->terminal, STDIN_FILENO, err) < 0) {
        closep(&copy);
        closep(&master);
        return -1;
    }
    set_input(run, copy);
    run->relay.in.last_words = CTRL_D;
    run->relay.on_input_end = on_input_end;
    set_output(run, 0, master);
    return 0;
}

static int execute(struct run *run, char **command, struct error *err)
{
    const struct run_options *o = &run->options;
    autofree const char **env = make_env(run);
    struct process_spec process = {
        .id = PROCESS_ID,
        .command.argv = (const char *const *)command,
        .command.env = env,
        .command.directory = o->directory,
        .command.user = o->user,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
        .command.timeout_ms = (int64_t)o->timeout_ms,
    };

    if (put_files(run, err) < 0)
        return -1;
    run->result.started_us = clock_monotonic_us();
    if ((o->has_tty ? spawn_with_terminal : spawn_with_pipes)(run, &process, err) < 0)
        return -1;
    run->relay.event_fd = box_event_fd(run->box);
    run->relay.on_event = on_event;
    run->relay.on_signal = on_signal;
    run->relay.on_wake = on_wake;
    run->relay.context = run;
    int result = relay_run(&run->relay, err);
    run->result.duration_us = clock_monotonic_us() - run->result.started_us;
    return result;
}

/* What was not asked for is as the runtime says: an image has a user, a directory and a command of its own. */
static void take_defaults(struct run *run, char ***command)
{
    struct run_options *o = &run->options;
    const struct runtime_image *image = run->image;

    if (!o->directory)
        o->directory = image->directory ? image->directory : "/workspace";
    if (!o->user)
        o->user = image->user;
    if (!**command)
        *command = image->command;
}

/* Whether the runtime says what to run; one that cannot be opened says nothing. */
static bool has_own_command(const struct run_options *o)
{
    autoptr(runtime_image) image = NULL;
    autofree char *name = runtime_full_name(o->runtime);
    struct error ignored;

    return geteuid() == 0 && runtime_image_open(o->data_dir, name, &image, &ignored) == 0 &&
           image->command && *image->command;
}

static int do_run(struct run *run, char **command, struct error *err)
{
    if (engine_need_root(err) < 0 || data_dir_check(run->options.data_dir, err) < 0 ||
        check_files(&run->options, err) < 0 ||
        run_mounts_open(&run->options.mounts, &run->mounts, err) < 0)
        return -1;
    if (relay_init(&run->relay, err) < 0) // from here on signals are ours to forward
        return -1;
    run->has_relay = true;
    run->options.runtime = run->runtime = runtime_full_name(run->options.runtime);
    const struct engine_options engine = {.data_dir = run->options.data_dir};
    int signal;
    if (run_image_check(&run->options, err) < 0 ||
        run_image_open(&run->options, &run->image, &signal, err) < 0 ||
        engine_open(&engine, &run->engine, err) < 0 ||
        run_image_install(&run->options, run->engine, &run->image, err) < 0)
        return -1;
    take_defaults(run, &command);
    if (launch(run, err) < 0)
        return -1;
    return execute(run, command, err);
}

/* Whatever happened: nothing of the run stays. */
static void end_run(struct run *run)
{
    struct error err = {0};

    terminal_restore(&run->terminal);
    if (run->box && box_end(run->box, &err) < 0)
        exit_tell(&err);
    if (run->engine && engine_has_leftovers(run->engine) && engine_sweep(run->engine, &err) < 0)
        exit_tell(&err);
}

static void free_run(struct run *run)
{
    box_free(run->box);
    run_network_clear(&run->network);
    run_mounts_clear(&run->mounts);
    engine_free(run->engine);
    runtime_image_free(run->image);
    free(run->runtime);
    if (run->has_relay)
        relay_clear(&run->relay);
    option_list_clear(&run->options.env);
    option_list_clear(&run->options.files);
    option_list_clear(&run->options.mounts);
    option_list_clear(&run->options.allow);
    option_list_clear(&run->options.deny);
    option_list_clear(&run->options.dependencies);
    option_list_clear(&run->options.packages);
}

/* What was not said is as it usually is. */
static void fill_defaults(struct run_words *words)
{
    const struct limits usual = LIMITS_DEFAULT;
    struct limits *limits = &words->run.limits;

    words->remote.given = words->run.asked = *limits;
    words->remote.has_runtime = words->run.runtime != NULL;
    limits->memory_bytes = limits->memory_bytes < 0 ? usual.memory_bytes : limits->memory_bytes;
    limits->cpu_millicores =
        limits->cpu_millicores < 0 ? usual.cpu_millicores : limits->cpu_millicores;
    limits->disk_bytes = limits->disk_bytes < 0 ? usual.disk_bytes : limits->disk_bytes;
    limits->max_processes = limits->max_processes < 0 ? usual.max_processes : limits->max_processes;
}

static int fill_places(struct run_options *options, struct error *err)
{
    static char room[PATH_MAX];

    if (!options->runtime)
        options->runtime = "base:latest";
    if (!options->data_dir)
        options->data_dir = CLI_DEFAULT_DATA;
    return data_dir_resolve(&options->data_dir, room, err);
}

int cli_run(int argc, char **argv)
{
    struct run_words words = {.run.limits = {-1, -1, -1, -1}};
    struct run run = {.terminal = {.fd = -1}};
    struct error err = {0};
    int operands = 0, code = 0;

    int parsed = options_parse(&option_set, argc, argv, &words, &operands, &err);
    if (parsed == OPTIONS_HELP) {
        options_help(&option_set, stdout);
        return EXIT_DONE;
    }
    fill_defaults(&words);
    run.options = words.run;
    if (parsed == 0 &&
        (parsed = run_remote(&words.run, &words.remote, argv + operands, &code, &err)) == 1) {
        free_run(&run);
        return code;
    }
    if (parsed == 0)
        parsed = fill_places(&run.options, &err);
    // argv ends with a NULL: such a command is the runtime's own
    if (parsed == 0 && operands >= argc && !has_own_command(&run.options))
        parsed = error_set(&err, ERROR_INVALID,
                           "run needs a command: burrow run [options] -- COMMAND [ARGUMENT...]");
    if (parsed < 0 || check_options(&run.options, &err) < 0 ||
        run_network_read(&run.options, &run.network, &err) < 0) {
        exit_tell_as(&err, words.run.is_json || options_mention(argc, argv, "json"));
        return EXIT_USAGE;
    }
    (void)id_make(run.result.id);
    int result = do_run(&run, argv + operands, &err);
    if (run.box && result == 0)
        run_measure(&run.options, run.box, &run.result);
    end_run(&run);
    code = run_report(&run.options, &run.result, &run.relay, result < 0 ? &err : NULL);
    free_run(&run);
    return code;
}
