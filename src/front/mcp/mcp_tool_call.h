/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools: a table of them, the schemas that models see, and one call of one. A tool is a request of /api/v1, or a few in a row; its arguments and
 * its result are described by the tables of those routes.
 * Threads: one per object.
 */
#pragma once
#include "front/mcp/mcp_impl.h"
#include "web/answer_table.h"
#include "web/fields.h"
#include "web/route.h"

struct tool_call;

/* Makes the first request, or the next after an answer. TOOL_ASKS: `next` is to be asked. TOOL_DONE: the result is there. -1: with the error, which
 * becomes a result that says so. */
#define TOOL_DONE 0
#define TOOL_ASKS 1
typedef int (*tool_begin)(struct tool_call *call, struct ask *next, struct error *err);
typedef int (*tool_step)(struct tool_call *call, const struct inner_answer *answer,
                         struct ask *next, struct error *err);

/* What is asked for in a query unless the argument is given. */
struct tool_default {
    const char *name, *value; // a NULL name ends a table
};

struct tool {
    const char *title, *description;
    bool is_read_only, is_destructive, is_idempotent, is_open_world;
    const char *method, *pattern; // the route
    bool has_own_input;           // its arguments are `own` alone, not those of the route
    const char *const *hidden;    // members of the route's body that are no arguments; NULL: none
    const char *
        body_under; // the argument that the members of the route's body are in; NULL: beside the others
    const struct tool_default *defaults; // NULL: none
    const struct field *own;             // arguments that are not the route's; NULL: none
    const struct answer_field *answer;   // its result; NULL: the route's
    const char *also; // another result: the pattern of a GET, whose answer stands in "explanation"
    tool_begin begin; // NULL: the route, once
    tool_step step;
};
extern const struct tool mcp_tools[MCP_TOOLS];

struct tool_image {
    const char *type;
    const char *data; // base64
    size_t length;
    struct tool_image *next;
};

struct tool_call {
    struct exchange *exchange;
    const struct tool *tool;
    const struct route *route;
    const struct data_value *arguments; // a map
    struct buffer result;               // JSON; empty: {"done":true}
    struct buffer text;                 // for models; empty: the same JSON
    struct tool_image *images, **last_image;
    void *state; // the tool's own, of the exchange's memory
    void (*clear)(void *state);
};

/* Memory of the exchange. */
void *tool_alloc(struct tool_call *call, size_t size);
char *tool_print(struct tool_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* All arguments that there may be, as one table. */
const struct field *tool_fields(struct exchange *exchange, const struct tool *tool,
                                const struct route *route);

/* Reads the arguments by tool->own, which must be all there are where has_own_input. */
int tool_read(struct tool_call *call, void *into, struct error *err);

/* The route's path with the arguments in it, and those that are its query's. */
int tool_target(struct tool_call *call, const struct route *route, struct buffer *out,
                struct error *err);
/* ?name=value, or &name=value. */
void tool_add_query(struct buffer *target, const char *name, const char *value);
void tool_add_query_number(struct buffer *target, const char *name, int64_t value);
/* The arguments that are the body's; all but those of the path, of `own` and `hidden`. */
int tool_body(struct tool_call *call, const struct route *route, struct buffer *out,
              struct error *err);

/* The answer as JSON: a failure of the route is one here. The document is to be freed. */
int tool_answer(struct tool_call *call, const struct inner_answer *answer,
                struct data_document **out, struct error *err);
/* The same of an answer that is bytes. */
int tool_check(struct tool_call *call, const struct inner_answer *answer, struct error *err);

/* The result, by a table. */
int tool_result(struct tool_call *call, const struct answer_field *fields, const void *from,
                struct error *err);

/* The number in a header such as Output-Bytes; -1: none. */
int64_t tool_header_number(const struct inner_answer *answer, const char *name);

/* Of a part of a file: the whole file's bytes, as "bytes 0-9/100" says behind its slash; -1: nothing does. */
int64_t tool_whole_size(const struct inner_answer *answer);
/* Without a character at its end that is cut; all of it where there is nothing but that. */
size_t tool_whole_characters(const char *text, size_t length);

int64_t tool_integer(const struct data_value *map, const char *name, int64_t absent);

// ---- tools with steps of their own ----

int tool_run_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_exec_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_output_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_execution_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                        struct error *err);
int tool_output_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                     struct error *err);
extern const struct field tool_exec_fields[], tool_output_fields[];
extern const struct answer_field tool_execution_answer[], tool_output_answer[];

int tool_write_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_write_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                    struct error *err);
int tool_read_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_read_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err);
int tool_edit_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_edit_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err);
int tool_list_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err);
extern const struct field tool_write_fields[], tool_read_fields[], tool_edit_fields[];
extern const struct answer_field tool_write_answer[], tool_read_answer[], tool_edit_answer[],
    tool_list_answer[];

int tool_code_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err);

int tool_network_begin(struct tool_call *call, struct ask *next, struct error *err);
int tool_network_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                      struct error *err);
extern const struct field tool_network_fields[];
