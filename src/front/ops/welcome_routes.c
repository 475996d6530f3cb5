/* SPDX-License-Identifier: Apache-2.0 */
/* What is at the top: a short page for whoever tries a browser first, and the same as JSON for programs. */
#include "front/ops/ops_impl.h"
#include "web/call.h"
#include "web/reply.h"

#include <string.h>

#define OWN_DOCUMENT "/api/v1/openapi.json"
#define VENDORS_DOCUMENT "/openapi.json"

struct welcome {
    const char *name, *description, *version, *api, *document, *vendors_document, *health;
};
#define AT(member) offsetof(struct welcome, member)
static const struct answer_field welcome_fields[] = {
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"description", ANSWER_TEXT, AT(description), .is_needed = true},
    {"version", ANSWER_TEXT, AT(version), .is_needed = true},
    {"api", ANSWER_TEXT, AT(api), .is_needed = true, .help = "where burrow's own API begins"},
    {"openapi", ANSWER_TEXT, AT(document), .is_needed = true, .help = "what describes it"},
    {"vendorsOpenapi", ANSWER_TEXT, AT(vendors_document), .is_needed = true,
     .help = "what describes the protocols of others that are spoken here"},
    {"health", ANSWER_TEXT, AT(health), .is_needed = true},
    {0},
};
#undef AT
const struct route_answer ops_welcome_answers[] = {{200, welcome_fields}, {0}};

#define DESCRIPTION "Sandboxes for untrusted code, on a machine of your own."

static const struct welcome welcome = {
    .name = "burrow",
    .description = DESCRIPTION,
    .version = BURROW_VERSION,
    .api = "/api/v1/",
    .document = OWN_DOCUMENT,
    .vendors_document = VENDORS_DOCUMENT,
    .health = "/health",
};

static const char page[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>burrow</title>\n"
    "<style>body{font:16px/1.5 sans-serif;max-width:40em;margin:3em auto;padding:0 1em}"
    "pre{overflow:auto;padding:1em;background:#8882}</style>\n"
    "<h1>burrow " BURROW_VERSION "</h1>\n<p>" DESCRIPTION "</p>\n<ul>\n"
    "<li><a href=\"" OWN_DOCUMENT "\">burrow's own API</a>, below <code>/api/v1/</code>, as an "
    "OpenAPI document</li>\n"
    "<li><a href=\"" VENDORS_DOCUMENT "\">the protocols of others</a> that are spoken here</li>\n"
    "<li><a href=\"/health\">whether the server is well</a></li>\n</ul>\n"
    "<p>Every other call needs a key, which <code>burrow key create</code> makes:</p>\n"
    "<pre>curl -H 'Authorization: Bearer KEY' ADDRESS/api/v1/system/info</pre>\n</html>\n";

/* Browsers name it; curl and libraries say that they take anything. */
static bool wants_page(const struct call *call)
{
    const char *accept = call_header(call, "Accept");

    return accept && strstr(accept, "text/html");
}

/* GET / */
int ops_get_welcome(struct call *call, struct error *err)
{
    static const struct http_header headers[] = {
        {"Content-Type", "text/html; charset=utf-8"},
        {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Vary", "Accept"},
        {0},
    };
    autoreply reply = {0};

    (void)err;
    if (wants_page(call)) {
        (void)response_send(call->response, 200, headers, page, sizeof page - 1);
        return 0;
    }
    reply_init(&reply);
    answer_write(&reply.json, welcome_fields, &welcome);
    reply_send(&reply, call->response, 200);
    return 0;
}
