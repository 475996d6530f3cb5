/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of exposed ports, as clients write them into Host: what is read is a port and a word of the right letters, writing it again names the
 * same, and a head is below the domain exactly when its host is.
 */
#include "base/id.h"
#include "web/preview_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DOMAIN "preview.example"
#define LONGEST 1024

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_host(const char *host)
{
    struct preview_name name = {0}, again = {0};
    char text[128];

    if (!preview_name_read(host, DOMAIN, &name))
        return;
    check(preview_name_is_below(host, strlen(host), DOMAIN));
    check(name.port > 0);
    check(strlen(name.word) == (name.is_token ? PORT_TOKEN_LETTERS : ID_LENGTH));
    check(strspn(name.word, "0123456789abcdefghijklmnopqrstuvwxyz") == strlen(name.word));
    (void)snprintf(text, sizeof text, "%u-%s.%s:4000", name.port, name.word, DOMAIN);
    check(preview_name_read(text, DOMAIN, &again));
    check(again.port == name.port && again.is_token == name.is_token);
    check(strcmp(again.word, name.word) == 0);
    check(!preview_name_read(text, "x." DOMAIN, &again) &&
          !preview_name_read(text, "other", &again));
}

/* The same host in a head: blanks around it mean nothing, and a second Host is not looked at. */
static void try_head(const char *host)
{
    char head[LONGEST + 128];
    int length =
        snprintf(head, sizeof head, "GET / HTTP/1.1\r\nA: b\r\nhOST: \t%s \r\nHost: 1.%s\r\n\r\n",
                 host, DOMAIN);

    check(preview_name_is_asked(head, (size_t)length, DOMAIN) ==
          preview_name_is_below(host, strlen(host), DOMAIN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char host[LONGEST];
    char *exact = calloc(1, size ? size : 1); // so that a byte too far is seen

    check(exact != NULL);
    if (size)
        memcpy(exact, data, size);
    (void)preview_name_is_asked(exact, size, DOMAIN);
    (void)preview_name_is_below(exact, size, DOMAIN);
    free(exact);
    size_t length = size < sizeof host - 1 ? size : sizeof host - 1;
    if (length)
        memcpy(host, data, length);
    host[length] = '\0';
    try_host(host);
    host[strcspn(host, " \t\r\n")] = '\0';
    try_head(host);
    return 0;
}
