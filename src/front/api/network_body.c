/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a sandbox in a body; see network_body.h. */
#include "front/api/network_body.h"

#include <string.h>

#define MOST_BYTES (INT64_C(1) << 40)
#define LEAST_BYTES 1024

static const char *const default_words[] = {"allow", "deny", NULL};

#define AT(member) offsetof(struct network_secret_body, member)
static const struct field secret_fields[] = {
    {"host", FIELD_TEXT, AT(host), .is_needed = true, .minimum = 1, .maximum = 253,
     .help = "one name; requests to it over https get the header"},
    {"header", FIELD_TEXT, AT(header), .is_needed = true, .minimum = 1, .maximum = 64,
     .help = "Authorization"},
    {"value", FIELD_TEXT, AT(value), .is_needed = true, .minimum = 1,
     .maximum = NETWORK_SECRET_VALUE,
     .help = "of the header; never told again. env:NAME: what the operator has given to the server "
             "as BURROW_SECRET_NAME"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct network_body, member)
const struct field network_body_fields[] = {
    {"enabled", FIELD_BOOL, AT(is_enabled), .has_offset = AT(has_enabled),
     .help = "a way out; without: loopback alone. Default: as it is; of a new sandbox "
             "false, and true where anything else of the network is said"},
    {"allow", FIELD_TEXTS, AT(allow), .is_filled = true, .maximum = NETWORK_RULES_MOST,
     .help = "rules: a name, *.name, an address or network, or host for services on the server's "
             "own machine; :port or :first-last; /tcp, /udp or /icmp"},
    {"deny", FIELD_TEXTS, AT(deny), .is_filled = true, .maximum = NETWORK_RULES_MOST,
     .help = "the same; these win over 'allow'"},
    {"default", FIELD_TEXT, AT(otherwise), .words = default_words,
     .help = "where no rule fits. Not said: deny where something is allowed by a rule or all is "
             "observed, else allow"},
    {"observe", FIELD_BOOL, AT(is_observed), .has_offset = AT(has_observe),
     .help = "lets through what would be refused, and notes it: see network/observed"},
    {"rateBytes", FIELD_AMOUNT, AT(rate_bytes), .has_offset = AT(has_rate), .minimum = 0,
     .maximum = MOST_BYTES,
     .help = "out of the sandbox, a second; 0: as the server is set. At least 1Ki"},
    {"secrets", FIELD_LIST, AT(secrets), .has_offset = AT(has_secrets), .fields = secret_fields,
     .item_size = sizeof(struct network_secret_body), .maximum = NETWORK_SECRETS_MOST,
     .help = "headers that requests to a host get on their way, and that nothing in the sandbox "
             "ever sees"},
    {0},
};
#undef AT

static const struct network_secret *read_secrets(struct call *call, const struct field_list *list)
{
    const struct network_secret_body *from = list->items;
    struct network_secret *secrets = call_alloc(call, (list->count + 1) * sizeof *secrets);

    for (size_t i = 0; i < list->count; i++)
        secrets[i] = (struct network_secret){from[i].host, from[i].header, from[i].value};
    return secrets;
}

const struct network_change *network_body_change(struct call *call, const struct network_body *body,
                                                 bool is_whole)
{
    struct network_change *change = call_alloc(call, sizeof *change);

    *change = (struct network_change){
        .is_whole = is_whole,
        .has_enabled = body->has_enabled,
        .is_enabled = body->is_enabled,
        .allow = (const char *const *)body->allow,
        .deny = (const char *const *)body->deny,
        .has_default = body->otherwise != NULL,
        .otherwise =
            body->otherwise && strcmp(body->otherwise, "allow") == 0 ? NETWORK_ALLOW : NETWORK_DENY,
        .has_observe = body->has_observe,
        .is_observed = body->is_observed,
        .has_rate = body->has_rate,
        .rate_bytes =
            body->rate_bytes && body->rate_bytes < LEAST_BYTES ? LEAST_BYTES : body->rate_bytes,
        .has_secrets = body->has_secrets,
        .secrets = read_secrets(call, &body->secrets),
        .n_secrets = body->secrets.count,
    };
    return network_change_says(change) ? change : NULL;
}
