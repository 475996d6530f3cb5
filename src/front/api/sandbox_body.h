/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that make, fork or change a sandbox, and as the core wants them. Memory is the call's.
 * Threads: plain values.
 */
#pragma once
#include "core/create.h"
#include "core/sandbox/sandbox_modify.h"
#include "front/api/command_body.h"
#include "front/api/mount_body.h"
#include "front/api/network_body.h"
#include "front/api/port_body.h"
#include "web/call.h"
#include "web/fields.h"

struct sandbox_body {
    const char *name, *description, *project, *mode, *runtime, *snapshot, *expires_at, *on_idle;
    const struct data_value *metadata;
    const char *directory, *user;
    struct field_list labels, env, ports, mounts;
    const char **scopes;
    const char **dependencies, **packages;
    struct command_body first; // its command, and files
    struct limits limits;
    int64_t idle_timeout_ms, execution_timeout_ms, paused_timeout_ms;
    bool has_idle_timeout, has_execution_timeout, has_paused_timeout;
    struct network_body network;
};

extern const struct field sandbox_limits_fields[]; // of a struct limits
extern const struct field sandbox_create_fields[];
extern const struct field sandbox_change_fields[]; // also of a fork: what is to be different

/* Reads the call's body by its route's table, and fills in what the core needs to make a sandbox; `command` gets the first command, where there is one. */
int sandbox_body_create(struct call *call, struct sandbox_request *out,
                        struct execution_request *command, struct error *err);
/* The same for a change. */
int sandbox_body_change(struct call *call, struct sandbox_changes *out, struct error *err);

/* "NAME=VALUE", ended by NULL; NULL for none. */
const char *const *sandbox_body_pairs(struct call *call, const struct field_list *pairs);

/* What is kept of "scopes": a JSON list; NULL for none. */
int sandbox_body_scopes(struct call *call, const char **scopes, const char **out,
                        struct error *err);

/* The core knows limits by other names than this front: says which field an error of it is about. Returns -1. */
int sandbox_body_fail(struct error *err);
