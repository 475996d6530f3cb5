/* SPDX-License-Identifier: Apache-2.0 */
/* process.Process: starting commands, following them, and which there are. */
#include "core/execution/execution.h"
#include "core/sandbox/file_access.h"
#include "core/sandbox/sandbox.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/envd_process.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

// ---- which one ----

const struct field envd_selector_fields[] = {
    {"pid", FIELD_INTEGER, offsetof(struct envd_selector, pid), .is_nullable = true, .minimum = 0,
     .maximum = UINT32_MAX},
    {"tag", FIELD_TEXT, offsetof(struct envd_selector, tag), .is_nullable = true},
    {0},
};

int envd_find(struct call *call, const char *sandbox_id, const struct envd_selector *process,
              struct execution_info *out, struct error *err)
{
    const struct execution_selector selector = {process->pid, process->tag};

    if (!process->pid && !process->tag)
        return error_refuse(err, ERROR_METHOD, "process", "name the process by its pid or its tag");
    if (execution_find(call->core->executions, &call->actor, sandbox_id, &selector, out, err) == 0)
        return 0;
    if (!error_is_about(err, "execution"))
        return -1;
    return process->pid ? error_refuse(err, ERROR_NOT_FOUND, "execution",
                                       "process with pid %lld not found", (long long)process->pid)
                        : error_refuse(err, ERROR_NOT_FOUND, "execution",
                                       "process with tag '%.80s' not found", process->tag);
}

// ---- Start ----

struct size_body {
    int64_t cols, rows;
};
static const struct field size_fields[] = {
    {"cols", FIELD_INTEGER, offsetof(struct size_body, cols), .is_nullable = true, .minimum = 0,
     .maximum = UINT16_MAX},
    {"rows", FIELD_INTEGER, offsetof(struct size_body, rows), .is_nullable = true, .minimum = 0,
     .maximum = UINT16_MAX},
    {0},
};
struct pty_body {
    struct size_body size;
};
const struct field envd_pty_fields[] = {
    {"size", FIELD_MAP, offsetof(struct pty_body, size), .is_nullable = true,
     .fields = size_fields},
    {0},
};

struct config_body {
    const char *cmd, *cwd;
    const char **args;
    struct field_list envs;
};
static const struct field config_fields[] = {
    {"cmd", FIELD_TEXT, offsetof(struct config_body, cmd), .is_needed = true},
    {"args", FIELD_TEXTS, offsetof(struct config_body, args), .is_nullable = true},
    {"envs", FIELD_TEXT_MAP, offsetof(struct config_body, envs)},
    {"cwd", FIELD_TEXT, offsetof(struct config_body, cwd), .is_nullable = true},
    {0},
};

struct start_body {
    struct config_body process;
    const struct data_value *config; // the same, to be told by List
    struct pty_body pty;
    bool has_pty, has_stdin, stdin_wanted;
    const char *tag;
};
static const struct field start_fields[] = {
    {"process", FIELD_MAP, offsetof(struct start_body, process), .is_needed = true,
     .fields = config_fields},
    {"pty", FIELD_MAP, offsetof(struct start_body, pty), .is_nullable = true,
     .fields = envd_pty_fields, .has_offset = offsetof(struct start_body, has_pty)},
    {"tag", FIELD_TEXT, offsetof(struct start_body, tag), .is_nullable = true, .maximum = 4096},
    {"stdin", FIELD_BOOL, offsetof(struct start_body, stdin_wanted), .is_nullable = true,
     .has_offset = offsetof(struct start_body, has_stdin)},
    {0},
};

/* cmd and args. */
static const char *const *argv_of(struct call *call, const struct config_body *process)
{
    size_t count = 0;

    while (process->args && process->args[count])
        count++;
    const char **argv = call_alloc(call, (count + 2) * sizeof *argv);
    argv[0] = process->cmd;
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = process->args[i];
    return argv;
}

/* One that is asked for must be there: commands make theirs otherwise. */
static int check_directory(struct call *call, const char *sandbox_id, const struct e2b_user *user,
                           const char *path, struct error *err)
{
    const struct file_place place = {sandbox_id, user->box_user, path};
    autofileinfo info = {0};

    if (file_stat(call->core->sandboxes, &call->actor, &place, true, &info, err) < 0)
        return error_is_about(err, "file")
                   ? error_refuse(err, ERROR_INVALID, "cwd", "cwd '%.200s' does not exist", path)
                   : -1;
    return S_ISDIR(info.mode)
               ? 0
               : error_refuse(err, ERROR_INVALID, "cwd", "cwd '%.200s' is not a directory", path);
}

/* {"cmd": ..., "args": [...], "envs": {...}, "cwd": ...} as it was given. */
static const char *keep_config(struct call *call, const struct data_document *document)
{
    autobuffer text = {.maximum = (size_t)1 << 20};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_value(&json, value_get(document->root, "process"));
    return json_writer_finish(&json, &ignored) < 0 ? NULL : call_print(call, "%s", text.data);
}

static int run(struct call *call, const char *sandbox_id, const struct start_body *body,
               const char *config, struct execution_info *out, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    struct e2b_user user;
    struct e2b_kept kept;
    const char *directory, *name;

    if (sandbox_get(call->core->sandboxes, &call->actor, sandbox_id, false, &info, err) < 0)
        return -1;
    e2b_kept_read(call, &info, &kept);
    if (e2b_user_name(call, &name, err) < 0)
        return -1;
    e2b_user_find(call, name ? name : kept.user, &user);
    user.directory = kept.directory;
    if (e2b_path(call, &user, body->process.cwd, &directory, err) < 0)
        return -1;
    if (body->process.cwd && *body->process.cwd &&
        check_directory(call, sandbox_id, &user, directory, err) < 0)
        return -1;
    struct execution_request request = {
        .kind = body->has_pty ? EXECUTION_TERMINAL : EXECUTION_JOB,
        .command = {.argv = argv_of(call, &body->process),
                    .env = e2b_user_env(call, &info, &user, &body->process.envs),
                    .directory = directory,
                    .user = e2b_box_user(&user),
                    .timeout_ms = rpc_deadline_ms(call)},
        .has_input = body->has_pty || !body->has_stdin || body->stdin_wanted,
        .terminal = {(uint16_t)body->pty.size.rows, (uint16_t)body->pty.size.cols},
        .tag = body->tag,
        .asked = config,
    };
    return execution_start(call->core->executions, &call->actor, sandbox_id, &request, out, err);
}

/* POST /process.Process/Start */
static int start(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0};
    struct start_body body = {0};
    const char *id;

    if (envd_enter(call, &id, err) < 0 || rpc_read(call, start_fields, &body, &document, err) < 0)
        return -1;
    if (run(call, id, &body, keep_config(call, document), &info, err) < 0)
        return -1;
    const struct envd_following following = {.info = &info};
    return envd_follow(call, &following, err);
}

// ---- Connect ----

struct connect_body {
    struct envd_selector process;
};
static const struct field connect_fields[] = {
    {"process", FIELD_MAP, offsetof(struct connect_body, process), .is_nullable = true,
     .fields = envd_selector_fields},
    {0},
};

#define ENDED_FOR_MS 30000 // one that has ended is told of for so long

/* POST /process.Process/Connect */
static int connect_to(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0};
    struct connect_body body = {0};
    const char *id;

    if (envd_enter(call, &id, err) < 0 ||
        rpc_read(call, connect_fields, &body, &document, err) < 0 ||
        envd_find(call, id, &body.process, &info, err) < 0)
        return -1;
    if (execution_info_is_over(&info) && info.ended_at + ENDED_FOR_MS < (int64_t)envd_now_ms())
        return error_refuse(err, ERROR_NOT_FOUND, "execution", "the process has ended");
    // What an earlier server was telling of may have been lost on the way: all of it is told again.
    const struct envd_following following = {
        .info = &info,
        .is_from_now = info.started_at >= call->core->opened_at,
        .deadline_ms = rpc_deadline_ms(call),
    };
    return envd_follow(call, &following, err);
}

// ---- List ----

static void write_process(struct json_writer *json, const struct execution_info *info)
{
    json_map_begin(json);
    json_key(json, "config");
    if (info->asked) {
        json_raw(json, info->asked, strlen(info->asked));
    } else {
        json_map_begin(json);
        e2b_member_text(json, "cmd", info->command.argv ? info->command.argv[0] : "");
        json_key(json, "args");
        json_list_begin(json);
        for (size_t i = 1; info->command.argv && info->command.argv[0] && info->command.argv[i];
             i++)
            json_string(json, info->command.argv[i]);
        json_list_end(json);
        json_key(json, "envs");
        json_map_begin(json);
        json_map_end(json);
        json_map_end(json);
    }
    e2b_member_number(json, "pid", info->number);
    if (info->tag)
        e2b_member_text(json, "tag", info->tag);
    json_map_end(json);
}

#define LISTED_PAGES 100

/* POST /process.Process/List */
static int list(struct call *call, struct error *err)
{
    static const struct field nothing[] = {{0}};
    struct execution_filter filter = {.states = execution_in(EXECUTION_RUNNING),
                                      .is_ascending = true,
                                      .page = {.limit = PAGE_MAX, .is_marked = true}};
    autoptr(data_document) document = NULL;
    autoreply reply = {0};
    char unused = 0;

    if (envd_enter(call, &filter.sandbox_id, err) < 0 ||
        rpc_read(call, nothing, &unused, &document, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "processes");
    json_list_begin(&reply.json);
    for (unsigned page = 0; page < LISTED_PAGES; page++) {
        autoclear(execution_infos) found = {0};
        if (execution_list(call->core->executions, &call->actor, &filter, &found, err) < 0)
            return -1;
        for (size_t i = 0; i < found.count; i++) {
            if (!found.items[i].stop_at && found.items[i].kind != EXECUTION_COMMAND)
                write_process(&reply.json, &found.items[i]);
        }
        if (!found.next.id[0])
            break;
        filter.page.after = found.next;
    }
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

static const struct route_answer stream_answers[] = {{200, .content = "application/connect+json"},
                                                     {0}};

const struct route envd_process_routes[] = {
    {"POST", "/process.Process/Start", ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, start,
     "starts a command and follows it", .answers = stream_answers, .needs = SCOPE_RUN,
     .is_undescribed = true, .reach = REACH_SANDBOX, .body_limit = E2B_MESSAGE_BYTES},
    {"POST", "/process.Process/Connect", ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, connect_to,
     "follows a command", .answers = stream_answers, .needs = SCOPE_RUN, .is_undescribed = true,
     .reach = REACH_SANDBOX, .body_limit = E2B_MESSAGE_BYTES},
    {"POST", "/process.Process/List", ROUTE_QUICK, ACCESS_KEY, BODY_WHOLE, list,
     "commands that run", .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX,
     .body_limit = E2B_MESSAGE_BYTES},
    {0},
};
