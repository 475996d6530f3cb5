/* SPDX-License-Identifier: Apache-2.0 */
/* What the server is told; see config.h. */
#include "serve/config.h"

#include "base/address.h"
#include "base/data_dir.h"
#include "base/machine.h"
#include "base/mem.h"
#include "core/network/network_wish.h"
#include "core/port/port.h"
#include "core/sandbox/mount_wish.h"
#include "data/json_writer.h"
#include "data/yaml.h"
#include "net/http_server.h"
#include "runtime/catalog.h"
#include "base/limits.h"
#include "serve/aionis_config.h"
#include "ssh/ssh_server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>

#define YEAR_MS (365LL * 24 * 3600 * 1000)
#define TIB (1LL << 40)

#define ROW(name, type, member, argument, variable, minimum, maximum, help)                        \
    {                                                                                              \
        name, 0, type, offsetof(struct config, member), argument, help, variable, minimum, maximum \
    }

#define LIMIT_OPTION(member, name, letter, type, argument, variable, least, usual, most, help,     \
                     ...)                                                                          \
    ROW(name, type, limits.member, argument, "BURROW_" variable, 0, most, help)
#define CEILING_OPTION(member, name, letter, type, argument, variable, least, usual, most, help,   \
                       ceiling, ceiling_variable, ceiling_help)                                    \
    ROW(ceiling, type, ceilings.sandbox.member, argument, "BURROW_" ceiling_variable, 0, most,     \
        ceiling_help)
#define COUNT_OPTION(name, member, variable, help)                                                 \
    ROW(name, OPTION_INTEGER, ceilings.member, "N", "BURROW_" variable, 0, 1000000000, help)

static const struct option_row rows[] = {
    ROW("listen", OPTION_TEXT, listen, "ADDR:PORT", "BURROW_LISTEN", 0, 0,
        "where to listen, several with commas between; port 0 takes a free one (default "
        "127.0.0.1:4747)"),
    ROW("data", OPTION_TEXT, data_dir, "DIR", "BURROW_DATA", 0, 0,
        "where burrow keeps things (default " DATA_DIR_DEFAULT
        " for root, else ~/.local/share/burrow)"),
    ROW("config", OPTION_TEXT, file, "FILE", "BURROW_CONFIG", 0, 0,
        "read settings from this file (default " CONFIG_FILE " where it exists)"),
    ROW("public-url", OPTION_TEXT, public_url, "URL", "BURROW_PUBLIC_URL", 0, 0,
        "under which clients reach the server, for links in answers (default: as each request "
        "came)"),
    ROW("region", OPTION_TEXT, agentuity.region, "NAME", "BURROW_REGION", 0, 0,
        "what this machine is called where a protocol wants a region (default local)"),
    ROW("e2b-runtime", OPTION_TEXT, e2b.runtime, "NAME", "BURROW_E2B_RUNTIME", 0, 0,
        "the runtime of E2B's templates 'base' and 'code-interpreter-v1' (default "
        "code-interpreter:latest)"),
    ROW("e2b-domain", OPTION_TEXT, e2b.domain, "NAME", "BURROW_E2B_DOMAIN", 0, 0,
        "below which E2B's clients look for names of sandboxes, with a port if need be (default: "
        "as the client calls this server)"),
    ROW("e2b-debug", OPTION_TEXT, e2b_debug, "ADDR:PORT", "BURROW_E2B_DEBUG", 0, 0,
        "where E2B's clients in debug mode find one sandbox without any key, on loopback alone: "
        "127.0.0.1:49983,127.0.0.1:49999 (default: nowhere)"),
    ROW("api-origins", OPTION_TEXT, api.origins, "ORIGINS", "BURROW_API_ORIGINS", 0, 0,
        "web pages of these origins may call /api/v1 and /mcp, several with commas between, as "
        "https://app.example.com; '*' is any (default: none)"),
    ROW("api-rate", OPTION_INTEGER, api.rate, "N", "BURROW_API_RATE", 0, 1000000,
        "requests a second to /api/v1 that one key may send; 0 is any number (default 0)"),
    ROW("api-burst", OPTION_INTEGER, api.burst, "N", "BURROW_API_BURST", 0, 1000000,
        "how many of them may come at once; 0 is ten seconds' worth (default 0)"),
    ROW("log", OPTION_TEXT, log, "FORMAT", "BURROW_LOG", 0, 0,
        "lines of text or json, on stderr (default text)"),
    ROW("log-level", OPTION_TEXT, log_level, "LEVEL", "BURROW_LOG_LEVEL", 0, 0,
        "how much is logged: error, warn, info or debug (default info)"),
    ROW("runtime", OPTION_TEXT, runtime, "NAME", "BURROW_RUNTIME", 0, 0,
        "what sandboxes start from that name no runtime; built at the start if need be (default "
        "base:latest)"),
    LIMITS_ROWS(LIMIT_OPTION),
    LIMITS_ROWS(CEILING_OPTION),
    ROW("sandboxes-memory", OPTION_SIZE, boxes_memory_bytes, "SIZE", "BURROW_SANDBOXES_MEMORY", 0,
        1024 * TIB,
        "memory of all sandboxes together (default: that of the machine but for a sixteenth)"),
    ROW("sandboxes-processes", OPTION_INTEGER, boxes_processes, "N", "BURROW_SANDBOXES_PROCESSES",
        0, 4000000,
        "processes in all sandboxes together (default: seven eighths of the machine's)"),
    ROW("sandboxes-cpu-weight", OPTION_INTEGER, boxes_cpu_weight, "N",
        "BURROW_SANDBOXES_CPU_WEIGHT", 1, 10000,
        "processor time of all sandboxes together where others on the machine want it too, who "
        "have 100 each (default 100)"),
    ROW("idle-timeout", OPTION_DURATION, idle_timeout_ms, "DURATION", "BURROW_IDLE_TIMEOUT", 0,
        YEAR_MS,
        "a sandbox that asks for no other time ends after so long without use; 0 is never (default "
        "10m)"),
    ROW("execution-timeout", OPTION_DURATION, execution_timeout_ms, "DURATION",
        "BURROW_EXECUTION_TIMEOUT", 0, YEAR_MS,
        "a command that asks for no other time is ended after so long; 0 is never (default 0)"),
    ROW("max-idle-timeout", OPTION_DURATION, ceilings.idle_timeout_ms, "DURATION",
        "BURROW_MAX_IDLE_TIMEOUT", 0, YEAR_MS,
        "the longest idle time a sandbox can ask for; who asks for none gets this; 0 is any "
        "(default 0)"),
    ROW("max-execution-timeout", OPTION_DURATION, ceilings.execution_timeout_ms, "DURATION",
        "BURROW_MAX_EXECUTION_TIMEOUT", 0, YEAR_MS,
        "the same for the time of a command (default 0)"),
    ROW("max-lifetime", OPTION_DURATION, ceilings.lifetime_ms, "DURATION", "BURROW_MAX_LIFETIME", 0,
        YEAR_MS,
        "a sandbox ends so long after it was made, with its running commands; 0 is never "
        "(default 0)"),
    ROW("output-limit", OPTION_SIZE, output_bytes, "SIZE", "BURROW_OUTPUT_LIMIT", 4096, 1024 * TIB,
        "how much of each output of a command is kept (default 64Mi)"),
    ROW("stream-limit", OPTION_SIZE, stream_bytes, "SIZE", "BURROW_STREAM_LIMIT", 4096, 1024 * TIB,
        "how large a stream of a user may become (default 1Gi)"),
    ROW("spool-limit", OPTION_SIZE, spool_bytes, "SIZE", "BURROW_SPOOL_LIMIT", 0, 1024 * TIB,
        "how much output of commands is kept together, and as much of users' streams; 0 is a tenth "
        "of the disk (default 0)"),
    ROW("file-limit", OPTION_SIZE, file_bytes, "SIZE", "BURROW_FILE_LIMIT", 4096, 1024 * TIB,
        "the largest file or archive that is read or written in one request (default 1Gi)"),
    ROW("file-timeout", OPTION_DURATION, file_timeout_ms, "DURATION", "BURROW_FILE_TIMEOUT", 0,
        YEAR_MS,
        "how long one request may work on files in a sandbox; 0 is any time (default 10m)"),
    ROW("end-when-quiet", OPTION_DURATION, quiet_ms, "DURATION", "BURROW_END_WHEN_QUIET", 0,
        YEAR_MS,
        "end by itself after so long without a request and a sandbox; 0 is never (default 0)"),
    ROW("stand-in", OPTION_TEXT, stand_in, "WORD", "BURROW_STAND_IN", 0, 0,
        "yes: as commands start one in the background: it makes no first key, and stops when "
        "another is started on its data directory (default no)"),
    ROW("temporary-limit", OPTION_SIZE, temporary_bytes, "SIZE", "BURROW_TEMPORARY_LIMIT", 0,
        1024 * TIB,
        "the room for files on their way into sandboxes and out of them, in the data directory "
        "(default: half of what is free)"),
    ROW("temporary-limit-per-key", OPTION_SIZE, temporary_key_bytes, "SIZE",
        "BURROW_TEMPORARY_LIMIT_PER_KEY", 0, 1024 * TIB,
        "how much of it one key may take (default: half)"),
    ROW("keep", OPTION_DURATION, keep_ms, "DURATION", "BURROW_KEEP", 60000, 100 * YEAR_MS,
        "how long records and streams of ended sandboxes are kept, and output of commands that "
        "ended in others (default 24h)"),
    ROW("keep-events", OPTION_DURATION, event_keep_ms, "DURATION", "BURROW_KEEP_EVENTS", 60000,
        100 * YEAR_MS, "how long events can be followed from (default 72h)"),
    ROW("keep-audit", OPTION_DURATION, audit_keep_ms, "DURATION", "BURROW_KEEP_AUDIT", 60000,
        100 * YEAR_MS, "how long it is known who changed what (default 90d)"),
    ROW("keep-usage", OPTION_DURATION, usage_keep_ms, "DURATION", "BURROW_KEEP_USAGE",
        24 * 3600 * 1000, 100 * YEAR_MS, "how long it is known what was used (default 400d)"),
    ROW("max-events", OPTION_INTEGER, max_events, "N", "BURROW_MAX_EVENTS", 0, 1000000000,
        "how many of them are kept at most; 0 is any number (default 1000000)"),
    ROW("port-range", OPTION_TEXT, port_range, "FIRST-LAST", "BURROW_PORT_RANGE", 0, 0,
        "ports of this machine that exposed ports of sandboxes get, at the addresses of --listen "
        "(default 20000-29999)"),
    ROW("port-rest", OPTION_DURATION, port_rest_ms, "DURATION", "BURROW_PORT_REST", 0, YEAR_MS,
        "how long one that was given up is not handed out again (default 10m)"),
    ROW("preview-domain", OPTION_TEXT, preview_domain, "DOMAIN", "BURROW_PREVIEW_DOMAIN", 0, 0,
        "names PORT-ID.DOMAIN lead to exposed ports, at the addresses of --listen; "
        "https://DOMAIN[:PORT] says how clients reach it through a proxy (default: none)"),
    ROW("mount-allow", OPTION_TEXT, mount_allow, "DIRS", "BURROW_MOUNT_ALLOW", 0, 0,
        "sandboxes of every key may be given directories of this machine at or below these, "
        "several with commas between (default: none)"),
    ROW("webhook-networks", OPTION_TEXT, webhook_networks, "NETWORKS", "BURROW_WEBHOOK_NETWORKS", 0,
        0,
        "networks that webhooks may be in beside public ones, several with commas between: "
        "10.0.0.0/8 (default: none)"),
    ROW("webhook-http", OPTION_TEXT, webhook_http, "WORD", "BURROW_WEBHOOK_HTTP", 0, 0,
        "yes: webhooks may have http:// addresses too (default no: https:// alone)"),
    ROW("ssh-listen", OPTION_TEXT, ssh_listen, "ADDR:PORT", "BURROW_SSH_LISTEN", 0, 0,
        "where to listen for SSH into sandboxes, several with commas between (default: nowhere)"),
    ROW("ssh-connections", OPTION_INTEGER, ssh_connections, "N", "BURROW_SSH_CONNECTIONS", 1,
        100000, "connections of SSH at once (default 512)"),
    ROW("ssh-connections-per-sandbox", OPTION_INTEGER, ssh_connections_per_sandbox, "N",
        "BURROW_SSH_CONNECTIONS_PER_SANDBOX", 1, 100000, "of those, into one sandbox (default 64)"),
    ROW("ssh-strangers", OPTION_INTEGER, ssh_strangers, "N", "BURROW_SSH_STRANGERS", 1, 100000,
        "of those, that have not logged in; past it the oldest of them is closed (default 128)"),
    ROW("ssh-strangers-per-address", OPTION_INTEGER, ssh_strangers_per_address, "N",
        "BURROW_SSH_STRANGERS_PER_ADDRESS", 1, 100000, "the same of one address (default 64)"),
    ROW("ssh-rate-per-address", OPTION_INTEGER, ssh_rate_per_address, "N",
        "BURROW_SSH_RATE_PER_ADDRESS", 1, 100000,
        "new ones of one address that are served in a second; others wait (default 50)"),
    ROW("ssh-login-time", OPTION_DURATION, ssh_login_ms, "DURATION", "BURROW_SSH_LOGIN_TIME", 1000,
        3600 * 1000, "how long they may take to log in (default 30s)"),
    ROW("ssh-tries", OPTION_INTEGER, ssh_tries, "N", "BURROW_SSH_TRIES", 1, 100,
        "how many keys that do not fit one connection may offer (default 6)"),
    ROW("ssh-dead-after", OPTION_DURATION, ssh_dead_after_ms, "DURATION", "BURROW_SSH_DEAD_AFTER",
        2000, 12LL * 3600 * 1000,
        "how long a client's machine may leave TCP unanswered until it counts as gone (default "
        "1m)"),
    ROW("ssh-allow", OPTION_TEXT, ssh_allow, "WORDS", "BURROW_SSH_ALLOW", 0, 0,
        "what clients of SSH may ask for besides: remote-forward, agent (default: neither)"),
    ROW("network", OPTION_TEXT, network, "WORD", "BURROW_NETWORK", 0, 0,
        "no: sandboxes get no network, whatever they ask for (default yes)"),
    ROW("network-allow-always", OPTION_TEXT, network_settings.allow_always, "RULES",
        "BURROW_NETWORK_ALLOW_ALWAYS", 0, 0,
        "where every sandbox with a network may go, whatever its own rules say; opens private "
        "addresses and host:PORT too. Several with commas between (default: nowhere)"),
    ROW("network-deny-always", OPTION_TEXT, network_settings.deny_always, "RULES",
        "BURROW_NETWORK_DENY_ALWAYS", 0, 0, "where none may go (default: nowhere)"),
    ROW("network-baseline", OPTION_TEXT, network_settings.baseline, "RULES",
        "BURROW_NETWORK_BASELINE", 0, 0,
        "'deny RULE' and 'allow RULE' with commas between: where a sandbox's own rules say "
        "nothing (default: none)"),
    ROW("network-addresses", OPTION_TEXT, network_settings.addresses, "NETWORK",
        "BURROW_NETWORK_ADDRESSES", 0, 0,
        "the addresses that sandboxes have; of no use elsewhere on the machine (default "
        "10.213.0.0/16)"),
    ROW("network-uplink", OPTION_TEXT, network_settings.uplink, "INTERFACE",
        "BURROW_NETWORK_UPLINK", 0, 0,
        "the machine's interface that sandboxes may use, as eth0 (default: any, by its routes)"),
    ROW("network-dns", OPTION_TEXT, network_settings.dns, "ADDRESSES", "BURROW_NETWORK_DNS", 0, 0,
        "whom names are asked for (default: as the machine does)"),
    ROW("network-proxy", OPTION_TEXT, network_settings.proxy, "URL", "BURROW_NETWORK_PROXY", 0, 0,
        "an HTTP proxy that connections of sandboxes with rules go through (default: none)"),
    ROW("network-rate", OPTION_SIZE, network_settings.rate_bytes, "SIZE", "BURROW_NETWORK_RATE", 0,
        1024 * TIB, "out of each sandbox, a second; 0 is any (default 0)"),
    ROW("max-sandboxes", OPTION_INTEGER, max_sandboxes, "N", "BURROW_MAX_SANDBOXES", 1, 100000,
        "how many may be alive at once; more are refused with 429 (default 10000)"),
    COUNT_OPTION("organisation-sandboxes", organisation.sandboxes, "ORGANISATION_SANDBOXES",
                 "how many of them one organisation may have; 0 is no limit (default 0)"),
    COUNT_OPTION("max-streams", total.streams, "MAX_STREAMS",
                 "how many streams of users are kept; 0 is no limit (default 100000)"),
    COUNT_OPTION("organisation-streams", organisation.streams, "ORGANISATION_STREAMS",
                 "how many of them for one organisation (default 10000)"),
    COUNT_OPTION("max-snapshots", total.snapshots, "MAX_SNAPSHOTS",
                 "how many snapshots are kept; 0 is no limit (default 10000)"),
    COUNT_OPTION("organisation-snapshots", organisation.snapshots, "ORGANISATION_SNAPSHOTS",
                 "how many of them for one organisation (default 1000)"),
    COUNT_OPTION("max-checkpoints", total.checkpoints, "MAX_CHECKPOINTS",
                 "how many checkpoints are kept; 0 is no limit (default 10000)"),
    COUNT_OPTION("organisation-checkpoints", organisation.checkpoints, "ORGANISATION_CHECKPOINTS",
                 "how many of them for one organisation (default 1000)"),
    ROW("parked-one-shot", OPTION_INTEGER, spare_one_shot, "N", "BURROW_PARKED_ONE_SHOT", 0, 10000,
        "sandboxes made ahead for one-shot runs; 0 is none (default 16)"),
    ROW("parked-kept", OPTION_INTEGER, spare_kept, "N", "BURROW_PARKED_KEPT", 0, 10000,
        "the same for sandboxes that stay; 0 is none (default 4)"),
    ROW("parked-memory", OPTION_SIZE, spare_memory_bytes, "SIZE", "BURROW_PARKED_MEMORY", 0,
        1024 * TIB,
        "memory that sandboxes made ahead may hold together; 0 makes none (default 256Mi)"),
    ROW("parked-for", OPTION_DURATION, spare_keep_ms, "DURATION", "BURROW_PARKED_FOR", 1000,
        100 * YEAR_MS,
        "how long such sandboxes wait after somebody last asked for their runtime (default 10m)"),
    ROW("debian-mirror", OPTION_TEXT, debian_mirror, "URL", "BURROW_DEBIAN_MIRROR", 0, 0,
        "where packages of runtimes come from; after a comma its security archive (default: the "
        "machine's own)"),
    ROW("npm-registry", OPTION_TEXT, npm_registry, "URL", "BURROW_NPM_REGISTRY", 0, 0,
        "the same for those of npm (default: npm's own)"),
    ROW("image-timeout", OPTION_DURATION, image_timeout_ms, "DURATION", "BURROW_IMAGE_TIMEOUT",
        1000, 86400000,
        "how long a registry of images may send nothing before it is given up (default 2m)"),
    ROW("keep-packages", OPTION_DURATION, packages_keep_ms, "DURATION", "BURROW_KEEP_PACKAGES",
        60000, 100 * YEAR_MS,
        "how long packages that were installed for a sandbox are kept after their last use "
        "(default 14d)"),
    ROW("max-connections", OPTION_INTEGER, max_connections, "N", "BURROW_MAX_CONNECTIONS", 16,
        1000000,
        "connections at once; past it one without a key is closed, or the longest idle (default "
        "16384)"),
    ROW("connections-per-address", OPTION_INTEGER, connections_per_address, "N",
        "BURROW_CONNECTIONS_PER_ADDRESS", 1, 1000000,
        "connections of one address that have shown no key; past it the oldest of them is closed "
        "(default 1024)"),
    ROW("workers", OPTION_INTEGER, workers, "N", "BURROW_WORKERS", 1, 1024,
        "threads for short work (default 8)"),
    ROW("slow-workers", OPTION_INTEGER, slow_workers, "N", "BURROW_SLOW_WORKERS", 1, 1024,
        "threads for work that takes its time: starting sandboxes, transfers (default 32)"),
    {0},
};

static const struct option_row secret_rows[] = {
    ROW("api-key", OPTION_TEXT, api_key, "KEY", "BURROW_API_KEY", 0, 0,
        "a key of at least 20 characters that clients may use; replaces the one it was before"),
    {0},
};

static const char *const examples[] = {
    "$ burrow serve",
    "$ burrow serve --listen 127.0.0.1:8080 --data /srv/burrow --log json",
    "$ BURROW_API_KEY=$(cat key) burrow serve --listen 0.0.0.0:4747 --public-url "
    "https://sandbox.example.com",
    NULL,
};

const struct option_set config_options = {
    .command = "burrow serve",
    .usage = "[options]",
    .summary = "serve sandboxes over HTTP",
    .description =
        "Listens on TCP and on the socket burrow.sock in the data directory, which root "
        "may use without a key.\n"
        "The first start makes a key and prints it once; BURROW_API_KEY sets one "
        "instead, and 'burrow key' manages\n"
        "them. Sandboxes live on when the server stops; the next one takes them over.\n"
        "\n"
        "Every option has a variable, named in brackets, and the same name is its key "
        "in the file: 'BURROW_LISTEN:\n"
        "127.0.0.1:8080'. Options win over variables, variables over the file. The Aionis "
        "routes have settings of\n"
        "their own, as variables and in the file: burrow-serve(1) names them.",
    .rows = rows,
    .examples = examples,
};

static const struct option_set secrets = {.command = "burrow serve", .rows = secret_rows};

// ---- defaults ----

static char *default_data_dir(void)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (geteuid() == 0)
        return xstrdup(DATA_DIR_DEFAULT);
    if (data && *data == '/')
        return xasprintf("%s/burrow", data);
    const struct passwd *user = home && *home ? NULL : getpwuid(geteuid());
    return xasprintf("%s/.local/share/burrow", user ? user->pw_dir : home);
}

void config_init(struct config *config)
{
    const struct core_settings *core = &core_settings_default;

    *config = (struct config){
        .listen = "127.0.0.1:4747",
        .log = "text",
        .webhook_http = "no",
        .stand_in = "no",
        .ssh_connections = 512,
        .ssh_connections_per_sandbox = 64,
        .ssh_strangers = 128,
        .ssh_strangers_per_address = 64,
        .ssh_rate_per_address = 50,
        .ssh_login_ms = 30000,
        .ssh_tries = 6,
        .ssh_dead_after_ms = 60000,
        .network = "yes",
        .port_range = "20000-29999",
        .port_rest_ms = (uint64_t)core->port_rest_ms,
        .log_level = "info",
        .runtime = core->default_runtime,
        .limits = core->limits,
        .ceilings = core->ceilings,
        .boxes_cpu_weight = core->boxes_cpu_weight,
        .idle_timeout_ms = (uint64_t)core->idle_timeout_ms,
        .execution_timeout_ms = (uint64_t)core->execution_timeout_ms,
        .output_bytes = (uint64_t)core->output_cap_bytes,
        .stream_bytes = (uint64_t)core->stream_limit_bytes,
        .spool_bytes = (uint64_t)core->spool_limit_bytes,
        .file_bytes = (uint64_t)core->file_limit_bytes,
        .file_timeout_ms = (uint64_t)core->file_timeout_ms,
        .keep_ms = (uint64_t)core->keep_ms,
        .event_keep_ms = (uint64_t)core->event_keep_ms,
        .audit_keep_ms = (uint64_t)core->audit_keep_ms,
        .usage_keep_ms = (uint64_t)core->usage_keep_ms,
        .max_events = core->max_events,
        .max_sandboxes = core->max_sandboxes,
        .spare_one_shot = core->spare_one_shot,
        .spare_kept = core->spare_kept,
        .spare_memory_bytes = (uint64_t)core->spare_memory_bytes,
        .spare_keep_ms = (uint64_t)core->spare_keep_ms,
        .image_timeout_ms = core->image_timeout_ms,
        .packages_keep_ms = (uint64_t)core->packages_keep_ms,
        .max_connections = (int64_t)http_limits_default.connections,
        .connections_per_address = (int64_t)http_limits_default.strangers,
        .workers = 8,
        .slow_workers = 32,
        .agentuity = agentuity_settings_default,
        .e2b = e2b_settings_default,
        .aionis = aionis_settings_default,
        .default_data_dir = default_data_dir(),
    };
    config->data_dir = config->default_data_dir;
}

void config_clear(struct config *config)
{
    data_document_free(config->document);
    free(config->default_data_dir);
    for (size_t i = 0; i < config->n_kept; i++)
        free(config->kept[i]);
    free(config->kept);
    *config = (struct config){0};
}

void config_keep(struct config *config, char *text)
{
    config->kept = xrealloc(config->kept, config->n_kept + 1, sizeof *config->kept);
    config->kept[config->n_kept++] = text;
}

// ---- the file ----

#define MAX_ROWS 128

static size_t add_variables(const struct option_row *from, const char **names)
{
    size_t count = 0;

    for (; from->name; from++)
        names[count++] = from->environment;
    return count;
}

// What wants JSON may be written as lists and maps of the file's own.
static const char *print_json(const struct data_value *member, struct config *config)
{
    struct buffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_value(&json, member);
    (void)json_writer_finish(&json, &ignored);
    config_keep(config, text.data);
    return text.data;
}

static const char *text_of(const struct data_value *member, struct config *config)
{
    bool is_aionis = strncmp(member->key, "BURROW_AIONIS_", 14) == 0;

    if (member->kind == VALUE_NUMBER || member->kind == VALUE_STRING)
        return strlen(member->text) == member->length ? member->text : NULL;
    return is_aionis ? print_json(member, config) : NULL;
}

static int take_member(const struct data_value *member, struct config *config, struct error *err)
{
    static const struct option_set *const sets[] = {&config_options, &secrets, &aionis_options};

    if (member->kind == VALUE_NULL)
        return 0;
    const char *value = text_of(member, config);
    if (!value)
        return value_error(member, err, "must be a text or a number, not %s",
                           value_kind_name(member->kind));
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        struct error why = {0};
        if (options_set(sets[i], member->key, value, config, &why) == 0)
            return 0;
        if (!error_is(&why, ERROR_NOT_FOUND))
            return value_error(member, err, "%s", why.text);
    }
    return value_error(member, err, "unknown field");
}

static int read_file(struct config *config, const char *path, struct error *err)
{
    const char *known[MAX_ROWS + 1] = {0};
    size_t count = add_variables(rows, known);

    _Static_assert(ARRAY_SIZE(rows) + ARRAY_SIZE(secret_rows) < MAX_ROWS, "no room for the names");
    count += add_variables(secret_rows, known + count);
    (void)add_variables(aionis_options.rows, known + count);
    if (yaml_read_file(path, &config->document, err) < 0)
        return -1;
    const struct data_value *root = config->document->root;
    if (root->kind == VALUE_NULL)
        return 0;
    if (value_check_keys(root, known, err) < 0)
        return -1;
    for (const struct data_value *member = root->first; member; member = member->next)
        if (take_member(member, config, err) < 0)
            return -1;
    return 0;
}

// ---- checks ----

static int check_word(const char *name, const char *value, const char *const *words,
                      struct error *err)
{
    char known[80] = "";

    for (size_t i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0)
            return 0;
        (void)snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                       words[i]);
    }
    return error_set(err, ERROR_INVALID, "%s '%.80s' is none of: %s", name, value, known);
}

static int check_listen(const struct config *config, struct error *err)
{
    char address[CONFIG_ADDRESS], host[CONFIG_ADDRESS];
    const char *port;
    size_t i = 0;

    for (; config_address(config, i, address); i++)
        if (!config_split_address(address, host, &port) || strtoul(port, NULL, 10) > 65535)
            return error_set(err, ERROR_INVALID,
                             "listen '%.100s' is no address: write 127.0.0.1:4747, localhost:4747, "
                             "[::1]:4747 or :4747 for all addresses",
                             address);
    return i ? 0 : error_set(err, ERROR_INVALID, "listen names no address: write 127.0.0.1:4747");
}

static int check_ssh_listen(const struct config *config, struct error *err)
{
    char address[CONFIG_ADDRESS], host[CONFIG_ADDRESS];
    const char *port;

    for (size_t i = 0; config_ssh_address(config, i, address); i++)
        if (!config_split_address(address, host, &port) || strtoul(port, NULL, 10) > 65535)
            return error_set(err, ERROR_INVALID,
                             "ssh-listen '%.100s' is no address: write 127.0.0.1:2222, "
                             "[::1]:2222 or :2222 for all addresses",
                             address);
    return 0;
}

static int check_networks(const char *text, struct error *err)
{
    struct networks networks = {0};

    if (networks_read(text, &networks, err) < 0)
        return error_wrap(err, "webhook-networks");
    networks_clear(&networks);
    return 0;
}

/* The addresses of boxes and the proxy are checked by those who use them. */
static int check_network(const struct config *config, struct error *err)
{
    const struct core_settings settings = {.network = config->network_settings};

    return network_settings_check(&settings, err);
}

static bool read_range(const char *text, int64_t *first, int64_t *last)
{
    unsigned long from, to;
    char rest;

    if (sscanf(text, "%5lu-%5lu%c", &from, &to, &rest) != 2 || from < PORT_LEAST ||
        to > PORT_MOST || from > to || strspn(text, "0123456789-") != strlen(text))
        return false;
    *first = (int64_t)from;
    *last = (int64_t)to;
    return true;
}

/* Behind the scheme, where one is named. */
static const char *bare_domain(const char *text)
{
    const char *mark = strstr(text, "://");

    return mark ? mark + 3 : text;
}

static int check_ports(const struct config *config, struct error *err)
{
    const char *domain = config->preview_domain ? bare_domain(config->preview_domain) : NULL;
    int64_t first, last;

    if (!read_range(config->port_range, &first, &last))
        return error_set(err, ERROR_INVALID,
                         "port-range '%.60s' is none: write FIRST-LAST, from 1024 to 65535, such "
                         "as 20000-29999",
                         config->port_range);
    if (!domain)
        return 0;
    size_t length =
        strspn(domain, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    bool has_scheme = domain == config->preview_domain ||
                      strncmp(config->preview_domain, "http://", 7) == 0 ||
                      strncmp(config->preview_domain, "https://", 8) == 0;
    const char *port = domain[length] == ':' ? domain + length + 1 : "1";
    if (!has_scheme || length == 0 || length > 200 || *domain == '.' || domain[length - 1] == '.' ||
        (domain[length] && domain[length] != ':') || port[strspn(port, "0123456789")] || !*port ||
        strtoul(port, NULL, 10) > 65535)
        return error_set(err, ERROR_INVALID,
                         "preview-domain '%.200s' is none: write preview.example.com or "
                         "https://preview.example.com",
                         config->preview_domain);
    return 0;
}

static int check_url(const char *url, struct error *err)
{
    size_t length = strlen(url);

    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        strpbrk(url, " \t\r\n\"<>"))
        return error_set(err, ERROR_INVALID,
                         "public-url '%.200s' must begin with http:// or https://", url);
    if (url[length - 1] == '/')
        return error_set(err, ERROR_INVALID, "public-url '%.200s' must not end with a slash", url);
    return 0;
}

/* More than there is was a slip of the pen. */
static int check_spares(const struct config *config, struct error *err)
{
    uint64_t bytes = config->spare_memory_bytes;
    int64_t given = config->boxes_memory_bytes;
    uint64_t all = (uint64_t)(given > 0 ? given : machine_size().memory_bytes);

    if (bytes <= all || bytes == (uint64_t)core_settings_default.spare_memory_bytes)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "parked-memory: %" PRIu64 " MiB is more than all sandboxes together have, "
                     "which is %" PRIu64 " MiB; give less, or 0 for no sandboxes made ahead",
                     bytes >> 20, all >> 20);
}

static int check(const struct config *config, struct error *err)
{
    static const char *const formats[] = {"text", "json", NULL};
    static const char *const yes_or_no[] = {"no", "yes", NULL};
    static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
    struct runtime_reference reference;
    unsigned ssh_allows;

    if (check_word("log", config->log, formats, err) < 0 ||
        check_word("log-level", config->log_level, levels, err) < 0 ||
        check_word("webhook-http", config->webhook_http, yes_or_no, err) < 0 ||
        check_word("stand-in", config->stand_in, yes_or_no, err) < 0 ||
        check_word("network", config->network, yes_or_no, err) < 0 ||
        check_network(config, err) < 0 || check_listen(config, err) < 0 ||
        check_ssh_listen(config, err) < 0 ||
        ssh_allow_parse(config->ssh_allow, &ssh_allows, err) < 0 || check_ports(config, err) < 0 ||
        (config->public_url && check_url(config->public_url, err) < 0) ||
        check_networks(config->webhook_networks, err) < 0 ||
        mount_allow_check(config->mount_allow, err) < 0 ||
        runtime_reference_parse(config->runtime, &reference, err) < 0)
        return -1;
    if (!*config->agentuity.region || !*config->data_dir)
        return error_set(err, ERROR_INVALID, "%s must not be empty",
                         *config->agentuity.region ? "data" : "region");
    const struct limits together = {.memory_bytes = config->boxes_memory_bytes};
    if (limits_check(&config->limits, err) < 0)
        return -1;
    if (limits_check(&config->ceilings.sandbox, err) < 0)
        return error_wrap(err, "the most that one can ask for");
    if (limits_check(&together, err) < 0)
        return error_wrap(err, "sandboxes-memory");
    if (check_spares(config, err) < 0)
        return -1;
    return aionis_settings_check(&config->aionis, err);
}

// ---- reading ----

static int parse(int argc, char **argv, struct config *config, struct error *err)
{
    int operands = argc;

    // Secrets have variables and no options; nor has what only one protocol needs.
    if (aionis_config_read_vendor(config, err) < 0 ||
        options_parse(&aionis_options, 1, argv, config, &operands, err) < 0 ||
        options_parse(&secrets, 1, argv, config, &operands, err) < 0)
        return -1;
    int parsed = options_parse(&config_options, argc, argv, config, &operands, err);
    if (parsed == 0 && operands < argc)
        return error_set(err, ERROR_INVALID, "serve takes no '%s'", argv[operands]);
    return parsed;
}

int config_read(int argc, char **argv, struct config *config, struct error *err)
{
    config_init(config);
    int parsed = parse(argc, argv, config, err); // first for the file's name
    if (parsed != 0)
        return parsed;
    const char *file = config->file                     ? config->file
                       : access(CONFIG_FILE, F_OK) == 0 ? CONFIG_FILE
                                                        : NULL;
    config_clear(config);
    config_init(config);
    if (file && read_file(config, file, err) < 0)
        return -1;
    if (parse(argc, argv, config, err) < 0)
        return -1;
    config->file = file;
    return check(config, err);
}

// ---- what others want of it ----

void config_core(const struct config *config, struct core_settings *out)
{
    *out = core_settings_default;
    out->data_dir = config->data_dir;
    out->default_runtime = config->runtime;
    out->limits = config->limits;
    out->ceilings = config->ceilings;
    out->boxes_memory_bytes = config->boxes_memory_bytes;
    out->boxes_processes = config->boxes_processes;
    out->boxes_cpu_weight = config->boxes_cpu_weight;
    out->idle_timeout_ms = (int64_t)config->idle_timeout_ms;
    out->execution_timeout_ms = (int64_t)config->execution_timeout_ms;
    out->output_cap_bytes = (int64_t)config->output_bytes;
    out->stream_limit_bytes = (int64_t)config->stream_bytes;
    out->spool_limit_bytes = (int64_t)config->spool_bytes;
    out->file_limit_bytes = (int64_t)config->file_bytes;
    out->file_timeout_ms = (int64_t)config->file_timeout_ms;
    out->temporary_bytes = (int64_t)config->temporary_bytes;
    out->temporary_key_bytes = (int64_t)config->temporary_key_bytes;
    out->keep_ms = (int64_t)config->keep_ms;
    out->event_keep_ms = (int64_t)config->event_keep_ms;
    out->audit_keep_ms = (int64_t)config->audit_keep_ms;
    out->usage_keep_ms = (int64_t)config->usage_keep_ms;
    out->max_events = config->max_events;
    out->mount_allow = config->mount_allow;
    out->webhook_networks = config->webhook_networks;
    out->is_webhook_http_allowed = config->webhook_http && strcmp(config->webhook_http, "yes") == 0;
    out->is_stand_in = config_is_stand_in(config);
    out->network = config->network_settings;
    out->network.is_allowed = !config->network || strcmp(config->network, "yes") == 0;
    (void)read_range(config->port_range, &out->port_range_first, &out->port_range_last); // checked
    out->port_rest_ms = (int64_t)config->port_rest_ms;
    out->has_port_names = config->preview_domain != NULL;
    out->max_sandboxes = (unsigned)config->max_sandboxes;
    out->spare_one_shot = (unsigned)config->spare_one_shot;
    out->spare_kept = (unsigned)config->spare_kept;
    out->spare_memory_bytes = (int64_t)config->spare_memory_bytes;
    out->spare_keep_ms = (int64_t)config->spare_keep_ms;
    out->debian_mirror = config->debian_mirror;
    out->npm_registry = config->npm_registry;
    out->image_timeout_ms = config->image_timeout_ms;
    out->packages_keep_ms = (int64_t)config->packages_keep_ms;
}

/* Where no port is named, it is the one that is listened on, unless a proxy stands before it, which only a scheme tells of. */
void config_previews(struct config *config, struct preview_names *out)
{
    const char *text = config->preview_domain;
    char address[CONFIG_ADDRESS];

    *out = (struct preview_names){.scheme = "http", .port = ""};
    if (!text)
        return;
    const char *domain = bare_domain(text);
    size_t length = strcspn(domain, ":");
    char *name = xasprintf("%.*s", (int)length, domain);
    config_keep(config, name);
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    out->domain = name;
    if (strncmp(text, "https://", 8) == 0)
        out->scheme = "https";
    if (domain[length]) {
        out->port = domain + length;
    } else if (domain == text && config_address(config, 0, address)) {
        out->port = xasprintf("%s", strrchr(address, ':'));
        config_keep(config, (char *)(uintptr_t)out->port);
    }
}

bool config_is_stand_in(const struct config *config)
{
    return config->stand_in && strcmp(config->stand_in, "yes") == 0;
}

enum log_format config_log_format(const struct config *config)
{
    return config->log && strcmp(config->log, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
}

enum log_level config_log_level(const struct config *config)
{
    enum log_level level = LOG_LEVEL_INFO;

    if (config->log_level)
        (void)log_level_parse(config->log_level, &level);
    return level;
}
