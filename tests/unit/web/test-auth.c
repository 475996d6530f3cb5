/* SPDX-License-Identifier: Apache-2.0 */
#include "web/auth.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/mem.h"
#include "store/store.h"
#include "core/core.h"
#include "test.h"
#include "unit/web/front_fixture.h"

#include <fcntl.h>

/* A server whose keys are real ones in a real store. */
struct stage {
    char dir[32];
    struct core core; // with store and keys alone
    struct front_fixture *fixture;
    struct key_info record;
    char key[KEY_TEXT];
};

static void stage_clear(struct stage *stage)
{
    struct error err;

    front_fixture_free(stage->fixture);
    key_info_clear(&stage->record);
    accounts_free(stage->core.accounts);
    store_free(stage->core.store);
    (void)fd_remove_tree(AT_FDCWD, stage->dir, &err);
}
#define autostage __attribute__((cleanup(stage_clear))) struct stage

static void stage_init(struct stage *stage)
{
    struct error err = {0};

    (void)snprintf(stage->dir, sizeof stage->dir, "/tmp/auth-XXXXXX");
    CHECK(mkdtemp(stage->dir));
    CHECK_OK(store_open(stage->dir, &stage->core.store, &err), err);
    CHECK_OK(accounts_open(stage->core.store, &stage->core.accounts, &err), err);
    CHECK_OK(key_create(stage->core.accounts, &(struct key_request){.name = "test"}, stage->key,
                        &stage->record, &err),
             err);
    stage->fixture = front_fixture_new(&(struct front_options){.core = &stage->core});
}

static void check_whoami(struct stage *stage, const char *format, int status, const char *want)
{
    autofree char *header = NULL;
    autoanswer answer = {0};

    CHECK(asprintf(&header, format, stage->key) > 0); // NOLINT: formats are below
    CHECK_INT(ask(stage->fixture, "GET /whoami", header, NULL, &answer), status);
    CHECK(strstr(answer.body.data, want));
    CHECK(!strstr(answer.body.data, stage->key));
    CHECK(!strstr(answer.head, "WWW-Authenticate") == (status != 401));
}

TEST(a_key_says_who_asks_however_the_scheme_is_spelled)
{
    autostage stage = {0};

    stage_init(&stage);
    check_whoami(&stage, "Authorization: Bearer %s\r\n", 200, "{\"text\":\"key of ");
    check_whoami(&stage, "authorization: bEARER   %s  \r\n", 200, "{\"text\":\"key of ");
}

/* The key as a browser can say it, with `more` around it. */
static void check_offered(struct stage *stage, const char *before, const char *key,
                          const char *after, int status)
{
    char text[256], header[512];

    base64_encode(key, strlen(key), text);
    text[strcspn(text, "=")] = '\0';
    for (char *at = text; *at; at++)
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    (void)snprintf(header, sizeof header, "%s%s%s", before, text, after);
    check_whoami(stage, header, status, status == 200 ? "key of" : "unauthorized");
}

TEST(a_websocket_may_say_the_key_as_a_subprotocol)
{
    static const char socket[] = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                                 "Sec-WebSocket-Protocol: burrow.v1, burrow.key.";
    autostage stage = {0};

    stage_init(&stage);
    for (int i = 0; i < 2; i++) { // asked of the database, then known
        check_offered(&stage, socket, stage.key, "\r\n", 200);
        check_offered(&stage, socket, stage.key, ", more\r\n", 200);
        check_offered(&stage, socket, "brw_wrong", "\r\n", 401);
        check_offered(&stage, socket, stage.key, "!\r\n", 401);
        check_offered(&stage, "Sec-WebSocket-Protocol: burrow.key.", stage.key, "\r\n", 401);
    }
}

TEST(a_missing_and_a_wrong_key_are_401)
{
    autostage stage = {0};

    stage_init(&stage);
    for (int i = 0; i < 2; i++) { // asked of the database, then known
        check_whoami(&stage, "Authorization: Bearer %sx\r\n", 401,
                     "\"kind\":\"denied\",\"reason\":\"unauthorized\"");
        check_whoami(&stage, "Authorization: Bearer x%s\r\n", 401, "\"reason\":\"unauthorized\"");
    }
    check_whoami(&stage, "X-Key: %s\r\n", 401,
                 "this needs a key: send it as 'Authorization: Bearer KEY' or as 'X-Api-Key: "
                 "KEY'");
    check_whoami(&stage, "Authorization: %s\r\n", 401, "this needs a key");
    check_whoami(&stage, "Authorization: Bearer%s\r\n", 401, "this needs a key");
    check_whoami(&stage, "Authorization: Basic %s\r\n", 401, "this needs a key");
}

TEST(a_wrong_key_does_not_get_its_body_read_as_json)
{
    autostage stage = {0};
    autoanswer answer = {0};

    stage_init(&stage);
    CHECK_INT(ask(stage.fixture, "POST /name", "Authorization: Bearer wrong\r\n", "{", &answer),
              401);
    CHECK_INT(ask(stage.fixture, "PUT /upload", "Authorization: Bearer wrong\r\n", "x", &answer),
              401);
    CHECK_INT(atomic_load(&stage.fixture->bytes), 0);
}

TEST(a_revoked_key_is_401)
{
    autostage stage = {0};
    struct error err = {0};

    stage_init(&stage);
    check_whoami(&stage, "Authorization: Bearer %s\r\n", 200, "key ");
    CHECK_OK(key_revoke(stage.core.accounts, stage.record.id, &err), err);
    key_forget_checks(stage.core.accounts);
    check_whoami(&stage, "Authorization: Bearer %s\r\n", 401, "unauthorized");
}

static void check_local(struct stage *stage, const char *text, int status, const char *want)
{
    autofd fd = client_connect_unix(stage->fixture);
    autoanswer answer = {0};

    client_say(fd, text);
    client_read(fd, &answer);
    CHECK_INT(answer.status, status);
    CHECK(strstr(answer.body.data, want));
}

TEST(the_machines_own_need_no_key_over_the_local_socket)
{
    autostage stage = {0};

    stage_init(&stage);
    check_local(&stage, "GET /whoami HTTP/1.1\r\nHost: a\r\n\r\n", 200, "{\"text\":\"local of ");
    check_local(&stage,
                "POST /name HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\n{\"name\":\"ab\"}",
                200, "\"ab 0\"");
    check_local(&stage, "GET /whoami HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n\r\n",
                401, "unauthorized");
}

TEST(open_routes_look_at_no_key)
{
    autostage stage = {0};
    autoanswer answer = {0};

    stage_init(&stage);
    CHECK_INT(ask(stage.fixture, "GET /quick", "Authorization: Bearer wrong\r\n", NULL, &answer),
              200);
    CHECK_INT(ask(stage.fixture, "GET /version", NULL, NULL, &answer), 200);
}
