/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox routes of Aionis Lite over the core: sessions are sandboxes, runs are executions. docs/guide/aionis.md says what
 * differs from the vendor's own server.
 * Threads: one thread; at the start and the end of the server.
 */
#pragma once
#include "base/error.h"
#include "web/front.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AIONIS_DIRECTORY "/workspace" // where commands start
#define AIONIS_EXECUTOR "local_process"
#define AIONIS_PRESET "local_process_echo" // the only one there is

/* Texts are borrowed for as long as the front is used; aionis_settings_default is where to start from. */
struct aionis_settings {
    const char *enabled; // flags are "true" or "false", in any case
    const char *admin_only;
    const char *admin_token; // NULL: none
    const char *executor;
    const char *preset;   // a name, or NULL
    const char *commands; // JSON: what may be run; NULL: the preset's, or echo
    const char *directory;
    uint64_t timeout_ms;                 // of a run that asks for none
    uint64_t output_bytes;               // kept of each output
    const char *object_store;            // base of the URIs of artifacts; NULL: none
    int64_t queue_at_once, queue_length; // for the core
    int64_t max_sync;                    // runs at once past which no more are started
    uint64_t heartbeat_ms, stale_ms, recovery_poll_ms;
    uint64_t keep_ms; // how long runs, and sessions that nobody uses, are kept
    uint64_t budget_window_ms;
    const char *budgets; // JSON: caps by tenant
    const char *rate_limited;
    int64_t write_rate, read_rate; // thousandths of calls a second
    int64_t write_burst, read_burst;
    uint64_t write_wait_ms; // how long one that is over the limit is held back first
    uint64_t rate_ttl_ms;
    const char *tenant, *scope; // of calls that name none
    const char *origins;        // whose pages may call, with commas between; NULL: nobody's
    const char *proxy_trusted;
    const char *proxies; // networks, with commas between
};
extern const struct aionis_settings aionis_settings_default;

/* "true" or "false" in any case; ERROR_INVALID names the setting. */
int aionis_flag(const char *name, const char *text, bool *out, struct error *err);

/* What is wrong with them, in one sentence; for the start. */
int aionis_settings_check(const struct aionis_settings *settings, struct error *err);

/* `settings` stays the caller's and must live as long as the front; they must have passed the check. */
int aionis_front_init(struct front *front, const struct aionis_settings *settings,
                      struct error *err);
void aionis_front_clear(struct front *front); // no router may use it any more
