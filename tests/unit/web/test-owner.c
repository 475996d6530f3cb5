/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn a call takes (src/web/owner.c). */
#include "test.h"
#include "web/auth.h"
#include "web/owner.h"

#include <string.h>

static bool is_possible(const struct http_request *request)
{
    return request->query != NULL;
}

static const char *secret(const struct http_request *request, struct auth_room *room)
{
    return request->query; // where this test has its keys
}

static enum key_known check_quick(struct core *core, const struct http_request *request,
                                  struct actor *out)
{
    (void)core;
    (void)out;
    return strncmp(request->query, "good", 4) == 0 ? KEY_VALID : KEY_UNKNOWN;
}

static const struct front_auth auth = {
    .is_possible = is_possible, .check_quick = check_quick, .secret = secret};
static const struct front front = {.auth = &auth};
static const struct route route = {.access = ACCESS_KEY};

static uint64_t who(const char *key, unsigned char host)
{
    struct http_request request = {.query = key};
    struct call call = {.front = &front, .route = &route, .request = &request};

    const struct router_settings settings = {0};

    request.peer.address.s6_addr[3] = host;
    return owner_of_call(&call, &settings, 1).who;
}

TEST(keys_have_turns_of_their_own_wherever_they_come_from)
{
    CHECK(who("good-a", 1) != who("good-b", 1));
    CHECK(who("good-a", 1) == who("good-a", 2));
}

TEST(keys_that_nobody_knows_share_the_turn_of_their_peer)
{
    CHECK(who("made-up-a", 1) == who("made-up-b", 1));
    CHECK(who("made-up-a", 1) == who(NULL, 1));
    CHECK(who("made-up-a", 1) != who("made-up-a", 2));
    CHECK(who("made-up-a", 1) != who("good-a", 1));
}
