/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/web/front.c and what the router does with hosts. */
#include "web/front.h"

#include "test.h"
#include "unit/web/front_fixture.h"
#include "web/call.h"

#include <string.h>

static bool has(const char *pattern, const char *host)
{
    const char *const hosts[] = {"other.example", pattern, NULL};
    const struct front front = {.hosts = hosts};

    return front_has_host(&front, host);
}

TEST(a_host_is_compared_without_its_port_and_in_any_case)
{
    CHECK(has("api.example.com", "api.example.com"));
    CHECK(has("api.example.com", "API.Example.com:4747"));
    CHECK(!has("api.example.com", "xapi.example.com"));
    CHECK(!has("api.example.com", "api.example.com.evil"));
    CHECK(!has("api.example.com", "api.example.com:4747.evil"));
    CHECK(!has("api.example.com", ""));
    CHECK(!has("api.example.com", NULL));
    CHECK(has("[::1]", "[::1]:80") && has("[::1]", "[::1]") && !has("[::1]", "[::2]"));
}

TEST(a_star_stands_for_names_below)
{
    CHECK(has("*.example.com", "49983-sbx7.example.com:443"));
    CHECK(has("*.example.com", "a.b.EXAMPLE.com"));
    CHECK(!has("*.example.com", "example.com"));
    CHECK(!has("*.example.com", ".example.com"));
    CHECK(!has("*.example.com", "example.com.evil"));
}

TEST(a_front_without_hosts_has_none_for_itself)
{
    const struct front front = {.name = "any"};

    CHECK(!front_has_host(&front, "example.com"));
}

TEST(the_first_front_that_wants_something_is_heard)
{
    const struct front nothing = {0}, one = {.defaults = {.queue_length = 7}},
                       both = {.defaults = {.queue_length = 9, .queue_at_once = 3}};
    const struct front *const fronts[] = {&nothing, &one, &both, NULL};
    struct front_defaults all = front_defaults_of(fronts);

    CHECK_INT(all.queue_at_once, 3);
    CHECK_INT(all.queue_length, 7);
}

// ---- a front with a host and a way of telling of its own ----

static int say_who(struct call *call, struct error *err)
{
    static const struct http_header headers[] = {{"Content-Type", "text/plain"}, {0}};

    (void)response_send(call->response, 200, headers, call->actor.organisation,
                        strlen(call->actor.organisation));
    return 0;
}

static void on_error(struct call *call, const struct error *err)
{
    (void)response_send(call->response, 418, NULL, err->text, strlen(err->text));
}

static const char *find_badge(const struct http_request *request)
{
    return http_request_header(request, "X-Badge");
}

static const char *find_secret(const struct http_request *request, struct auth_room *room)
{
    (void)room;
    return find_badge(request);
}

static bool is_possible(const struct http_request *request)
{
    return find_badge(request) != NULL;
}

static enum key_known check_quick(struct core *core, const struct http_request *request,
                                  struct actor *out)
{
    (void)snprintf(out->organisation, sizeof out->organisation, "%s", find_badge(request));
    out->scopes = SCOPES_ALL;
    return KEY_VALID;
}

static int check(struct core *core, const struct http_request *request, struct actor *out,
                 struct error *err)
{
    if (strcmp(find_badge(request), "unreadable") == 0)
        return error_set(err, ERROR_SYSTEM, "the list of badges cannot be read");
    if (strcmp(find_badge(request), "wrong") == 0)
        return error_refuse(err, ERROR_UNAUTHORIZED, "badge", "nobody's badge");
    return check_quick(core, request, out) == KEY_VALID ? 0 : -1;
}

static int missing(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "badge", "show your badge");
}

static const struct front_auth by_badge = {
    .is_possible = is_possible,
    .check = check,
    .check_quick = check_quick,
    .missing = missing,
    .secret = find_secret,
};
static const struct route routes[] = {
    {"GET", "/who", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, say_who, "who is asking"},
    {"GET", "/door", ROUTE_QUICK, ACCESS_ANY, BODY_NONE, say_who, "who is asking, if anybody"},
    {"GET", "/version", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, say_who, "another front's path"},
    {0},
};
static const char *const hosts[] = {"*.badge.example", NULL};
static const struct front badge_front = {
    .name = "badge",
    .routes = routes,
    .hosts = hosts,
    .auth = &by_badge,
    .on_error = on_error,
};
static const struct front_options options = {.front = &badge_front};

static int get(struct front_fixture *fixture, const char *path, const char *host, const char *badge,
               struct answer *answer)
{
    autofd fd = client_connect(fixture);
    char text[300];

    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", path, host,
                   badge ? "X-Badge: " : "", badge ? badge : "", badge ? "\r\n" : "");
    client_say(fd, text);
    client_read(fd, answer);
    return answer->status;
}

TEST(a_front_tells_in_its_own_way_who_is_asking)
{
    autoptr(front_fixture) fixture = front_fixture_new(&options);
    autoanswer answer = {0};

    CHECK_INT(get(fixture, "/who", "a.badge.example", "seven", &answer), 200);
    CHECK_STR(answer.body.data, "seven");
    CHECK_INT(get(fixture, "/who", "a.badge.example", NULL, &answer), 418);
    CHECK_STR(answer.body.data, "show your badge");
    CHECK(!strstr(answer.head, "WWW-Authenticate"));
}

TEST(requests_for_its_hosts_are_its_alone_and_others_are_not)
{
    autoptr(front_fixture) fixture = front_fixture_new(&options);
    autoanswer answer = {0};

    CHECK_INT(get(fixture, "/version", "a.badge.example", "x", &answer), 200);
    CHECK(!strstr(answer.body.data, BURROW_VERSION));
    CHECK_INT(get(fixture, "/version", "badge.example", "x", &answer), 200);
    CHECK(strstr(answer.body.data, BURROW_VERSION));
    CHECK_INT(get(fixture, "/health", "a.badge.example", "x", &answer), 418);
    CHECK_INT(get(fixture, "/who", "elsewhere.example", "x", &answer), 418);
    CHECK_STR(answer.body.data, "there is nothing at '/who'");
}

TEST(whoever_cannot_be_looked_up_is_not_taken_for_nobody)
{
    autoptr(front_fixture) fixture = front_fixture_new(&options);
    autoanswer answer = {0};

    CHECK_INT(get(fixture, "/door", "a.badge.example", "seven", &answer), 200);
    CHECK_STR(answer.body.data, "seven");
    CHECK_INT(get(fixture, "/door", "a.badge.example", "wrong", &answer), 200);
    CHECK_INT(answer.body.length, 0);
    CHECK_INT(get(fixture, "/door", "a.badge.example", "unreadable", &answer), 418);
    CHECK_STR(answer.body.data, "the list of badges cannot be read");
}
