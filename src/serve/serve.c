/* SPDX-License-Identifier: Apache-2.0 */
/* burrow serve: opens the core, puts the fronts and the network over it, and runs until it is told to stop. */
#include "serve/serve.h"

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/descriptors.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/core.h"
#include "core/port/port.h"
#include "engine/box.h"
#include "engine/sftp_blob.h"
#include "front/api/api_ssh.h"
#include "front/api/event_text.h"
#include "hook/sender.h"
#include "ssh/ssh_server.h"
#include "web/preview.h"
#include "web/router.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/http_server.h"
#include "runtime/catalog.h"
#include "serve/config.h"
#include "serve/debug_door.h"
#include "serve/first_key.h"
#include "serve/fronts.h"
#include "serve/notify.h"
#include "serve/capacity.h"
#include "serve/rights.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <malloc.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define DRAIN_MS 10000
#define KEPT_PART 4 // of all open files that connections never take: one in so many
#define GIVE_UP_S                                                                                  \
    30 // after the drain: a handler that does not end must not keep the next server out
#define QUICK_QUEUE 4096
#define OOM_SCORE "/proc/self/oom_score_adj"
#define SERVER_SCORE "-500"
#define SLOW_QUEUE 1024
#define CONTROL_QUEUE 1024
#define CONTROL_WORKERS 8

struct server {
    int argc; // for reading the settings again
    char **argv;
    struct config config;
    char data_dir[PATH_MAX];
    struct core *core;
    struct ssh_server *ssh;
    struct api_ssh api_ssh;
    struct loop *loop;
    struct workers *workers;
    struct fronts *fronts;
    struct router *router;
    struct http_server *http;
    struct debug_door *debug; // NULL: none
    struct sender *sender;
    struct preview *preview;
    struct preview_names names;                                 // of exposed ports
    char hosts[PREVIEW_ADDRESSES][CONFIG_ADDRESS];              // where those of this machine are
    char local_url[CONFIG_ADDRESS + sizeof "http://localhost"]; // of the first address
    int data_fd; // where the local socket's path is too long, else -1
    int signal_fd;
    struct loop_watch *signals;
    struct loop_timer quiet; // set where the server ends by itself
    uint64_t requests, quiet_since_ms;
    size_t connections; // at once
    bool is_draining;
};

// ---- the process ----

// When the machine has no memory left the kernel ends others first: with the server, its sandboxes would have nobody to look after them.
static void ask_to_be_spared(void)
{
    struct error ignored = {0};
    char now[16];

    if (fd_read_knob(AT_FDCWD, OOM_SCORE, now, sizeof now, &ignored) == 0 && now[0] != '-')
        (void)fd_write_knob(AT_FDCWD, OOM_SCORE, SERVER_SCORE, &ignored); // where it may
}

// Before there are threads: they inherit the mask, and signals come by the descriptor alone.
static int prepare_signals(struct server *server, struct error *err)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    server->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return server->signal_fd < 0 ? error_sys(err, "make a signal file") : 0;
}

static int prepare_data_dir(struct server *server, struct error *err)
{
    if (fd_make_dirs(server->config.data_dir, 0700, err) < 0)
        return -1;
    if (!realpath(server->config.data_dir, server->data_dir))
        return error_sys(err, "open the data directory '%s'", server->config.data_dir);
    server->config.data_dir = server->data_dir;
    return data_dir_check(server->data_dir, err);
}

// ---- stopping and reloading ----

static void on_drained(void *data)
{
    struct server *server = data;
    loop_stop(server->loop);
}

static void stop(struct server *server, const char *why)
{
    if (server->is_draining) {
        log_warn("stopping at once", F("signal", why));
        _exit(1);
    }
    server->is_draining = true;
    log_info("stopping", F("signal", why));
    notify_send("STOPPING=1");
    router_drain(server->router);
    debug_door_drain(server->debug);
    http_server_drain(server->http, DRAIN_MS, on_drained, server);
}

// ---- ending by itself ----

#define QUIET_STEP_MS 1000

/* A request, one that is still being answered, or a sandbox: somebody needs the server. */
static void on_quiet(void *data)
{
    struct server *server = data;
    uint64_t now = clock_monotonic_ms(), rest = QUIET_STEP_MS;
    struct core_health health;
    struct http_stats stats;

    if (server->is_draining)
        return;
    core_health(server->core, &health);
    http_server_stats(server->http, &stats);
    if (health.sandboxes || stats.requests != server->requests ||
        stats.connections > stats.idle + stats.strangers)
        server->quiet_since_ms = now;
    server->requests = stats.requests;
    if (now - server->quiet_since_ms >= server->config.quiet_ms) {
        stop(server, "quiet");
        return;
    }
    if (server->config.quiet_ms < rest)
        rest = server->config.quiet_ms;
    loop_timer_set(&server->quiet, rest);
}

static void watch_quiet(struct server *server)
{
    if (!server->config.quiet_ms)
        return;
    server->quiet_since_ms = clock_monotonic_ms();
    loop_timer_init(&server->quiet, server->loop, on_quiet, server);
    loop_timer_set(&server->quiet, QUIET_STEP_MS);
}

// How much is logged can be changed while running; the rest at the next start.
static void reload(struct server *server)
{
    autoconfig fresh = {0};
    struct error err = {0};

    notify_reloading();
    key_forget_checks(server->core->accounts);
    if (config_read(server->argc, server->argv, &fresh, &err) < 0) {
        log_warn("settings not read again", F("error", err.text));
    } else {
        log_set_level(config_log_level(&fresh));
        log_info("settings read again", F("logLevel", fresh.log_level));
    }
    notify_send("READY=1");
}

static void on_signal(void *data, unsigned events)
{
    struct server *server = data;
    struct signalfd_siginfo info;

    while (read(server->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            reload(server);
        else
            stop(server, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
    }
}

static void on_alarm(int number)
{
    static const char text[] = "burrow: gave up waiting for requests under way\n";

    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

// ---- putting it together ----

/* A part of all, and at least one. */
static unsigned share(unsigned all, unsigned of, unsigned parts)
{
    unsigned part = all * of / parts;
    return part ? part : 1;
}

/* How much of a lane one key can have, and one sandbox: never all of it. */
static void share_lane(struct workers_settings *lanes, enum workers_lane which, unsigned threads,
                       unsigned queue, const char *name)
{
    lanes->lane[which].threads = threads;
    lanes->lane[which].queue = queue;
    lanes->lane[which].queue_per_who = share(queue, 1, 4);
    lanes->lane[which].name = name;
    lanes->lane[which].per_who = share(threads, 3, 4);
    lanes->lane[which].per_what = share(threads, 1, 4);
}

static unsigned count_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (unsigned)count : 1;
}

static int open_front(struct server *server, struct error *err)
{
    struct workers_settings lanes = {0};
    struct router_settings routing = {
        .core = server->core,
        .loop = server->loop,
        .fronts = fronts_list(server->fronts),
        .public_url = server->config.public_url,
        .local_url = server->local_url,
        .previews = &server->names,
    };

    config_previews(&server->config, &server->names);
    share_lane(&lanes, WORKERS_QUICK, (unsigned)server->config.workers, QUICK_QUEUE, "quick");
    share_lane(&lanes, WORKERS_SLOW, (unsigned)server->config.slow_workers, SLOW_QUEUE, "slow");
    share_lane(&lanes, WORKERS_CONTROL, CONTROL_WORKERS, CONTROL_QUEUE, "control");
    // two at least, or one that lasts for minutes would keep all others waiting
    lanes.lane[WORKERS_SLOW].heavy = count_processors() > 4 ? count_processors() / 2 : 2;
    if (workers_new(&lanes, &server->workers, err) < 0)
        return -1;
    routing.workers = server->workers;
    return router_new(&routing, &server->router, err);
}

// The name of a socket has room for 107 bytes only; a longer one is reached through the directory's descriptor.
static int listen_locally(struct server *server, struct error *err)
{
    char path[PATH_MAX + 16], shorter[64];
    const char *name = path;

    (void)snprintf(path, sizeof path, "%s/burrow.sock", server->data_dir);
    if (strlen(path) > 96) { // the listener makes a name next to it first
        server->data_fd = open(server->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (server->data_fd < 0)
            return error_sys(err, "open the data directory '%s'", server->data_dir);
        (void)snprintf(shorter, sizeof shorter, "/proc/self/fd/%d/burrow.sock", server->data_fd);
        name = shorter;
    }
    if (http_server_listen_unix(server->http, name, 0600, err) < 0)
        return -1;
    log_info("listening", F("socket", path));
    return 0;
}

/* Sandboxes need descriptors too. */
static size_t choose_connections(size_t wanted)
{
    size_t limit = descriptors_limit(), most = limit - limit / KEPT_PART;

    if (wanted <= most)
        return wanted;
    log_info("fewer connections at once, for want of open files", F("asked", (uint64_t)wanted),
             F("connections", (uint64_t)most), F("openFiles", (uint64_t)limit));
    return most;
}

/* For programs of this machine: one that is all of its addresses is none to connect to. */
static void keep_local_url(struct server *server, const char *bound)
{
    const char *port = strrchr(bound, ':');
    bool is_any = strncmp(bound, "0.0.0.0:", 8) == 0 || strncmp(bound, "[::]:", 5) == 0;

    if (!*server->local_url)
        (void)snprintf(server->local_url, sizeof server->local_url, "http://%s%s",
                       is_any ? "localhost" : "", is_any ? port : bound);
}

/* A mistake that everybody makes once has its way out with it. */
static int listen_tcp(struct server *server, const char *address, struct error *err)
{
    struct error failure = {0};
    const char *bound;

    if (http_server_listen_tcp(server->http, address, &bound, &failure) == 0) {
        log_info("listening", F("address", bound));
        keep_local_url(server, bound);
        return 0;
    }
    *err = failure;
    return failure.sys == EADDRINUSE
               ? error_set(err, ERROR_CONFLICT,
                           "%s; another program has it: choose another with --listen", failure.text)
               : -1;
}

static int open_network(struct server *server, struct error *err)
{
    struct http_limits limits = http_limits_default;
    char address[CONFIG_ADDRESS];

    limits.connections = server->connections =
        choose_connections((size_t)server->config.max_connections);
    limits.strangers = (size_t)server->config.connections_per_address;
    if (http_server_new(server->loop, &limits, &router_handler, server->router, &server->http,
                        err) < 0)
        return -1;
    if (listen_locally(server, err) < 0)
        return -1;
    for (size_t i = 0; config_address(&server->config, i, address); i++) {
        if (listen_tcp(server, address, err) < 0)
            return -1;
    }
    return 0;
}

/* Many threads that each do a little: few arenas, which grow and shrink in larger steps. */
static void tune_memory(void)
{
    (void)mallopt(M_ARENA_MAX, 4);
    (void)mallopt(M_TOP_PAD, 256 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

/* A runtime that nobody knows is a mistake in the settings: without this every create would tell of it, and the start would not. */
static int check_runtime(const struct config *config, struct error *err)
{
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error missing = {0};

    if (runtime_reference_parse(config->runtime, &reference, err) < 0)
        return -1;
    autofree char *built =
        xasprintf("%s/runtimes/%s/%s", config->data_dir, reference.name, reference.tag);
    if (access(built, F_OK) == 0)
        return 0; // works also when its file is gone from the catalog
    if (catalog_load(config->data_dir, NULL, &catalog, err) < 0)
        return error_wrap(err, "--runtime");
    if (catalog_find(catalog, &reference, &definition, &missing) < 0)
        return error_set(err, ERROR_INVALID, "--runtime: %s", missing.text);
    return 0;
}

// ---- keys that end ----

struct ended_key {
    struct server *server;
    uint64_t number, mask;
};

static void end_connections(void *data)
{
    struct ended_key *ended = data;

    if (ended->server->http)
        http_server_end_key(ended->server->http, ended->number, ended->mask);
    free(ended);
}

// Whoever follows something with it is cut off.
static void on_key_ended(void *data, const char *key_id, const char *token_id)
{
    struct ended_key *ended = xnew(struct ended_key);
    struct server *server = data;

    *ended = (struct ended_key){server, auth_number(key_id, token_id),
                                token_id ? AUTH_NUMBER_ALL : AUTH_NUMBER_KEY};
    loop_post(ended->server->loop, end_connections, ended);
    ssh_server_key_ended(server->ssh, key_id);
    if (!token_id)
        ports_look_at_key(server->core->ports, key_id);
}

// ---- exposed ports ----

struct returned {
    struct server *server;
    int fd;
    char *bytes;
    size_t length;
};

static void take_back(void *data)
{
    autofree struct returned *returned = data;
    autofree char *bytes = returned->bytes;

    if (returned->server->http)
        http_server_adopt(returned->server->http, returned->fd, bytes, returned->length);
    else
        (void)close(returned->fd);
}

/* Of a client that asks the API for something on a connection on which it has asked for a preview before. */
static void on_returned(void *data, int fd, char *bytes, size_t length)
{
    struct returned *returned = xnew(struct returned);

    *returned = (struct returned){data, fd, bytes, length};
    loop_post(returned->server->loop, take_back, returned);
}

static int open_preview(struct server *server, struct error *err)
{
    struct preview_settings settings = {
        .core = server->core,
        .names = server->names,
        .connections = server->connections / 2,
        .protocol = &e2b_port_protocol,
        .give_back = on_returned,
        .data = server,
    };

    while (settings.n_hosts < PREVIEW_ADDRESSES &&
           config_address(&server->config, settings.n_hosts, server->hosts[settings.n_hosts])) {
        char *host = server->hosts[settings.n_hosts];
        *strrchr(host, ':') = '\0';
        bool is_new = true;
        for (size_t i = 0; i < settings.n_hosts; i++)
            is_new &= strcmp(server->hosts[i], host) != 0;
        if (!is_new)
            break; // the same address with another port: one is enough
        settings.hosts[settings.n_hosts++] = host;
    }
    if (preview_new(&settings, &server->preview, err) < 0)
        return -1;
    http_server_set_elsewhere(server->http, preview_elsewhere(server->preview));
    return 0;
}

static void adopt_tunnel(void *data, int fd, const struct actor *actor, const char *sandbox_id)
{
    ssh_server_adopt(data, fd, actor, sandbox_id);
}

/* The front has this from the start; nobody is answered before it is filled in. */
static void offer_ssh(struct server *server)
{
    const struct ssh_host_key *keys = ssh_server_keys(server->ssh);

    server->api_ssh = (struct api_ssh){
        .adopt = adopt_tunnel, .data = server->ssh, .address = ssh_server_address(server->ssh)};
    for (size_t i = 0; i < SSH_HOST_KEYS; i++) {
        server->api_ssh.host_keys[i] = keys[i].line;
        server->api_ssh.fingerprints[i] = keys[i].fingerprint;
    }
}

static int open_ssh(struct server *server, struct error *err)
{
    const struct config *config = &server->config;
    char addresses[SSH_ADDRESSES][CONFIG_ADDRESS];
    struct ssh_settings settings = {
        .core = server->core,
        .data_dir = server->data_dir,
        .connections = (size_t)config->ssh_connections,
        .connections_of_sandbox = (size_t)config->ssh_connections_per_sandbox,
        .strangers = (size_t)config->ssh_strangers,
        .strangers_of_address = (size_t)config->ssh_strangers_per_address,
        .rate_of_address = (uint32_t)config->ssh_rate_per_address,
        .grace_ms = config->ssh_login_ms,
        .dead_after_ms = config->ssh_dead_after_ms,
        .tries = (uint32_t)config->ssh_tries,
        .sftp_fd = sftp_blob_open(err),
    };

    if (settings.sftp_fd < 0 || ssh_allow_parse(config->ssh_allow, &settings.allows, err) < 0)
        return -1;
    while (settings.n_addresses < SSH_ADDRESSES &&
           config_ssh_address(config, settings.n_addresses, addresses[settings.n_addresses])) {
        settings.addresses[settings.n_addresses] = addresses[settings.n_addresses];
        settings.n_addresses++;
    }
    if (ssh_server_new(&settings, &server->ssh, err) < 0)
        return -1;
    offer_ssh(server);
    return 0;
}

static int open_debug(struct server *server, struct error *err)
{
    const struct debug_door_settings settings = {.config = &server->config,
                                                 .core = server->core,
                                                 .loop = server->loop,
                                                 .workers = server->workers};

    return debug_door_new(&settings, &server->debug, err);
}

static int open_sender(struct server *server, struct error *err)
{
    const struct sender_settings settings = {.core = server->core, .render = event_text_json};

    return sender_new(&settings, &server->sender, err);
}

static int open_server(struct server *server, char first_key[KEY_TEXT], struct error *err)
{
    struct core_settings settings;

    if (first_key_check(&server->config, err) < 0 || check_runtime(&server->config, err) < 0 ||
        debug_door_check(&server->config, err) < 0 || prepare_data_dir(server, err) < 0)
        return -1;
    config_core(&server->config, &settings);
    server->config.api.ssh = &server->api_ssh;
    if (fronts_open(front_entries, &server->config, &server->fronts, err) < 0)
        return -1;
    fronts_set_defaults(server->fronts, &settings);
    settings.fail_file =
        getenv("BURROW_TEST_FAIL_FILE"); // whoever sets it could as well end the server
    tune_memory();
    // The key comes last: a start that fails, as where the port is taken, makes none. Nobody is answered before the loop runs.
    if (core_open(&settings, &server->core, err) < 0 || loop_new(&server->loop, err) < 0 ||
        open_front(server, err) < 0 || open_network(server, err) < 0 ||
        open_preview(server, err) < 0 || open_sender(server, err) < 0 ||
        open_ssh(server, err) < 0 || open_debug(server, err) < 0 ||
        loop_watch_new(server->loop, server->signal_fd, on_signal, server, &server->signals, err) <
            0 ||
        first_key_prepare(server->core->accounts, &server->config, first_key, err) < 0)
        return -1;
    key_watch_ends(server->core->accounts, on_key_ended, server);
    loop_watch_set(server->signals, LOOP_READABLE);
    return 0;
}

// What answers and ends of connections left to be done on the loop is done before the things go that it is done to.
static void run_leftovers(struct server *server)
{
    for (int round = 0; server->loop && round < 8; round++) {
        loop_stop(server->loop);
        loop_run(server->loop);
    }
}

static void close_server(struct server *server)
{
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(GIVE_UP_S);
    if (server->core)
        key_watch_ends(server->core->accounts, NULL, NULL);
    loop_watch_free(server->signals);
    debug_door_close(server->debug);
    http_server_free(take(server->http));
    run_leftovers(server);
    workers_stop(server->workers);
    run_leftovers(server);
    preview_free(server->preview);
    run_leftovers(server); // connections that it gave back
    sender_free(server->sender);
    ssh_server_free(server->ssh);
    debug_door_free(server->debug);
    router_free(server->router);
    fronts_free(server->fronts);
    core_free(server->core);
    loop_free(server->loop);
    workers_free(server->workers);
    closep(&server->signal_fd);
    closep(&server->data_fd);
    config_clear(&server->config);
    log_writer_stop();
    (void)alarm(0);
}

// ---- the command ----

static void print_first_key(const char *key)
{
    (void)printf("The first key of this server, shown only this once:\n\n    %s\n\n"
                 "Send it as 'Authorization: Bearer KEY'. 'burrow key create' makes more.\n",
                 key);
    (void)fflush(stdout);
}

/* By what sandboxes may have together as the core has worked it out, so that both lines of the log agree. */
static void tell_capacity(const struct core_settings *settings)
{
    struct capacity capacity;
    uint64_t wanted = settings->max_sandboxes;

    capacity_measure((uint64_t)settings->boxes_memory_bytes, (uint64_t)settings->boxes_processes,
                     &capacity);
    capacity_log(&capacity, wanted, wanted != core_settings_default.max_sandboxes);
}

static int run(struct server *server, struct error *err)
{
    char first_key[KEY_TEXT] = "";
    uint64_t since = clock_monotonic_ms();

    if (engine_need_root(err) < 0)
        return -1;
    capacity_raise();
    ask_to_be_spared();
    if (rights_drop(err) < 0 || prepare_signals(server, err) < 0)
        return -1;
    log_writer_start();
    if (open_server(server, first_key, err) < 0)
        return -1;
    if (*first_key)
        print_first_key(first_key);
    OPENSSL_cleanse(first_key, sizeof first_key);
    tell_capacity(&server->core->settings);
    log_info("ready", F("version", BURROW_VERSION), F("data", server->data_dir),
             F("pid", (int64_t)getpid()), F("ms", clock_monotonic_ms() - since));
    notify_send("READY=1");
    watch_quiet(server);
    loop_run(server->loop);
    loop_timer_clear(&server->quiet);
    return 0;
}

// Whoever collects lines of JSON gets the last one as such too.
static int fail(const struct error *err, bool is_json)
{
    if (!is_json)
        return serve_fail(err);
    log_error("the server cannot run", F("error", (const char *)err->text));
    return serve_exit_code(err);
}

int serve_command(int argc, char **argv)
{
    struct server server = {.argc = argc, .argv = argv, .data_fd = -1, .signal_fd = -1};
    struct error err = {0};

    int parsed = config_read(argc, argv, &server.config, &err);
    if (parsed == OPTIONS_HELP)
        options_help(&config_options, stdout);
    bool is_json = config_log_format(&server.config) == LOG_FORMAT_JSON;
    log_configure(config_log_level(&server.config), config_log_format(&server.config),
                  STDERR_FILENO);
    if (parsed != 0) {
        config_clear(&server.config);
        return parsed < 0 ? fail(&err, is_json) : 0;
    }
    (void)umask(022);
    int result = run(&server, &err);
    close_server(&server);
    if (result < 0)
        return fail(&err, is_json);
    log_info("stopped");
    return 0;
}
