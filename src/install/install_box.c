/* SPDX-License-Identifier: Apache-2.0 */
/* Installs packages in a box; see install_box.h. */
#include "install/install_box.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/gateway.h"
#include "install/install_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROCESS 1
#define LIMIT_MS (30 * 60 * 1000)
#define NAMES_LIMIT_MS (2 * 60 * 1000)
#define CERTIFICATES "/etc/ssl/certs/ca-certificates.crt" // of the machine, whose network it is
#define CERTIFICATES_MAX (1 << 20)

static const struct limits limits = {.memory_bytes = INT64_C(2) << 30,
                                     .cpu_millicores = 2000,
                                     .disk_bytes = INT64_C(8) << 30,
                                     .max_processes = 2048};

/*
 * HOSTS, APT and NPM are variables. What it leaves is what the packages brought: lists, caches, and the file of names as it was.
 */
static const char script[] =
    "set -e\n"
    "mkdir -p /tmp/burrow-install; cd /tmp/burrow-install\n"
    "cat > ca.crt; cp -p /etc/hosts hosts\n"
    "trap 'cat hosts > /etc/hosts; cd /; rm -rf /tmp/burrow-install' EXIT\n"
    "printf '%s' \"$HOSTS\" >> /etc/hosts\n"
    "if [ -s ca.crt ]; then\n"
    "  export NODE_EXTRA_CA_CERTS=$PWD/ca.crt NPM_CONFIG_CAFILE=$PWD/ca.crt "
    "SSL_CERT_FILE=$PWD/ca.crt\n"
    "fi\n"
    "export DEBIAN_FRONTEND=noninteractive HOME=/tmp/burrow-install\n"
    "if [ -n \"$APT\" ]; then\n"
    "  options=\"-q -y -o Acquire::http::Timeout=30 -o Acquire::Retries=2 -o Dpkg::Use-Pty=0"
    " -o Dir::State::lists=$PWD/lists -o Dir::Cache::archives=$PWD/archives"
    " -o Acquire::Check-Valid-Until=false\"\n"
    "  mkdir -p lists/partial archives/partial\n"
    "  echo 'I: reading package lists'\n"
    "  apt-get update $options --error-on=any\n"
    "  echo 'I: installing packages'\n"
    "  apt-get install --no-install-recommends $options $APT\n"
    "fi\n"
    "if [ -n \"$NPM\" ]; then\n"
    "  echo 'I: installing npm packages'\n"
    "  export NPM_CONFIG_CACHE=$PWD/npm NPM_CONFIG_UPDATE_NOTIFIER=false\n"
    "  export NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=1000 NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=4000\n"
    "  if command -v npm >/dev/null; then npm install -g --no-audit --no-fund $NPM\n"
    "  elif command -v bun >/dev/null; then BUN_INSTALL=/usr/local bun add -g $NPM\n"
    "  else echo 'E: this runtime has neither npm nor bun'; exit 3; fi\n"
    "fi\n"
    "echo 'I: cleaning up'\n"
    "rm -rf /var/cache/apt/*.bin /var/lib/dpkg/*-old /var/log/apt /var/log/dpkg.log /root/.npm\n";

/* Each name in a line of its own: of packages, and of what they provide. */
static const char names_script[] =
    "set -e\n"
    "mkdir -p /tmp/burrow-install; cd /tmp/burrow-install\n"
    "cat > ca.crt; printf '%s' \"$HOSTS\" >> /etc/hosts\n"
    "options=\"-q -o Acquire::http::Timeout=20 -o Acquire::Retries=1"
    " -o Dir::State::lists=$PWD/lists -o Acquire::Check-Valid-Until=false\"\n"
    "mkdir -p lists/partial\n"
    "apt-get update $options --error-on=any\n"
    "apt-cache $options dumpavail > all\n"
    "sed -n -e 's/^Package: /N: /p' -e '/^Provides: /{s/^Provides: /N: /;s/ *([^)]*)//g;"
    "s/, */\\nN: /g;p}' all | sort -u\n";

// ---- what its output says ----

struct hearing {
    struct buffer *names; // NULL: they are not asked for
    const struct install_options *options;
    char line[512];
    size_t length;
    char fault[400]; // the first line that says why
    const char *noun;
    bool is_full; // something could not be written
};

static const struct {
    const char *line, *phase;
    unsigned percent;
} phases[] = {
    {"I: reading package lists", "reading package lists", 10},
    {"I: installing packages", "installing packages", 30},
    {"I: installing npm packages", "installing npm packages", 60},
    {"I: cleaning up", "cleaning up", 95},
};

// A name that is not there is the caller's fault; everything else is told as apt or npm said it.
static const struct {
    const char *text, *noun;
} faults[] = {
    {"Unable to locate package", "dependencies"},
    {"has no installation candidate", "dependencies"},
    {"was not found", "dependencies"},
    {"is not in this registry", "packages"},
    {"could not be found", "packages"},
    {"No matching version found", "packages"},
    {"failed to resolve", "packages"},
    {"E: ", NULL},
    {"npm error", NULL},
    {"npm ERR!", NULL},
};

/* As apt, dpkg, npm and bun have it. */
static bool says_full(const char *line)
{
    static const char *const words[] = {"No space left on device", "enough free space",
                                        "Disk quota exceeded", "ENOSPC", "nospc"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static void hear_line(struct hearing *hearing, const char *line)
{
    struct error ignored = {0};

    if (hearing->names && strncmp(line, "N: ", 3) == 0) {
        (void)buffer_addf(hearing->names, &ignored, "%s\n", line + 3);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
        if (strcmp(line, phases[i].line) == 0 && hearing->options->on_progress)
            (void)hearing->options->on_progress(hearing->options->data, phases[i].phase,
                                                phases[i].percent);
    if (!hearing->is_full && says_full(line)) {
        hearing->is_full = true;
        (void)snprintf(hearing->fault, sizeof hearing->fault, "%s", line);
    }
    for (size_t i = 0; i < ARRAY_SIZE(faults) && !hearing->is_full; i++) {
        bool is_better = !hearing->fault[0] || (faults[i].noun && !hearing->noun);
        if (!is_better || !strstr(line, faults[i].text))
            continue;
        (void)snprintf(hearing->fault, sizeof hearing->fault, "%s", line);
        hearing->noun = faults[i].noun;
        return;
    }
}

static void hear(struct hearing *hearing, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (data[i] != '\n' && data[i] != '\r') {
            if (hearing->length + 1 < sizeof hearing->line)
                hearing->line[hearing->length++] = data[i];
            continue;
        }
        hearing->line[hearing->length] = '\0';
        hear_line(hearing, hearing->line);
        hearing->length = 0;
    }
}

/*
 * Whose room it was: that of the box, which packages are not to go beyond, or the volume's. The one with less left, also where apt foretells it before it
 * writes anything, or npm has removed what it wrote: that gives both the same.
 */
static int explain_full(const struct hearing *hearing, struct box *box, struct volume *volume,
                        struct error *err)
{
    const uint64_t most = (uint64_t)limits.disk_bytes;
    struct volume_space space = {0};
    struct error ignored = {0};
    uint64_t used = 0;

    if (box_disk_usage(box, &used, &ignored) == 0 && volume_space(volume, &space, &ignored) == 0 &&
        (used >= most || most - used <= space.free_bytes))
        return error_refuse(err, ERROR_LIMIT, "packages",
                            "packages: what they need does not fit into %lld GiB: %s",
                            (long long)limits.disk_bytes >> 30, hearing->fault);
    return error_refuse(err, ERROR_NO_SPACE, "packages",
                        "the volume has no room left to install packages: %s", hearing->fault);
}

static int explain(const struct hearing *hearing, const struct process_exit *exit, struct box *box,
                   struct volume *volume, struct error *err)
{
    if (hearing->is_full)
        return explain_full(hearing, box, volume, err);
    if (hearing->noun)
        return error_refuse(err, ERROR_INVALID, hearing->noun, "%s: %s", hearing->noun,
                            hearing->fault);
    if (exit->cause == CAUSE_TIMEOUT)
        return error_set(err, ERROR_TIMEOUT, "installing packages took more than %d minutes",
                         LIMIT_MS / 60000);
    return error_refuse(err, ERROR_TOOL, "packages", "packages could not be installed: %s",
                        hearing->fault[0] ? hearing->fault : exit->text);
}

// ---- its input ----

// A pipe that holds all of it.
static int open_certificates(int *out_fd, struct error *err)
{
    autobuffer text = {.maximum = CERTIFICATES_MAX / 2};
    int ends[2];

    autofd file = open(CERTIFICATES, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fd_read_buffer(file, &text, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd from = ends[0], to = ends[1];
    if (fcntl(to, F_SETPIPE_SZ, CERTIFICATES_MAX) < 0 ||
        (text.length && fd_write_all(to, text.data, text.length) < 0))
        return error_sys(err, "fill a pipe");
    *out_fd = take_fd(from);
    return 0;
}

static char *join(const struct strings *list, const char *tool)
{
    autobuffer text = {0};
    struct error ignored;
    size_t length = strlen(tool);

    (void)buffer_add_text(&text, "", &ignored);
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], tool, length) == 0)
            (void)buffer_addf(&text, &ignored, " %s", list->items[i] + length);
    return text.data ? take(text.data) : xstrdup("");
}

// ---- the box ----

static int admit(struct engine *engine, const struct box *box, const struct install_hosts *hosts,
                 struct error *err)
{
    const struct policy_kernel kernel = {.class = POLICY_CLASS_RULES,
                                         .rules = (struct policy_kernel_rule *)hosts->rules,
                                         .count = hosts->n_rules};
    struct gateway *gateway = NULL;

    if (engine_gateway(engine, &gateway, err) < 0)
        return -1;
    return gateway_admit(gateway, box_slot(box), &kernel, 1, err);
}

static int relay(struct hearing *hearing, int output, struct error *err)
{
    struct pollfd polls[] = {{.fd = output, .events = POLLIN},
                             {.fd = hearing->options->cancel_fd, .events = POLLIN}};
    char chunk[4096];

    for (;;) {
        if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
            return error_sys(err, "wait for output");
        if (polls[1].revents)
            return error_set(err, ERROR_GONE, "cancelled");
        if (!polls[0].revents)
            continue;
        ssize_t got = read(output, chunk, sizeof chunk);
        if (got <= 0)
            return 0;
        hear(hearing, chunk, (size_t)got);
    }
}

static int run(struct engine *engine, struct box *box, const char *const *env,
               struct hearing *hearing, struct error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", hearing->names ? names_script : script, NULL};
    struct process_exit exit = {0};
    autofd input = -1;
    int ends[2];

    if (open_certificates(&input, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd output = ends[0], far = ends[1];
    const struct process_spec spec = {
        .id = PROCESS,
        .command = {.argv = argv,
                    .env = env,
                    .directory = "/",
                    .timeout_ms = hearing->names ? NAMES_LIMIT_MS : LIMIT_MS},
        .output = OUTPUT_PIPE,
        .stdin_fd = input,
        .stdout_fd = far,
        .stderr_fd = far,
    };
    if (box_spawn(box, &spec, NULL, err) < 0)
        return -1;
    closep(&far);
    closep(&input);
    if (relay(hearing, output, err) < 0 || box_wait(box, PROCESS, -1, &exit, err) < 0)
        return -1;
    return exit.code ? explain(hearing, &exit, box, engine_volume(engine), err) : 0;
}

static void fill_env(const struct runtime_image *image, const char *list,
                     const struct install_hosts *hosts, struct strings *env)
{
    autostrings items = {0};

    strings_unpack(list, &items);
    strings_merge(env, (const char *const *)image->env);
    autofree char *apt = join(&items, "apt "), *npm = join(&items, "npm ");
    strings_set(env, "APT", apt);
    strings_set(env, "NPM", npm);
    strings_set(env, "HOSTS", hosts->lines.data ? hosts->lines.data : "");
    if (hosts->registry)
        strings_set(env, "NPM_CONFIG_REGISTRY", hosts->registry);
}

static int run_box(struct engine *engine, const struct runtime_image *image, const char *list,
                   struct hearing *hearing, const char *scratch, struct error *err)
{
    const struct install_options *options = hearing->options;
    const struct box_spec spec = {
        .layers = (const char *const *)image->layers,
        .n_layers = image->n_layers,
        .hold_fd = image->lock_fd,
        .limits = limits,
        .owner_loss = BOX_END,
        .scratch = scratch,
        .has_network = true,
    };
    autohosts hosts = {0};
    autostrings env = {0};
    struct box *box = NULL;
    struct error ignored = {0};

    if (install_hosts_find(image, list, options->registry, &hosts, err) < 0)
        return -1;
    fill_env(image, list, &hosts, &env);
    if (box_launch(engine, &spec, &box, err) < 0)
        return error_wrap(err, "start a sandbox to install packages in");
    int result = admit(engine, box, &hosts, err);
    if (result == 0)
        result = run(engine, box, (const char *const *)env.items, hearing, err);
    (void)box_end(box, &ignored);
    box_free(box);
    return result;
}

int install_box_run(struct engine *engine, const struct runtime_image *image, const char *list,
                    const struct install_options *options, const char *scratch, struct error *err)
{
    struct hearing hearing = {.options = options};

    return run_box(engine, image, list, &hearing, scratch, err);
}

int install_box_names(struct engine *engine, const struct runtime_image *image,
                      const struct install_options *options, struct buffer *names,
                      struct error *err)
{
    struct hearing hearing = {.options = options, .names = names};

    return run_box(engine, image, "apt names", &hearing, NULL, err);
}
