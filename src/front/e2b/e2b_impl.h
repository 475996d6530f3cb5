/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of these fronts share and nobody else sees: their tables of routes, users and paths, and how failures are told.
 * Threads: any; what blocks says so.
 */
#pragma once
#include "core/sandbox/sandbox_info.h"
#include "front/e2b/e2b.h"
#include "front/e2b/e2b_target.h"
#include "web/call.h"
#include "web/reply.h"
#include "web/route.h"

/* One table a file, each ended by an empty row; e2b_front.c joins them. */
extern const struct route e2b_sandbox_routes[];
extern const struct route e2b_list_routes[];
extern const struct route e2b_snapshot_routes[];
extern const struct route e2b_build_routes[];
extern const struct route e2b_template_routes[];
extern const struct route e2b_metrics_routes[];
extern const struct route e2b_refused_routes[];
extern const struct route envd_process_routes[];
extern const struct route envd_input_routes[];
extern const struct route envd_filesystem_routes[];
extern const struct route envd_watch_routes[];
extern const struct route envd_file_routes[];
extern const struct route envd_compose_routes[];
extern const struct route envd_health_routes[];
extern const struct route envd_metrics_routes[];
extern const struct route e2b_code_routes[];
extern const struct route e2b_debug_routes[];

#define E2B_ENVD_VERSION "0.6.13"
#define E2B_MESSAGE_BYTES ((uint64_t)64 << 20) // of one request to a service

/* What both fronts have. */
struct e2b {
    const struct e2b_settings *settings;
    struct envd_watchers *watchers; // of envd; NULL: none
    bool is_debug;                  // all of it is for one sandbox, without a token
};
static inline const struct e2b *e2b_of(const struct call *call)
{
    return call->settings;
}
static inline const struct e2b_settings *e2b_settings_of(const struct call *call)
{
    return e2b_of(call)->settings;
}

/* Failures of the control plane and of envd's plain HTTP: {"code": 404, "message": "..."}; and of envd's services. */
void e2b_on_error(struct call *call, const struct error *err);
void envd_on_error(struct call *call, const struct error *err);
void e2b_answer_error(struct call *call, int status, const char *message);
int e2b_answer_empty(struct call *call, int status);                // 0
int e2b_answer(struct call *call, struct reply *reply, int status); // 0; ends the reply

/* A user of the sandbox by the name that was asked for (NULL or "": the usual one). */
struct e2b_user {
    const char *name;
    const char *home;
    const char *box_user;  // as the core wants it; NULL: root
    const char *directory; // that no path at all means; NULL: home
};
void e2b_user_find(struct call *call, const char *name, struct e2b_user *out);
/* Whom the request names by HTTP Basic, or NULL; ERROR_UNAUTHORIZED for what cannot be read. */
int e2b_user_name(struct call *call, const char **out, struct error *err);
/* The user of that name in a sandbox; without one (NULL or ""), whom its template says. */
void envd_user(struct call *call, const char *sandbox_id, const char *name, struct e2b_user *out);

/* As the core wants it where the sandbox's own is somebody else. */
const char *e2b_box_user(const struct e2b_user *user);
/* The user's variables, where the sandbox's own say nothing else, and those of the request; the call's. */
struct field_list;
const char *const *e2b_user_env(struct call *call, const struct sandbox_info *info,
                                const struct e2b_user *user, const struct field_list *envs);

/* Absolute, without "." and ".."; the call's. ERROR_INVALID for "~name". */
int e2b_path(struct call *call, const struct e2b_user *user, const char *path, const char **out,
             struct error *err);

/*
 * The sandbox that a request to envd is for, awake: one that is paused is woken where it is to wake by traffic, and else it is as if it were not
 * there. Blocks.
 */
int envd_enter(struct call *call, const char **id, struct error *err);

/* Debug mode. The call is for its sandbox from now on, which is made where there is none. Blocks. */
int e2b_debug_enter(struct call *call, struct error *err);
int e2b_debug_on_call(struct call *call, struct error *err); // front.h
extern const struct front_auth e2b_debug_auth;

/* What a front keeps with a sandbox. */
struct e2b_kept {
    const char *template;
    bool is_template_alias;       // `template` is a name that stands for a runtime
    bool is_builder;              // a template is built in it: it is in no list
    bool resumes;                 // by traffic
    int64_t timeout_s;            // that was last asked for
    bool has_internet, internet;  // as asked
    bool is_private;              // its ports need a token
    const char *network;          // JSON as given; NULL: none
    const char *user, *directory; // that commands have where none is said; NULL: the usual ones
    const char *mask_host;        // what the servers in it see as Host; NULL: the usual one
};
/* Texts are the call's. */
void e2b_kept_read(struct call *call, const struct sandbox_info *info, struct e2b_kept *out);
void e2b_kept_parse(struct call *call, const char *text, struct e2b_kept *out); // NULL: nothing
const char *e2b_kept_write(struct call *call, const struct e2b_kept *kept);

/* Answers as create and connect do. */
int e2b_answer_sandbox(struct call *call, int status, const struct sandbox_info *info);
void e2b_write_made(struct call *call, struct json_writer *json, const struct sandbox_info *info);
/* Whether it exists for these clients. */
bool e2b_is_there(const struct sandbox_info *info);
bool e2b_is_paused(const struct sandbox_info *info);
/* All of its ports, for everybody or for who has the token of its traffic. Blocks. */
int e2b_ports_open(struct call *call, const char *sandbox_id, bool is_private, struct error *err);

/* The sandbox that the path names; 404 for one that has ended. Blocks. */
int e2b_get(struct call *call, struct sandbox_info *out, struct error *err);
/* Wakes it, for so long. Blocks. */
int e2b_wake(struct core *core, const struct actor *actor, const char *sandbox_id,
             int64_t timeout_s, struct error *err);
#define E2B_WAKE_LEAST_S 300 // of one that traffic has woken

void e2b_member_text(struct json_writer *json, const char *name, const char *text);
void e2b_member_number(struct json_writer *json, const char *name, int64_t number);
void e2b_member_bool(struct json_writer *json, const char *name, bool truth);
void e2b_member_time(struct json_writer *json, const char *name, int64_t ms);
