/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the preview; see preview_page.h. Nothing of what a client or a guest sent is in them. */
#include "web/preview_page.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    int status;
    const char *code, *text; // "%u" is the port
} pages[PREVIEW_PAGES] = {
    [PREVIEW_NOBODY] = {502, "nothing_listens",
                        "nothing listens on port %u of the sandbox: start its server, then reload"},
    [PREVIEW_SLOW] = {504, "no_connection",
                      "the server on port %u of the sandbox does not take connections"},
    [PREVIEW_NO_ANSWER] = {502, "no_answer",
                           "the server on port %u of the sandbox closed without an answer"},
    [PREVIEW_MALFORMED] = {502, "bad_answer",
                           "what the server on port %u of the sandbox answered is no HTTP/1.1"},
    [PREVIEW_UNKNOWN] = {404, "not_found", "there is no exposed port of this name"},
    [PREVIEW_PRIVATE] = {401, "token_needed",
                         "this port is private: its token goes into the header "
                         "X-Burrow-Port-Token, or into the name"},
    [PREVIEW_CROWDED] = {503, "crowded", "too many connections to this port, try again shortly"},
    [PREVIEW_ASLEEP] = {503, "not_awake", "the sandbox could not be woken, try again shortly"},
    [PREVIEW_WRONG] = {421, "misdirected", "there is no such host here"},
    [PREVIEW_PAUSED] = {502, "paused", "the sandbox is paused: resume it"},
};

/* By the first type of the two that it names. */
static bool wants_json(const struct http_request *request)
{
    const char *accept = request ? http_request_header(request, "Accept") : NULL;
    const char *json = accept ? strcasestr(accept, "json") : NULL;
    const char *html = accept ? strcasestr(accept, "text/html") : NULL;

    return json && (!html || json < html);
}

static void answer(struct proxy_client *client, bool is_json, int status, const char *code,
                   const char *text)
{
    const struct http_header headers[] = {
        {"Content-Type", is_json ? "application/json" : "text/html; charset=utf-8"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {status == 503 ? "Retry-After" : NULL, "1"},
        {0},
    };
    char body[1024];
    int length =
        is_json
            ? snprintf(body, sizeof body, "{\"status\":%d,\"code\":\"%s\",\"message\":\"%s\"}\n",
                       status, code, text)
            : snprintf(body, sizeof body,
                       "<!doctype html><meta charset=utf-8><title>%d</title>"
                       "<body style=\"font:16px/1.5 sans-serif;margin:4em auto;max-width:40em\">"
                       "<h1>%d</h1><p>%s.</p>\n",
                       status, status, text);

    proxy_answer(client, status, headers, body, (size_t)length);
}

void preview_page_send(struct proxy_client *client, const struct http_request *request,
                       enum preview_page page, unsigned port)
{
    char text[256];

    (void)snprintf(text, sizeof text, pages[page].text, port);
    answer(client, wants_json(request), pages[page].status, pages[page].code, text);
}

void preview_page_refuse(struct proxy_client *client, int status, const char *text)
{
    answer(client, false, status, "bad_request", text);
}
