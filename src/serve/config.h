/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server is told: by options, by environment variables of the same meaning, and by a file whose keys are those
 * variables. The option wins over the variable, the variable over the file, the file over the default. One table holds them
 * all; help, checks and the manual's test come from it.
 * Threads: one thread; the main one, at the start and when settings are read again.
 */
#pragma once
#include "base/auto.h"
#include "base/log.h"
#include "base/options.h"
#include "core/core.h"
#include "front/agentuity/agentuity.h"
#include "front/aionis/aionis.h"
#include "front/api/api_manners.h"
#include "front/e2b/e2b.h"
#include "web/preview.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_FILE "/etc/burrow/burrow.yaml" // read where it exists and no other is named

struct config {
    const char *file;
    const char *data_dir;
    const char *listen; // addresses, with commas between
    const char *api_key;
    const char *public_url;
    const char *log;
    const char *log_level;
    const char *runtime;
    struct limits limits; // of a sandbox that asks for nothing else; 0: no limit
    struct ceilings ceilings;
    int64_t boxes_memory_bytes;
    int64_t boxes_processes;
    int64_t boxes_cpu_weight;
    uint64_t idle_timeout_ms;
    uint64_t execution_timeout_ms;
    uint64_t output_bytes;
    uint64_t stream_bytes;
    uint64_t spool_bytes;
    uint64_t file_bytes;
    uint64_t file_timeout_ms;
    const char *stand_in;     // yes: gives way to another server, and changes no keys
    uint64_t quiet_ms;        // after which the server ends where nobody needs it; 0: never
    uint64_t temporary_bytes; // 0: as the free space allows
    uint64_t temporary_key_bytes;
    uint64_t keep_ms;
    uint64_t event_keep_ms;
    uint64_t audit_keep_ms;
    uint64_t usage_keep_ms;
    int64_t max_events;
    const char *port_range;
    const char *preview_domain;
    uint64_t port_rest_ms;
    const char *mount_allow;
    const char *webhook_networks;
    const char *webhook_http;
    const char *ssh_listen; // addresses, with commas between; NULL: none
    int64_t ssh_connections, ssh_connections_per_sandbox;
    int64_t ssh_strangers, ssh_strangers_per_address, ssh_rate_per_address;
    uint64_t ssh_login_ms, ssh_dead_after_ms;
    int64_t ssh_tries;
    const char *ssh_allow; // words, with commas between; NULL: none
    const char *network;   // yes or no
    struct network_settings network_settings;
    int64_t max_sandboxes;
    int64_t spare_one_shot;
    int64_t spare_kept;
    uint64_t spare_memory_bytes;
    uint64_t spare_keep_ms;
    const char *debian_mirror;
    const char *npm_registry;
    uint64_t image_timeout_ms;
    uint64_t packages_keep_ms;
    int64_t max_connections;
    int64_t connections_per_address;
    int64_t workers;
    int64_t slow_workers;
    struct agentuity_settings agentuity;
    struct aionis_settings aionis;
    struct api_settings api;
    struct e2b_settings e2b;
    const char *e2b_debug;          // addresses, with commas between; NULL: none
    struct data_document *document; // owns the file's strings
    char *default_data_dir;
    char **kept; // strings that were made while reading
    size_t n_kept;
};

/* All defaults. The data directory is /var/lib/burrow for root, below the user's home for others. */
void config_init(struct config *config);
void config_clear(struct config *config);
#define autoconfig __attribute__((cleanup(config_clear))) struct config

/* 0; OPTIONS_HELP; -1 with what is wrong and where it was said. `config` need not be initialised, and is to be cleared. */
int config_read(int argc, char **argv, struct config *config, struct error *err);

/* The options and variables. */
extern const struct option_set config_options;

/* The text goes with the settings. */
void config_keep(struct config *config, char *text);

/* As the core and the logger want them. Texts are borrowed. */
void config_core(const struct config *config, struct core_settings *out);
bool config_is_stand_in(const struct config *config);
enum log_format config_log_format(const struct config *config);
enum log_level config_log_level(const struct config *config);

/* What the settings say of exposed ports. Texts go with the settings. */
void config_previews(struct config *config, struct preview_names *out);

/* The address at `index` of the comma-separated list, in `out` (which is cut, never overrun); false behind the last. */
#define CONFIG_ADDRESS 128
bool config_address(const struct config *config, size_t index, char out[CONFIG_ADDRESS]);
/* The same of --ssh-listen. */
bool config_ssh_address(const struct config *config, size_t index, char out[CONFIG_ADDRESS]);
/* The same of any such list. */
bool config_find_address(const char *at, size_t index, char out[CONFIG_ADDRESS]);
/* "127.0.0.1:80" and "[::1]:80"; the host of ":80" is empty. */
bool config_split_address(const char *address, char host[CONFIG_ADDRESS], const char **port);
/* Whether only this machine can reach it. */
bool config_is_loopback(const char *address);
