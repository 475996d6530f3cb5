/* SPDX-License-Identifier: Apache-2.0 */
/* burrow network, burrow port: where a sandbox may connect to, and what of it is reached from outside. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/columns.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"

#include <stdlib.h>
#include <string.h>

// ---- the policy ----

static const struct column network_fields[] = {
    {"enabled", "enabled", COLUMN_TRUTH},
    {"default", "default", COLUMN_TEXT},
    {"allow", "allow", COLUMN_WORDS},
    {"deny", "deny", COLUMN_WORDS},
    {"observe", "observe", COLUMN_TRUTH},
    {"always allowed", "operator.allowAlways", COLUMN_TEXT},
    {"always denied", "operator.denyAlways", COLUMN_TEXT},
    {"sent", "egressBytes", COLUMN_SIZE},
    {"refused", "refused", COLUMN_TEXT},
    {0}};

static int put_switch(struct json_writer *json, const char *option, const char *word,
                      struct burrow_error *err)
{
    if (!word)
        return 0;
    if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
        return say_fail(err, BURROW_INVALID, "--%s is on or off, not '%.60s'", option, word);
    json_key(json, option);
    json_bool(json, strcmp(word, "on") == 0);
    return 0;
}

static int network_policy(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/network", invocation->operands[0], NULL);
    bool is_change = invocation->allow.count || invocation->deny.count || invocation->mode ||
                     invocation->state || invocation->status;
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    if (put_switch(&json, "enabled", invocation->state, err) < 0 ||
        put_switch(&json, "observe", invocation->status, err) < 0)
        return -1;
    say_put_text(&json, "default", invocation->mode);
    remote_write_strings(&json, "allow", &invocation->allow);
    remote_write_strings(&json, "deny", &invocation->deny);
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, is_change ? "PATCH" : "GET", path,
                   is_change ? text.data : NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *policy = burrow_answer_value(answer);
    if (columns_fields(invocation, policy, network_fields, err) < 0)
        return -1;
    if (is_change && !invocation->state && !burrow_truth(burrow_get(policy, "enabled")))
        say_note("it has no network, so these rules wait: 'burrow network policy %s --enabled on' "
                 "gives it one",
                 invocation->operands[0]);
    return 0;
}

// ---- why, and what was seen ----

static const struct column why_fields[] = {
    {"allowed", "allowed", COLUMN_TRUTH}, {"rule", "rule", COLUMN_TEXT},
    {"tier", "tier", COLUMN_TEXT},        {"reason", "reason", COLUMN_TEXT},
    {"remedy", "remedy", COLUMN_TEXT},    {0}};

/* "example.com:443/udp": its parts, as a query. */
static char *why_query(const char *where, struct burrow_error *err)
{
    const char *slash = strchr(where, '/'), *colon = strchr(where, ':');
    size_t length = strcspn(where, ":/");
    autofree char *host = xstrndup(where, length);
    autofree char *port =
        colon ? xstrndup(colon + 1, slash ? (size_t)(slash - colon - 1) : strlen(colon + 1)) : NULL;

    if (length == 0 || (slash && colon > slash) ||
        (port && (!*port || strlen(port) > 5 || port[strspn(port, "0123456789")]))) {
        (void)say_fail(err, BURROW_INVALID,
                       "'%.100s' is not HOST, HOST:PORT or HOST:PORT/PROTOCOL: example.com:443",
                       where);
        return NULL;
    }
    autofree char *name = burrow_path("%s", host, NULL);
    autofree char *protocol = slash ? burrow_path("%s", slash + 1, NULL) : NULL;
    return xasprintf("host=%s%s%s%s%s", name, port ? "&port=" : "", port ? port : "",
                     protocol ? "&protocol=" : "", protocol ? protocol : "");
}

static int network_why(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/network/why", invocation->operands[0], NULL);
    autofree char *query = why_query(invocation->operands[1], err);
    autofree char *whole = query ? xasprintf("%s?%s", path, query) : NULL;
    autoanswer answer = NULL;

    if (!whole || burrow_ask(invocation->client, "GET", whole, NULL, &answer, err) < 0)
        return -1;
    return columns_fields(invocation, burrow_answer_value(answer), why_fields, err);
}

static void print_seen(struct invocation *invocation, const struct burrow_value *list,
                       const char *heading)
{
    static const struct column columns[] = {{"HOST", "host", COLUMN_TEXT},
                                            {">PORT", "port", COLUMN_TEXT},
                                            {"PROTOCOL", "protocol", COLUMN_TEXT},
                                            {">ATTEMPTS", "attempts", COLUMN_TEXT},
                                            {"LAST", "lastAt", COLUMN_AGO},
                                            {"RULE", "rule", COLUMN_TEXT},
                                            {0}};
    struct burrow_error ignored = {0};

    (void)printf("%s%s\n", heading, burrow_count(list) ? ":" : ": nothing");
    if (burrow_count(list))
        (void)columns_items(invocation, list, columns, &ignored);
}

static int network_observed(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path =
        burrow_path("/sandboxes/%s/network/observed", invocation->operands[0], NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    print_seen(invocation, burrow_get(value, "refused"), "Refused");
    print_seen(invocation, burrow_get(value, "items"), "Let through because it is observed");
    return 0;
}

// ---- ports ----

static const struct column port_fields[] = {{"port", "port", COLUMN_TEXT},
                                            {"protocol", "protocol", COLUMN_TEXT},
                                            {"url", "url", COLUMN_TEXT},
                                            {"private", "private", COLUMN_TRUTH},
                                            {"token", "token", COLUMN_TEXT},
                                            {"token url", "tokenUrl", COLUMN_TEXT},
                                            {"token ends", "tokenExpiresAt", COLUMN_TEXT},
                                            {0}};

static int put_port(struct json_writer *json, const char *word, struct burrow_error *err)
{
    if (strcmp(word, "all") == 0) {
        json_key(json, "all");
        json_bool(json, true);
        return 0;
    }
    long port = strlen(word) <= 5 && !word[strspn(word, "0123456789")] ? strtol(word, NULL, 10) : 0;
    if (port < 1024 || port > 65535)
        return say_fail(err, BURROW_INVALID, "a port is 1024 to 65535, or 'all', not '%.60s'",
                        word);
    json_key(json, "port");
    json_integer(json, port);
    return 0;
}

static int port_create(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/ports", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    if (put_port(&json, invocation->operands[1], err) < 0)
        return -1;
    say_put_text(&json, "protocol", invocation->mode);
    if (invocation->is_private) {
        json_key(&json, "private");
        json_bool(&json, true);
    }
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "expiresInMs");
        json_natural(&json, invocation->timeout_ms);
    }
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "POST", path, text.data, &answer, err) < 0)
        return -1;
    return columns_fields(invocation, burrow_answer_value(answer), port_fields, err);
}

static int port_list(struct invocation *invocation, struct burrow_error *err)
{
    static const struct column columns[] = {
        {">PORT", "port", COLUMN_TEXT},       {"PROTOCOL", "protocol", COLUMN_TEXT},
        {"PRIVATE", "private", COLUMN_TRUTH}, {"URL", "url", COLUMN_TEXT},
        {"CREATED", "createdAt", COLUMN_AGO}, {0}};
    autofree char *path = burrow_path("/sandboxes/%s/ports", invocation->operands[0], NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
        return -1;
    return columns_items(invocation, burrow_get(burrow_answer_value(answer), "items"), columns,
                         err);
}

static int port_delete(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/ports/%s", invocation->operands[0],
                                      invocation->operands[1], NULL);
    autofree char *sentence =
        xasprintf("port %s of %s is shut", invocation->operands[1], invocation->operands[0]);

    return columns_act(invocation, "DELETE", path, NULL, sentence, err);
}

// ---- the table ----

static const struct option_row policy_rows[] = {
    OPTION("allow", 0, OPTION_LIST, allow, "RULE",
           "these alone: *.example.com:443, 203.0.113.0/24 (repeatable; instead of those before)"),
    OPTION("deny", 0, OPTION_LIST, deny, "RULE",
           "not these, whatever is allowed (repeatable; instead of those before)"),
    OPTION("default", 0, OPTION_TEXT, mode, "WORD", "allow or deny what no rule names"),
    OPTION("enabled", 0, OPTION_TEXT, state, "WORD", "on or off: whether it has a network at all"),
    OPTION("observe", 0, OPTION_TEXT, status, "WORD",
           "on: let through what would be refused, and note it; or off"),
    {0}};
static const struct option_row port_rows[] = {
    OPTION("protocol", 0, OPTION_TEXT, mode, "WORD",
           "http, or tcp: bytes are passed on as they are (default http)"),
    OPTION("private", 0, OPTION_FLAG, is_private, NULL,
           "make a token, without which it is shut; told this once"),
    OPTION("expires", 0, OPTION_DURATION, timeout_ms, "DURATION",
           "how long the token is good: 1h (default: as long as the port is exposed)"),
    {0}};
static const char *const network_examples[] = {
    "$ burrow network policy work --allow '*.example.com:443'",
    "$ burrow network why work example.com:443", "$ burrow network observe work", NULL};
static const char *const port_examples[] = {
    "$ burrow port create work 3000", "$ burrow port create work 3000 --private --expires 1h",
    "$ burrow port list work", "$ burrow port delete work 3000", NULL};

const struct cli_command network_commands[] = {
    {"network", "policy", "SANDBOX", "show or change where a sandbox may connect to",
     "What is not said stays as it is. 'burrow help network' tells what rules look like.",
     policy_rows, network_examples, COMMAND_SERVER, network_policy},
    {"network", "why", "SANDBOX HOST[:PORT[/PROTOCOL]]",
     "say whether it may connect there, and by which rule", NULL, NULL, network_examples,
     COMMAND_SERVER, network_why},
    {"network", "observe observed", "SANDBOX",
     "list where it was refused, and where it went because it is observed", NULL, NULL,
     network_examples, COMMAND_SERVER, network_observed},
    {"port", "create new add expose", "SANDBOX PORT",
     "let a port of a sandbox be reached from outside",
     "PORT is 1024 to 65535, or 'all' where the server has names for ports.", port_rows,
     port_examples, COMMAND_SERVER, port_create},
    {"port", "list ls", "SANDBOX", "list the ports that are reached from outside", NULL, NULL,
     port_examples, COMMAND_SERVER, port_list},
    {"port", "delete rm del remove", "SANDBOX PORT", "shut one, and cut connections to it", NULL,
     NULL, port_examples, COMMAND_SERVER, port_delete},
    {0},
};
