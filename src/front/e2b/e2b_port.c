/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of sandboxes other than envd's and the code interpreter's: how requests name them, for the preview, which passes them on. */
#include "base/mem.h"
#include "core/core.h"
#include "core/port/port.h"
#include "core/seal.h"
#include "data/json.h"
#include "front/e2b/e2b_impl.h"
#include "web/preview_protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TRAFFIC_HEADER "E2b-Traffic-Access-Token"
#define PORT_MARK "${PORT}"
#define ID_ROOM 80 // one that is longer is wrong anyway, as are others below
#define PORT_ROOM 16
#define HOST_ROOM 300

int e2b_ports_open(struct call *call, const char *sandbox_id, bool is_private, struct error *err)
{
    const struct port_request all = {
        .port = PORT_ALL, .protocol = PORT_HTTP, .is_private = is_private, .has_own_secret = true};
    struct port_info ignored; // its token is told to nobody: theirs is a seal

    return port_expose(call->core->ports, &call->actor, sandbox_id, &all, &ignored, err);
}

// ---- whose it is, by its head ----

/* The first of a name in the bytes of a head; *has is left alone where there is none. */
static void copy_header(const char *line, const char *end, const char *name, char *out, size_t room,
                        bool *has)
{
    size_t length = strlen(name);

    if (*has || (size_t)(end - line) <= length || line[length] != ':' ||
        strncasecmp(line, name, length) != 0)
        return;
    const char *value = line + length + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && strchr(" \t\r\n", end[-1]))
        end--;
    size_t size = (size_t)(end - value) < room ? (size_t)(end - value) : room - 1;
    memcpy(out, value, size);
    out[size] = '\0';
    *has = true;
}

static bool is_of_front(unsigned port)
{
    return port == E2B_ENVD_PORT || port == E2B_CODE_PORT;
}

static enum preview_claim claim(const char *head, size_t length)
{
    char id[ID_ROOM], port[PORT_ROOM], host[HOST_ROOM];
    bool has_id = false, has_port = false, has_host = false;
    const char *end = head + length;
    struct e2b_target target;

    for (const char *line = memchr(head, '\n', length); line && ++line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const char *stop = next ? next : end;
        copy_header(line, stop, "E2b-Sandbox-Id", id, sizeof id, &has_id);
        copy_header(line, stop, "E2b-Sandbox-Port", port, sizeof port, &has_port);
        copy_header(line, stop, "Host", host, sizeof host, &has_host);
        line = next;
    }
    enum e2b_way way = e2b_target_find(has_id ? id : NULL, has_port ? port : NULL,
                                       has_host ? host : NULL, &target);
    if (way == E2B_BY_NOTHING)
        return PREVIEW_NOT_MINE;
    return target.is_wrong || is_of_front(target.port) ? PREVIEW_FRONT : PREVIEW_PORT;
}

// ---- what was kept of its sandbox ----

struct rules {
    bool is_theirs; // it was made by these clients
    bool resumes;
    int64_t timeout_s;
    char mask[PREVIEW_HOST_TEXT];
};

static void read_rules(struct core *core, const char *sandbox_id, struct rules *out)
{
    autofree char *text = seal_front_data(core, sandbox_id);
    autoptr(data_document) document = NULL;
    struct error ignored = {0};

    *out = (struct rules){.timeout_s = E2B_WAKE_LEAST_S};
    if (!text || json_read("", text, strlen(text), NULL, &document, &ignored) < 0)
        return;
    const struct data_value *resumes = value_get(document->root, "resumes");
    const struct data_value *timeout = value_get(document->root, "timeout");
    const struct data_value *mask = value_get(document->root, "mask");
    out->is_theirs = true;
    out->resumes = resumes && resumes->kind == VALUE_BOOL && resumes->truth;
    if (timeout && timeout->kind == VALUE_NUMBER)
        out->timeout_s = strtoll(timeout->text, NULL, 10);
    if (mask && mask->kind == VALUE_STRING)
        (void)snprintf(out->mask, sizeof out->mask, "%s", mask->text);
}

/* The number in place of its mark is never longer. */
static void put_host(const char *mask, unsigned port, char out[PREVIEW_HOST_TEXT])
{
    size_t length = 0;

    while (*mask && length < PREVIEW_HOST_TEXT - 8) {
        if (strncmp(mask, PORT_MARK, strlen(PORT_MARK)) == 0) {
            length += (size_t)snprintf(out + length, PREVIEW_HOST_TEXT - length, "%u", port);
            mask += strlen(PORT_MARK);
        } else {
            out[length++] = *mask++;
        }
    }
    out[length] = '\0';
}

static bool read_passage(struct core *core, const struct http_request *request, bool is_below,
                         struct preview_passage *out)
{
    const char *token = http_request_header(request, TRAFFIC_HEADER);
    struct e2b_target target;
    struct rules rules = {0};
    enum e2b_way way =
        e2b_target_find(http_request_header(request, "E2b-Sandbox-Id"),
                        http_request_header(request, "E2b-Sandbox-Port"), request->host, &target);

    *out = (struct preview_passage){.port = (uint16_t)target.port};
    if (way == E2B_BY_NOTHING)
        return false;
    if (target.id[0])
        read_rules(core, target.id, &rules);
    if (way == E2B_BY_HOST && is_below && !rules.is_theirs)
        return false;
    memcpy(out->sandbox_id, target.id, sizeof out->sandbox_id);
    out->is_opened =
        rules.is_theirs && token && seal_is(core, E2B_TRAFFIC_PURPOSE, target.id, token);
    put_host(rules.mask, target.port, out->host);
    return true;
}

static int wake(struct core *core, const char *sandbox_id, struct error *err)
{
    const unsigned sleepy = sandbox_in(SANDBOX_PAUSED) | sandbox_in(SANDBOX_PAUSING);
    enum sandbox_state state;
    struct actor actor;
    struct rules rules;

    if (!seal_actor(core, sandbox_id, &actor, &state) || !(sandbox_in(state) & sleepy))
        return 0;
    read_rules(core, sandbox_id, &rules);
    if (!rules.is_theirs)
        return 0;
    if (!rules.resumes)
        return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox is paused");
    int64_t seconds = rules.timeout_s > E2B_WAKE_LEAST_S ? rules.timeout_s : E2B_WAKE_LEAST_S;
    return e2b_wake(core, &actor, sandbox_id, seconds, err);
}

// ---- what is said where nobody answers ----

static void refuse(struct proxy_client *client, const struct preview_passage *passage,
                   enum preview_page page)
{
    static const struct {
        int status;
        const char *text;
    } words[PREVIEW_PAGES] = {
        [PREVIEW_NOBODY] = {502, "The sandbox is running but port is not open"},
        [PREVIEW_SLOW] = {502, "The server in the sandbox takes no connections"},
        [PREVIEW_NO_ANSWER] = {502, "The server in the sandbox closed without an answer"},
        [PREVIEW_MALFORMED] = {502, "What the server in the sandbox answered is no HTTP/1.1"},
        [PREVIEW_UNKNOWN] = {502, "The sandbox was not found"},
        [PREVIEW_PRIVATE] = {403, "The ports of the sandbox are private: send its "
                                  "trafficAccessToken as '" TRAFFIC_HEADER "'"},
        [PREVIEW_CROWDED] = {503, "Too many connections to the sandbox, try again shortly"},
        [PREVIEW_ASLEEP] = {503, "The sandbox could not be woken, try again shortly"},
        [PREVIEW_WRONG] = {502, "The sandbox was not found"},
        [PREVIEW_PAUSED] = {502, "The sandbox is paused: connect to resume it"},
    };
    const struct http_header headers[] = {
        {"Content-Type", "application/json"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {words[page].status == 503 ? "Retry-After" : NULL, "1"},
        {0},
    };
    char body[512];
    int length = snprintf(
        body, sizeof body, "{\"sandboxId\":\"%s\",\"message\":\"%s\",\"port\":%u,\"code\":%d}\n",
        passage->sandbox_id, words[page].text, (unsigned)passage->port, words[page].status);

    proxy_answer(client, words[page].status, headers, body, (size_t)length);
}

const struct preview_protocol e2b_port_protocol = {
    .token_header = TRAFFIC_HEADER,
    .claim = claim,
    .read = read_passage,
    .wake = wake,
    .refuse = refuse,
};
