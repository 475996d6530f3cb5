/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that run commands, and the one that reads what they wrote: beginning and end under a bound, the rest by offset. */
#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "front/mcp/mcp_tool_call.h"
#include "web/percent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 8192 // of each output in a result; as much of its end
#define TAIL_BYTES 8192
#define SHORT_BYTES (HEAD_BYTES + TAIL_BYTES) // what is no longer than this is told whole
#define WAIT_MS 20000
#define WAIT_MOST_MS 120000
#define PART_BYTES 16384
#define PART_MOST 65536
#define SIDES 2

static const char *const sides[] = {"stdout", "stderr", NULL};

// ---- results ----

struct side_told {
    struct answer_bytes text;
    int64_t bytes, omitted, next_offset;
    bool is_truncated, is_there;
};
#define AT(member) offsetof(struct side_told, member)
static const struct answer_field side_fields[] = {
    {"text", ANSWER_BYTES, AT(text), .is_needed = true,
     .help = "all of it, or its beginning and its end; what is not UTF-8 is replaced by U+FFFD"},
    {"bytes", ANSWER_INTEGER, AT(bytes), .help = "written in all so far"},
    {"truncated", ANSWER_BOOL, AT(is_truncated), .help = "something is left out in the middle"},
    {"omittedBytes", ANSWER_INTEGER, AT(omitted)},
    {"nextOffset", ANSWER_INTEGER, AT(next_offset),
     .help = "for sandbox_output: where what is left out begins, or else what comes"},
    {0},
};
#undef AT

struct told {
    const char *execution, *sandbox, *state, *cause, *signal, *error, *next;
    bool is_running, has_exit;
    int64_t exit_code, duration_ms;
    struct side_told side[SIDES];
};
#define AT(member) offsetof(struct told, member)
const struct answer_field tool_execution_answer[] = {
    {"execution", ANSWER_TEXT, AT(execution), .is_needed = true, .help = "for sandbox_output"},
    {"sandbox", ANSWER_TEXT, AT(sandbox), .is_needed = true},
    {"state", ANSWER_TEXT, AT(state), .is_needed = true},
    {"running", ANSWER_BOOL, AT(is_running), .is_needed = true,
     .help = "it has not ended: ask sandbox_output for what comes"},
    {"exitCode", ANSWER_INTEGER, AT(exit_code), .has_offset = AT(has_exit)},
    {"cause", ANSWER_TEXT, AT(cause), .help = "why it ended: exited, timeout, memory …"},
    {"signal", ANSWER_TEXT, AT(signal)},
    {"error", ANSWER_TEXT, AT(error), .help = "why it could not run, or what was lost"},
    {"durationMs", ANSWER_INTEGER, AT(duration_ms), .has_offset = AT(has_exit)},
    {"stdout", ANSWER_MAP, AT(side[0]), .has_offset = AT(side[0].is_there), .fields = side_fields},
    {"stderr", ANSWER_MAP, AT(side[1]), .has_offset = AT(side[1].is_there), .fields = side_fields},
    {"next", ANSWER_TEXT, AT(next), .help = "what to do next"},
    {0},
};
#undef AT

// ---- a command's end ----

/* What is known of an execution while the rest is asked for. */
struct run {
    struct told told;
    struct buffer head[SIDES], tail[SIDES];
    int64_t total[SIDES]; // bytes; -1: not known
    bool has_head[SIDES], has_tail[SIDES];
    bool is_started; // of sandbox_exec: the execution is there
    int asked;       // which side's part is on its way, and whether it is the end
    bool is_tail;
    int64_t wait_ms;
};

static void run_clear(void *state)
{
    struct run *run = state;

    for (unsigned i = 0; i < SIDES; i++) {
        buffer_clear(&run->head[i]);
        buffer_clear(&run->tail[i]);
    }
}

static struct run *run_new(struct tool_call *call)
{
    struct run *run = tool_alloc(call, sizeof *run);

    run->total[0] = run->total[1] = -1;
    call->state = run;
    call->clear = run_clear;
    return run;
}

static const char *keep(struct tool_call *call, const struct data_value *map, const char *name)
{
    const char *text = mcp_text(map, name);

    return text ? tool_print(call, "%s", text) : NULL;
}

static int keep_content(struct run *run, unsigned side, const struct data_value *output,
                        struct error *err)
{
    const struct data_value *text = value_get(output, "text");
    const struct data_value *coded = value_get(output, "textBase64");
    struct buffer *head = &run->head[side];
    size_t bad;

    run->has_head[side] = text || coded;
    if (text && text->kind == VALUE_STRING)
        return buffer_add(head, text->text, text->length, err);
    if (!coded || coded->kind != VALUE_STRING)
        return 0;
    if (buffer_reserve(head, base64_room(coded->length), err) < 0)
        return -1;
    ssize_t length = base64_decode(coded->text, coded->length, head->data, &bad);
    if (length > 0)
        buffer_grew(head, (size_t)length);
    return 0;
}

static int keep_execution(struct tool_call *call, const struct data_value *from, struct error *err)
{
    struct run *run = call->state;
    struct told *told = &run->told;

    told->execution = keep(call, from, "id");
    told->sandbox = keep(call, from, "sandboxId");
    told->state = keep(call, from, "state");
    told->cause = keep(call, from, "cause");
    told->signal = keep(call, from, "signal");
    told->error = keep(call, from, "error");
    told->has_exit = value_get(from, "exitCode") != NULL;
    told->is_running = !told->has_exit;
    told->exit_code = tool_integer(from, "exitCode", 0);
    told->duration_ms = tool_integer(from, "durationMs", 0);
    for (unsigned i = 0; i < SIDES; i++) {
        const struct data_value *output = value_get(from, sides[i]);
        told->side[i].is_there = output != NULL;
        run->total[i] = tool_integer(output, "bytes", -1);
        if (keep_content(run, i, output, err) < 0)
            return -1;
    }
    return 0;
}

/* The part of an output that is still missing for the result. */
static bool wants_part(struct run *run)
{
    for (int i = 0; i < SIDES; i++) {
        if (!run->told.side[i].is_there)
            continue;
        bool is_long = run->total[i] > SHORT_BYTES;
        bool needs_head =
            run->told.is_running ? !run->has_head[i] : !run->has_head[i] && run->total[i] > 0;
        if (needs_head || (is_long && !run->has_tail[i])) {
            run->asked = i;
            run->is_tail = !needs_head;
            return true;
        }
    }
    return false;
}

static int ask_part(struct tool_call *call, struct ask *next, struct error *err)
{
    const struct run *run = call->state;
    int64_t offset = run->is_tail ? run->total[run->asked] - TAIL_BYTES : 0;

    next->method = "GET";
    if (buffer_addf(&next->target, err, "/api/v1/executions/%s/output", run->told.execution) < 0)
        return -1;
    tool_add_query(&next->target, "stream", sides[run->asked]);
    tool_add_query_number(&next->target, "offset", offset);
    tool_add_query_number(&next->target, "length", run->is_tail ? TAIL_BYTES : SHORT_BYTES);
    return TOOL_ASKS;
}

/* An output that cannot be read (any more) is told as empty: the command's end counts. */
static int take_part(struct tool_call *call, const struct inner_answer *answer, struct error *err)
{
    struct run *run = call->state;
    struct buffer *to = (run->is_tail ? run->tail : run->head) + run->asked;
    int64_t total = tool_header_number(answer, "Output-Bytes");

    *(run->is_tail ? &run->has_tail[run->asked] : &run->has_head[run->asked]) = true;
    if (answer->status >= 400)
        return 0;
    if (!run->is_tail && total >= 0)
        run->total[run->asked] = total;
    return buffer_add(to, answer->body, answer->length, err);
}

// ---- making the result ----

static void put_side(struct tool_call *call, unsigned i)
{
    struct run *run = call->state;
    struct side_told *told = &run->told.side[i];
    struct buffer *head = &run->head[i], *tail = &run->tail[i];
    struct error ignored;

    told->bytes = run->total[i] > 0 ? run->total[i] : (int64_t)head->length;
    told->next_offset = told->bytes;
    if (run->has_tail[i] && told->bytes > SHORT_BYTES) {
        if (head->length > HEAD_BYTES)
            head->length = HEAD_BYTES;
        told->is_truncated = true;
        told->omitted = told->bytes - (int64_t)head->length - (int64_t)tail->length;
        told->next_offset = (int64_t)head->length;
        (void)buffer_addf(head, &ignored,
                          "\n… [%" PRId64 " bytes left out: sandbox_output with execution \"%s\", "
                          "stream \"%s\", offset %" PRId64 " reads them] …\n",
                          told->omitted, run->told.execution, sides[i], told->next_offset);
        (void)buffer_add(head, tail->data, tail->length, &ignored);
    }
    told->text = (struct answer_bytes){head->data ? head->data : "", head->length};
}

static void say_end(const struct tool_call *call, struct buffer *text)
{
    const struct run *run = call->state;
    const struct told *told = &run->told;
    struct error ignored;

    if (told->is_running)
        (void)buffer_addf(text, &ignored, "[%s as %s]", told->state, told->execution);
    else
        (void)buffer_addf(text, &ignored, "[exit code %" PRId64 "%s%s, %" PRId64 " ms]",
                          told->exit_code, told->cause && strcmp(told->cause, "exited") ? ", " : "",
                          told->cause && strcmp(told->cause, "exited") ? told->cause : "",
                          told->duration_ms);
    if (told->error)
        (void)buffer_addf(text, &ignored, "\n[%s]", told->error);
    if (told->next)
        (void)buffer_addf(text, &ignored, "\n[%s]", told->next);
}

static void say(struct tool_call *call)
{
    const struct run *run = call->state;
    struct buffer *text = &call->text;
    struct error ignored;

    for (unsigned i = 0; i < SIDES; i++) {
        const struct answer_bytes *bytes = &run->told.side[i].text;
        if (!run->told.side[i].is_there || bytes->length == 0)
            continue;
        if (i == 1)
            (void)buffer_add_text(text, "[stderr]\n", &ignored);
        (void)buffer_add(text, bytes->data, bytes->length, &ignored);
        if (text->data[text->length - 1] != '\n')
            (void)buffer_add_text(text, "\n", &ignored);
    }
    say_end(call, text);
}

static const char *advice(struct tool_call *call, const struct told *told)
{
    if (told->is_running)
        return tool_print(call,
                          "it goes on: sandbox_output with execution \"%s\" tells more, "
                          "sandbox_stop ends it",
                          told->execution);
    if (told->cause && strcmp(told->cause, "timeout") == 0)
        return "it was killed after its timeout: give it more with timeoutMs, or use sandbox_exec "
               "with background: true";
    if (told->cause && strcmp(told->cause, "memory") == 0)
        return "it needed more memory than its sandbox has: use a sandbox with larger "
               "limits.memoryBytes";
    return NULL;
}

static int finish(struct tool_call *call, struct error *err)
{
    struct run *run = call->state;

    for (unsigned i = 0; i < SIDES; i++)
        put_side(call, i);
    run->told.next = advice(call, &run->told);
    say(call);
    return tool_result(call, tool_execution_answer, &run->told, err);
}

// ---- sandbox_run, sandbox_exec ----

struct exec_arguments {
    int64_t wait_ms;
};
const struct field tool_exec_fields[] = {
    {"waitMs", FIELD_MS, offsetof(struct exec_arguments, wait_ms), .minimum = 0,
     .maximum = WAIT_MOST_MS,
     .help = "how long to wait for its end before the result is a handle; default 20 s"},
    {0},
};

/* The members of the body, and how much of its output is wanted at once. */
int tool_run_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct run *run = run_new(call);

    run->is_started = true;
    next->method = "POST";
    if (tool_target(call, call->route, &next->target, err) < 0 ||
        tool_body(call, call->route, &next->body, err) < 0)
        return -1;
    next->body.length--; // its closing brace
    return buffer_addf(&next->body, err, "%s\"maxOutputBytes\":%d}",
                       next->body.length > 1 ? "," : "", SHORT_BYTES) < 0
               ? -1
               : TOOL_ASKS;
}

int tool_exec_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct exec_arguments arguments = {.wait_ms = WAIT_MS};
    struct run *run = run_new(call);

    next->method = "POST";
    if (tool_read(call, &arguments, err) < 0 ||
        tool_target(call, call->route, &next->target, err) < 0 ||
        tool_body(call, call->route, &next->body, err) < 0)
        return -1;
    run->wait_ms = arguments.wait_ms;
    return TOOL_ASKS;
}

static int ask_end(struct tool_call *call, const struct data_value *started, struct ask *next,
                   struct error *err)
{
    struct run *run = call->state;
    const char *id = mcp_text(started, "id");

    run->is_started = true;
    next->method = "GET";
    if (buffer_addf(&next->target, err, "/api/v1/executions/%s", id ? id : "") < 0)
        return -1;
    tool_add_query_number(&next->target, "waitMs", run->wait_ms);
    tool_add_query_number(&next->target, "maxOutputBytes", SHORT_BYTES);
    return TOOL_ASKS;
}

int tool_execution_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                        struct error *err)
{
    struct run *run = call->state;
    autoptr(data_document) document = NULL;

    if (run->told.execution) {
        if (take_part(call, answer, err) < 0)
            return -1;
    } else {
        if (tool_answer(call, answer, &document, err) < 0)
            return -1;
        if (!run->is_started)
            return ask_end(call, document->root, next, err);
        if (keep_execution(call, document->root, err) < 0)
            return -1;
    }
    if (wants_part(run))
        return ask_part(call, next, err);
    return finish(call, err);
}

// ---- sandbox_output ----

struct output_arguments {
    const char *execution, *stream;
    int64_t offset, most, wait_ms;
};
#define AT(member) offsetof(struct output_arguments, member)
const struct field tool_output_fields[] = {
    {"execution", FIELD_TEXT, AT(execution), .is_needed = true, .minimum = 1, .maximum = 256,
     .help = "the execution's id (exe_… or job_…)"},
    {"stream", FIELD_TEXT, AT(stream), .words = sides, .help = "default stdout"},
    {"offset", FIELD_INTEGER, AT(offset), .minimum = 0, .maximum = INT64_MAX,
     .help = "of the first byte; default 0"},
    {"maxBytes", FIELD_AMOUNT, AT(most), .minimum = 1, .maximum = PART_MOST,
     .help = "default 16Ki"},
    {"waitMs", FIELD_MS, AT(wait_ms), .minimum = 0, .maximum = WAIT_MOST_MS,
     .help = "how long to wait for its end first; default 0"},
    {0},
};
#undef AT

struct output_told {
    const char *execution, *sandbox, *state, *stream, *next;
    bool is_running, has_exit, is_complete;
    int64_t exit_code, offset, next_offset, bytes;
    struct answer_bytes text;
    struct output_arguments arguments;
    struct buffer part;
};
#define AT(member) offsetof(struct output_told, member)
const struct answer_field tool_output_answer[] = {
    {"execution", ANSWER_TEXT, AT(execution), .is_needed = true},
    {"sandbox", ANSWER_TEXT, AT(sandbox), .is_needed = true},
    {"state", ANSWER_TEXT, AT(state), .is_needed = true},
    {"running", ANSWER_BOOL, AT(is_running), .is_needed = true},
    {"exitCode", ANSWER_INTEGER, AT(exit_code), .has_offset = AT(has_exit)},
    {"stream", ANSWER_TEXT, AT(stream), .is_needed = true},
    {"text", ANSWER_BYTES, AT(text), .is_needed = true,
     .help = "what is not UTF-8 is replaced by U+FFFD"},
    {"offset", ANSWER_INTEGER, AT(offset)},
    {"nextOffset", ANSWER_INTEGER, AT(next_offset), .help = "where to go on"},
    {"bytes", ANSWER_INTEGER, AT(bytes), .help = "written in all so far"},
    {"complete", ANSWER_BOOL, AT(is_complete), .is_needed = true,
     .help = "there is nothing after nextOffset, and nothing will come"},
    {"next", ANSWER_TEXT, AT(next), .help = "what to do next"},
    {0},
};
#undef AT

static void output_clear_state(void *state)
{
    buffer_clear(&((struct output_told *)state)->part);
}

int tool_output_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct output_told *told = tool_alloc(call, sizeof *told);

    call->state = told;
    call->clear = output_clear_state;
    told->arguments = (struct output_arguments){.stream = sides[0], .most = PART_BYTES};
    next->method = "GET";
    if (tool_read(call, &told->arguments, err) < 0 ||
        buffer_add_text(&next->target, "/api/v1/executions/", err) < 0)
        return -1;
    if (percent_encode(told->arguments.execution, &next->target, err) < 0)
        return -1;
    tool_add_query_number(&next->target, "waitMs", told->arguments.wait_ms);
    return TOOL_ASKS;
}

static int ask_output(struct tool_call *call, const struct data_value *from, struct ask *next,
                      struct error *err)
{
    struct output_told *told = call->state;
    const struct output_arguments *arguments = &told->arguments;

    told->execution = keep(call, from, "id");
    told->sandbox = keep(call, from, "sandboxId");
    told->state = keep(call, from, "state");
    told->has_exit = value_get(from, "exitCode") != NULL;
    told->is_running = !told->has_exit;
    told->exit_code = tool_integer(from, "exitCode", 0);
    told->stream = arguments->stream;
    told->offset = arguments->offset;
    next->method = "GET";
    if (buffer_addf(&next->target, err, "/api/v1/executions/%s/output", told->execution) < 0)
        return -1;
    tool_add_query(&next->target, "stream", arguments->stream);
    tool_add_query_number(&next->target, "offset", arguments->offset);
    tool_add_query_number(&next->target, "length", arguments->most);
    return TOOL_ASKS;
}

static int tell_output(struct tool_call *call, const struct inner_answer *answer, struct error *err)
{
    struct output_told *told = call->state;
    int64_t total = tool_header_number(answer, "Output-Bytes");
    struct error ignored;

    bool is_behind = answer->status == 416; // nothing there yet
    if (!is_behind && tool_check(call, answer, err) < 0)
        return -1;
    if (!is_behind && buffer_add(&told->part, answer->body, answer->length, err) < 0)
        return -1;
    if (total < 0)
        total = tool_whole_size(answer); // of an offset behind the end
    told->bytes = total >= 0 ? total : told->offset + (int64_t)told->part.length;
    bool has_more = told->offset + (int64_t)told->part.length < told->bytes || told->is_running;
    size_t length = has_more && told->part.length
                        ? tool_whole_characters(told->part.data, told->part.length)
                        : told->part.length;
    told->text = (struct answer_bytes){told->part.data ? told->part.data : "", length};
    if (told->offset > told->bytes)
        told->offset = told->bytes; // nothing was skipped: there is no more yet
    told->next_offset = told->offset + (int64_t)length;
    told->is_complete = !told->is_running && told->next_offset >= told->bytes;
    if (!told->is_complete)
        told->next =
            tool_print(call,
                       told->next_offset < told->bytes
                           ? "there is more: call again with offset %" PRId64
                           : "it still runs: call again with offset %" PRId64 " and a waitMs",
                       told->next_offset);
    (void)buffer_add(&call->text, told->text.data, length, &ignored);
    (void)buffer_addf(&call->text, &ignored,
                      "%s[%s %" PRId64 "–%" PRId64 " of %" PRId64 " bytes, %s]", length ? "\n" : "",
                      told->stream, told->offset, told->next_offset, told->bytes,
                      told->is_running ? "running" : "ended");
    if (told->next)
        (void)buffer_addf(&call->text, &ignored, "\n[%s]", told->next);
    return tool_result(call, tool_output_answer, told, err);
}

int tool_output_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                     struct error *err)
{
    const struct output_told *told = call->state;
    autoptr(data_document) document = NULL;

    if (told->execution)
        return tell_output(call, answer, err);
    if (tool_answer(call, answer, &document, err) < 0)
        return -1;
    return ask_output(call, document->root, next, err);
}
