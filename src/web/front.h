/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front: one protocol over the core, as one struct. Filled before the router is made, then only read.
 * Threads: plain values; each callback says where it is called.
 */
#pragma once
#include "base/error.h"
#include "web/auth.h"
#include "web/route.h"

#include <stdbool.h>

struct call;
struct core;
struct json_writer;

/* What the front wants of the core. The first front that says something is heard; 0 and NULL say nothing. */
struct front_defaults {
    unsigned queue_at_once; // executions from the queue that run at once
    unsigned queue_length;  // that may wait in it
};

#define FRONT_ANSWERED 1

/* Which operations something in a front's document is for. */
enum front_when {
    FRONT_ALWAYS,
    FRONT_WITH_KEY,
    FRONT_WITH_PATH, // a parameter in the path
    FRONT_ON_GET,
    FRONT_ON_WRITE, // all but GET
    FRONT_ON_POST,
    FRONT_WITH_BODY,
};

/* A header of requests or answers. */
struct front_header {
    const char *name; // NULL ends a table
    const char *help;
    enum front_when when;
    const char *example;
};

/* A way to fail. */
struct front_failure {
    int status; // 0 ends a table
    const char *help;
    enum front_when when;
};

/* What is said of one operation beside its row: what it is called where its path does not tell, and an example that works. */
struct front_operation {
    const char
        *operation;    // "POST /sandboxes", without what all paths begin with; NULL ends a table
    const char *name;  // NULL: made from method and path
    const char *body;  // JSON; NULL: none
    const char *query; // "path=/workspace/a"; NULL: none
};

/* What the document of a front says beside its routes. */
struct front_document {
    const char *title, *description;
    const struct parameter *path; // what names in paths stand for; those without a row are texts
    const struct front_header *asked; // headers of requests
    const struct front_header *told;  // headers of answers that were well
    const struct front_failure *failures;
    const struct front_operation *operations;
    const char *const *tags; // pairs of a name and what it is about, ended by NULL
    void (*put_components)(
        struct json_writer *json); // more members "x-…" of its components; or NULL
};

struct front {
    const char *name; // "agentuity"
    const char *title;
    const struct route *routes;
    /* "api.example.com", "*.example.com" (any name below it), NULL-terminated: requests for these are this front's alone, and
     * only those are. NULL: any host; the routes of all such fronts are one space. */
    const char *const *hosts;
    /* Where not NULL: requests that this says yes to, by their head alone, are this front's alone, whatever their path; and only those are,
     * and those for its hosts. On the loop; does not block. */
    bool (*claims)(const struct http_request *request);
    const char
        *top; // "/v1/memory/": what no route was found for is its to answer below this; or NULL
    const struct front_auth *auth; // how it tells who is asking; NULL: auth_by_key
    /*
     * Answers a failed call, at once. Any thread. Also what no route was found for (call->route is NULL) below its `top`. The first
     * front gets those of nobody's, and what could not be read as a request at all (call->request is NULL too).
     */
    void (*on_error)(struct call *call, const struct error *err);
    const struct answer_field *failure; // what on_error writes, described; NULL: not
    const char *failure_content;        // its type; NULL: application/json
    /* Members of bodies and names in queries that are in no table are errors. */
    bool is_strict;
    /* Its routes are described in a document of their own (router_openapi); NULL: in that of all such fronts. */
    const struct front_document *document;
    const char *sandbox_prefix; // of its sandboxes' ids in paths: "sbx_", for the log; NULL: none
    struct front_defaults defaults;
    void *settings; // the front's own; call->settings
    /* Where not NULL: before anything else of a call is looked at, its key too. On the loop. -1 refuses it. */
    int (*on_call)(struct call *call, struct error *err);
    /* Where not NULL: once it is known who asks, before the body is read as JSON. Any thread; does not block. -1 refuses it. */
    int (*on_actor)(struct call *call, struct error *err);
    /* Where not NULL: before the handler of a POST is called for the first time, all else being read. A worker. FRONT_ANSWERED: the
     * handler is not called. */
    int (*on_post)(struct call *call, struct error *err);
    bool is_once_by_key; // an Idempotency-Key is its key's alone, not its organisation's
    /* Where not NULL: adds members to what the server says of its health. is_known: to a key; others are told no counts. On the loop. */
    void (*on_health)(const struct front *front, struct core *core, bool is_known,
                      struct json_writer *json);
};

/* Whether requests for this host (with or without a port; NULL: none was named) are the front's alone. */
bool front_has_host(const struct front *front, const char *host);

/* What the fronts (NULL-terminated) want together. */
struct front_defaults front_defaults_of(const struct front *const *fronts);
