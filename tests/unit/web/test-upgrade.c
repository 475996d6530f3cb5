/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that ask to become a WebSocket: what the handshake wants, and whose pages may. */
#include "unit/web/front_fixture.h"
#include "web/tokens.h"

#include "test.h"

#include <stdio.h>

#define START "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define GOOD START VERSION KEY

static void check(struct front_fixture *fixture, const char *headers, int status, const char *want)
{
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /upgrade", headers, NULL, &answer), status);
    CHECK(strstr(answer.body.data, want) || strstr(answer.head, want));
}

TEST(lists_in_headers_are_read_word_by_word)
{
    CHECK(tokens_have("keep-alive, Upgrade", "upgrade"));
    CHECK(tokens_have(" ,, upgrade\t,", "upgrade"));
    CHECK(!tokens_have("upgraded, up grade", "upgrade"));
    CHECK(!tokens_have("", "upgrade"));
    CHECK(!tokens_have(NULL, "upgrade"));
}

TEST(a_handshake_is_answered_as_the_standard_says)
{
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){0});

    check(fixture, GOOD, 200, "\"s3pPLMBiTxaQ9kYGzzhZRbK+xOo= -\"");
    check(fixture, GOOD "Sec-WebSocket-Protocol: x, burrow.v1\r\n", 200, "= burrow.v1\"");
    check(fixture,
          "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" VERSION KEY
          "Sec-WebSocket-Extensions: permessage-deflate\r\n",
          200, "= -\"");
}

TEST(what_is_no_handshake_is_refused)
{
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){0});

    check(fixture, "", 426, "\r\nUpgrade: websocket\r\n");
    check(fixture, "Upgrade: websocket\r\n" VERSION KEY, 426, "Upgrade: websocket");
    check(fixture, "Connection: Upgrade\r\nUpgrade: h2c\r\n" VERSION KEY, 426, "Upgrade");
    check(fixture, START KEY, 426, "\r\nSec-WebSocket-Version: 13\r\n");
    check(fixture, START KEY "Sec-WebSocket-Version: 8\r\n", 426, "version 13");
    check(fixture, START VERSION, 400, "Sec-WebSocket-Key");
    check(fixture, START VERSION "Sec-WebSocket-Key: c2hvcnQ=\r\n", 400, "16 bytes");
    check(fixture, START VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!!==\r\n", 400, "base64");
    check(fixture, GOOD "Sec-WebSocket-Protocol: chat\r\n", 400, "burrow.v1");
}

TEST(pages_of_other_origins_are_refused)
{
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        {"Origin: http://HOST\r\n", 200}, // its own
        {"Origin: http://host:80\r\n", 200},
        {"Origin: https://host:443\r\n", 200}, // behind a proxy that speaks TLS
        {"Origin: https://good.example\r\n", 200},
        {"Origin: http://dev.example:3000\r\n", 200},
        {"Origin: http://good.example\r\n", 403},
        {"Origin: https://good.example:444\r\n", 403},
        {"Origin: https://good.example.evil.example\r\n", 403},
        {"Origin: https://evil.example\r\n", 403},
        {"Origin: http://host.evil.example\r\n", 403},
        {"Origin: http://hos\r\n", 403},
        {"Origin: http://host:8080\r\n", 403},
        {"Origin: http://host:443\r\n", 403},
        {"Origin: http://evil.example/http://host\r\n", 403},
        {"Origin: http://user@host\r\n", 403},
        {"Origin: host\r\n", 403},
        {"Origin: http://\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Origin: \r\n", 403},
        {"Origin: file://\r\n", 403},
        {"Origin: https://good.example, http://evil.example\r\n", 403},
        {"Origin: http://host\r\nOrigin: http://evil.example\r\n", 400},
    };
    autoptr(front_fixture) fixture = front_fixture_new(&(struct front_options){0});

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoanswer answer = {0};
        autofd fd = client_connect(fixture);
        char text[512];
        (void)snprintf(text, sizeof text, "GET /upgrade HTTP/1.1\r\nHost: host\r\n" GOOD "%s\r\n",
                       rows[i].headers);
        client_say(fd, text);
        client_read(fd, &answer);
        int status = answer.status;
        CHECK_INT(status, rows[i].status);
        if (status != rows[i].status)
            printf("# row %zu: %s\n", i, answer.body.data);
    }
}
