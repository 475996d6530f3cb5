/* SPDX-License-Identifier: Apache-2.0 */
/* SSH through this API: for clients that cannot reach its port, or where it has none. */
#include "core/sandbox/sandbox.h"
#include "front/api/api.h"
#include "front/api/api_manners.h"
#include "front/api/api_ssh.h"

static const struct api_ssh *ssh_of(const struct call *call, struct error *err)
{
    const struct api_ssh *ssh = api_manners_ssh(call->settings);

    if (ssh && ssh->adopt)
        return ssh;
    (void)error_set(err, ERROR_UNAVAILABLE, "this server has no SSH");
    return NULL;
}

// ---- GET /api/v1/ssh ----

struct ssh_answer {
    const char *const *host_keys, *const *fingerprints;
    const char *address;
};
#define AT(member) offsetof(struct ssh_answer, member)
static const struct answer_field ssh_fields[] = {
    {"hostKeys", ANSWER_TEXTS, AT(host_keys), .is_needed = true,
     .help = "public keys of this server, as known_hosts wants them after the name of the host"},
    {"fingerprints", ANSWER_TEXTS, AT(fingerprints), .is_needed = true,
     .help = "of these keys, as ssh shows them"},
    {"address", ANSWER_TEXT, AT(address),
     .help = "where it listens for SSH; missing where it does not: a tunnel works all the same"},
    {0},
};
#undef AT
static const struct route_answer ssh_answers[] = {{200, ssh_fields}, {0}};

static int get_ssh(struct call *call, struct error *err)
{
    const struct api_ssh *ssh = ssh_of(call, err);

    if (!ssh)
        return -1;
    return api_answer(call, 200, ssh_fields,
                      &(struct ssh_answer){ssh->host_keys, ssh->fingerprints, ssh->address});
}

// ---- GET /api/v1/sandboxes/{sandbox}/ssh ----

static int open_tunnel(struct call *call, struct error *err)
{
    const struct api_ssh *ssh = ssh_of(call, err);
    struct sandbox_status status;
    struct upgrade upgrade;
    const char *id;

    if (!ssh || upgrade_check(call, api_manners_origins(call->settings), &upgrade, err) < 0)
        return -1;
    int result = api_sandbox(call, 0, &id, err);
    if (result != 0)
        return result;
    if (sandbox_status(call->core->sandboxes, &call->actor, id, &status, err) < 0)
        return -1;
    if (!(sandbox_in(status.state) & SANDBOX_ALIVE))
        return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
    return api_ssh_tunnel(call, ssh, &upgrade, id, err);
}

static const struct route_answer tunnel_answers[] = {{101}, {0}};

const struct route api_ssh_routes[] = {
    {"GET", API_TOP "/ssh", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_ssh,
     .summary = "how this server is reached by SSH, and by which keys it is known",
     .answers = ssh_answers, .needs = SCOPE_READ},
    {"GET", API_TOP "/sandboxes/{sandbox}/ssh", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, open_tunnel,
     .summary = "a WebSocket to the sandbox's SSH: binary messages are the bytes of a connection",
     .answers = tunnel_answers, .needs = SCOPE_RUN},
    {0},
};
