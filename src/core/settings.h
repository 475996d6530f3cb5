/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator can set: one plain value that every room of the core may read.
 * Threads: plain values.
 */
#pragma once
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* How many there may be; 0: no limit. */
struct counts {
    int64_t sandboxes; // alive at once
    int64_t streams;   // of users; outputs of commands are kept by time
    int64_t snapshots;
    int64_t checkpoints; // of sandboxes that are alive
};

/* The most that can be asked for. */
struct ceilings {
    struct limits sandbox;   // 0: core_open puts what the machine has there
    int64_t idle_timeout_ms; // of these three 0: none. Who asks for no time at all gets the ceiling
    int64_t execution_timeout_ms;
    int64_t lifetime_ms;
    struct counts total;        // on the whole server; sandboxes: max_sandboxes is meant
    struct counts organisation; // of each
};

/* What sandboxes may reach. Rules are texts with commas between (policy/policy.h); NULL: none. */
struct network_settings {
    bool is_allowed;          // whether there may be a network at all
    const char *addresses;    // that the sandboxes have; NULL: as engine/gateway.h says
    const char *uplink;       // the machine's interface that they may use; NULL: any
    const char *dns;          // whom names are asked for; NULL: as the machine does
    const char *proxy;        // that all connections go through; NULL: none
    const char *allow_always; // before the rules of their owners
    const char *deny_always;  // before those
    const char *baseline;     // "deny X, allow Y": behind the rules of their owners
    int64_t rate_bytes;       // out of each, a second, at most; 0: any
};

/* core_settings_default is where to start from. */
struct core_settings {
    const char *data_dir;
    const char *default_runtime;
    struct limits limits; // of a sandbox that asks for none
    struct ceilings ceilings;
    int64_t
        boxes_memory_bytes; // of all sandboxes together; 0: core_open puts what the machine has there
    int64_t boxes_processes;  // likewise
    int64_t boxes_cpu_weight; // 1 to 10000; 100 is what every other group on the machine has
    int64_t idle_timeout_ms;
    int64_t execution_timeout_ms; // 0: none
    int64_t output_cap_bytes;     // per stream of an execution
    int64_t stream_limit_bytes;   // of a user's own stream
    // Of all outputs of commands together, and as much of users' streams; 0: a tenth of the disk.
    int64_t spool_limit_bytes;
    int64_t file_limit_bytes;    // of one file or archive that is read or written over the API
    int64_t file_timeout_ms;     // for one such request's work in the sandbox; 0: any time
    int64_t temporary_bytes;     // of all files on their way; 0: as the free space allows
    int64_t temporary_key_bytes; // of those of one key; 0: half of that
    int64_t keep_ms;             // how long an ended sandbox's streams and records are kept
    int64_t event_keep_ms;       // how long events can be followed from
    int64_t max_events;          // and how many; 0: any number
    int64_t audit_keep_ms;       // how long it is known who changed what
    int64_t usage_keep_ms;       // how long it is known what was used
    unsigned max_sandboxes;      // alive at once
    unsigned queue_at_once;      // executions from the queue that run at once
    unsigned queue_length;       // that may wait in it
    unsigned spare_one_shot;     // boxes made ahead; 0: none
    unsigned spare_kept;
    int64_t spare_memory_bytes; // that boxes made ahead may hold together; 0: none are made
    int64_t
        spare_keep_ms; // how long they wait after somebody last asked for such; those of the default runtime always do
    const char *debian_mirror; // where packages of runtimes come from; NULL: the machine's own
    const char *npm_registry;  // likewise; NULL: npm's own
    uint64_t image_timeout_ms; // that a registry of images may send nothing
    int64_t packages_keep_ms;  // how long packages installed for a sandbox are kept unused
    const char *
        mount_allow; // directories that sandboxes may be given such below, with commas between; NULL: none
    const char *webhook_networks; // that webhooks may be in beside public ones; NULL: none
    bool is_webhook_http_allowed; // else https alone
    struct network_settings network;
    int64_t port_range_first, port_range_last; // ports of this machine that exposed ones get
    bool has_port_names;  // HTTP is reached by names: it needs no port of the machine
    int64_t port_rest_ms; // how long one that was given up is not handed out again
    bool is_stand_in; // gives way to another server on the same data directory: core/data_lock.h
    const char *archive_program; // path of burrow-archive; NULL: next to this program
    const char *fail_file;       // tests: as engine_options has it; NULL
};
extern const struct core_settings core_settings_default;
