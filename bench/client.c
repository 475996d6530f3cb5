/* SPDX-License-Identifier: Apache-2.0 */
/* See client.h. */
#include "client.h"

#include "base/auto.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

int client_open(struct client *client, const char *address, struct error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    int one = 1;
    unsigned port = 0;

    *client = (struct client){.fd = -1};
    if (sscanf(address, "%63[0-9.]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &to.sin_addr) != 1)
        return error_set(err, ERROR_INVALID, "'%s' is not an address and a port", address);
    to.sin_port = htons((uint16_t)port);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&to, sizeof to) < 0)
        return error_sys(err, "connect to %s", address);
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    client->capacity = 1 << 16;
    client->data = xcalloc(1, client->capacity + 1);
    return 0;
}

void client_close(struct client *client)
{
    closep(&client->fd);
    free(client->data);
    client->data = NULL;
}

int client_send(struct client *client, const char *method, const char *path, const char *key,
                const char *body, struct error *err)
{
    char head[4096];
    int length = snprintf(head, sizeof head,
                          "%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          method, path, key, body ? strlen(body) : 0, body ? body : "");
    if (length < 0 || (size_t)length >= sizeof head)
        return error_set(err, ERROR_LIMIT, "the request is too long");
    if (send(client->fd, head, (size_t)length, MSG_NOSIGNAL) != length)
        return error_sys(err, "send a request");
    return 0;
}

static int read_more(struct client *client, struct error *err)
{
    if (client->length == client->capacity) {
        client->capacity *= 2;
        client->data = xrealloc(client->data, client->capacity + 1, 1);
    }
    ssize_t got =
        recv(client->fd, client->data + client->length, client->capacity - client->length, 0);
    if (got <= 0)
        return got < 0 ? error_sys(err, "receive an answer")
                       : error_set(err, ERROR_GONE, "the server hung up");
    client->length += (size_t)got;
    client->data[client->length] = '\0';
    return 0;
}

/* Offset behind the head of the answer that begins at `used`. */
static int read_head(struct client *client, size_t *end, struct error *err)
{
    for (;;) {
        char *found =
            client->length > client->used ? strstr(client->data + client->used, "\r\n\r\n") : NULL;
        if (found) {
            *end = (size_t)(found - client->data) + 4;
            return 0;
        }
        if (read_more(client, err) < 0)
            return -1;
    }
}

static const char *find_header(const struct client *client, size_t end, const char *name)
{
    const char *at = client->data + client->used;
    while ((at = strstr(at, "\r\n")) && at + 2 < client->data + end) {
        at += 2;
        if (strncasecmp(at, name, strlen(name)) == 0 && at[strlen(name)] == ':')
            return at + strlen(name) + 1;
    }
    return NULL;
}

/* Chunks become one body in place. */
static int read_chunks(struct client *client, size_t at, struct error *err)
{
    size_t start = at;
    size_t to = at;

    for (;;) {
        char *line = NULL;
        while (!(line = strstr(client->data + at, "\r\n"))) {
            if (read_more(client, err) < 0)
                return -1;
        }
        size_t size = strtoul(client->data + at, NULL, 16);
        at = (size_t)(line - client->data) + 2;
        while (client->length < at + size + 2) {
            if (read_more(client, err) < 0)
                return -1;
        }
        memmove(client->data + to, client->data + at, size);
        to += size;
        at += size + 2;
        if (size == 0)
            break;
    }
    client->body = client->data + start;
    client->body_length = to - start;
    client->used = at;
    client->data[to] = '\0';
    return 0;
}

static int read_plain(struct client *client, size_t at, size_t size, struct error *err)
{
    while (client->length < at + size) {
        if (read_more(client, err) < 0)
            return -1;
    }
    client->body = client->data + at;
    client->body_length = size;
    client->used = at + size;
    return 0;
}

int client_receive(struct client *client, struct error *err)
{
    size_t end = 0;

    if (client->used == client->length)
        client->used = client->length = 0;
    if (read_head(client, &end, err) < 0)
        return -1;
    client->status = atoi(client->data + client->used + 9);
    const char *length = find_header(client, end, "content-length");
    int result = length ? read_plain(client, end, strtoul(length, NULL, 10), err)
                        : read_chunks(client, end, err);
    if (result == 0 && client->status >= 300)
        return error_set(err, ERROR_SYSTEM, "answered with %d: %.300s", client->status,
                         client->body);
    return result;
}

int client_field(const struct client *client, const char *name, char *out, size_t size,
                 struct error *err)
{
    char pattern[64];
    (void)snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
    const char *at = memmem(client->body, client->body_length, pattern, strlen(pattern));
    const char *end = at ? strchr(at + strlen(pattern), '"') : NULL;
    if (!end || (size_t)(end - at - strlen(pattern)) >= size)
        return error_set(err, ERROR_INVALID, "no '%s' in: %.200s", name, client->body);
    (void)snprintf(out, size, "%.*s", (int)(end - at - strlen(pattern)), at + strlen(pattern));
    return 0;
}
