/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program burrow-tls HOST PORT [CONNECT_MS [CA_FILE]]: relays between its standard input and output, one socket, and a server over TLS. libburrow
 * starts it for https://, so that neither it nor burrow need OpenSSL. Says "ok" or a sentence, on one line, before anything else. Ends with 3 where
 * the connection was cut, and not closed by the server: an answer that ends with it may be half of one then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 16384
#define EXIT_CUT 3

/* Bytes on their way. */
struct way {
    char bytes[PIECE];
    size_t at, length;
};

static int fail(const char *host, const char *what, const char *why)
{
    char line[700];
    int length = snprintf(line, sizeof line, "https to '%.200s': %s%s%.300s\n", host, what,
                          *why ? ": " : "", why);

    (void)!write(STDOUT_FILENO, line, (size_t)length);
    return 1;
}

static const char *tls_reason(SSL *ssl, char text[256])
{
    long verdict = SSL_get_verify_result(ssl);

    if (verdict != X509_V_OK)
        return X509_verify_cert_error_string(verdict);
    ERR_error_string_n(ERR_get_error(), text, 256);
    return text;
}

/* 0 or an errno. */
static int try_address(const struct addrinfo *address, int wait_ms, int *out)
{
    socklen_t size = sizeof(int);
    int failure = 0;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        failure = errno;
        if (failure == EINPROGRESS) {
            failure = poll(&wait, 1, wait_ms) > 0 ? 0 : ETIMEDOUT;
            if (!failure)
                (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
        }
    }
    if (failure)
        (void)close(fd);
    else
        *out = fd;
    return failure;
}

static int dial(const char *host, const char *port, int wait_ms, int *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(host, port, &hints, &found);

    if (failure)
        return fail(host, "its name is not known", gai_strerror(failure));
    failure = ECONNREFUSED;
    for (struct addrinfo *each = found; each; each = each->ai_next) {
        failure = try_address(each, wait_ms, out);
        if (!failure)
            break;
    }
    freeaddrinfo(found);
    return failure ? fail(host, "no server there", strerror(failure)) : 0;
}

static SSL *prepare(const char *host, const char *ca_file, int fd)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    unsigned char room[16];
    bool is_address = inet_pton(AF_INET, host, room) == 1 || inet_pton(AF_INET6, host, room) == 1;

    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        (ca_file ? SSL_CTX_load_verify_file(context, ca_file)
                 : SSL_CTX_set_default_verify_paths(context)) != 1)
        return NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL *ssl = SSL_new(context);
    if (!ssl)
        return NULL;
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    int named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host)
                           : X509_VERIFY_PARAM_set1_host(wanted, host, 0);
    if (named != 1 || (!is_address && SSL_set_tlsext_host_name(ssl, host) != 1) ||
        SSL_set_fd(ssl, fd) != 1)
        return NULL;
    return ssl;
}

static int shake_hands(SSL *ssl, int fd, int wait_ms)
{
    for (;;) {
        int result = SSL_connect(ssl);
        if (result == 1)
            return 0;
        int wants = SSL_get_error(ssl, result);
        struct pollfd wait = {.fd = fd, .events = wants == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN};
        if ((wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE) ||
            poll(&wait, 1, wait_ms) <= 0)
            return -1;
    }
}

/* What waits for what, in one turn of the loop. */
struct relay {
    SSL *ssl;
    int fd;
    struct way up, down;
    bool is_up_over, is_down_over;
    bool is_cut;
    bool wants_write; // the TLS side said so
};

/* Whether anything moved. */
static bool move_up(struct relay *relay)
{
    struct way *up = &relay->up;

    if (up->at == up->length && !relay->is_up_over) {
        ssize_t got = read(STDIN_FILENO, up->bytes, PIECE);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        up->at = 0;
        up->length = got > 0 ? (size_t)got : 0;
        if (got <= 0) {
            relay->is_up_over = true;
            (void)SSL_shutdown(relay->ssl);
        }
        return true;
    }
    if (up->at == up->length)
        return false;
    int sent = SSL_write(relay->ssl, up->bytes + up->at, (int)(up->length - up->at));
    if (sent > 0) {
        up->at += (size_t)sent;
        return true;
    }
    relay->wants_write = SSL_get_error(relay->ssl, sent) == SSL_ERROR_WANT_WRITE;
    if (!relay->wants_write && SSL_get_error(relay->ssl, sent) != SSL_ERROR_WANT_READ)
        relay->is_down_over = true;
    return false;
}

static bool move_down(struct relay *relay)
{
    struct way *down = &relay->down;

    if (down->at == down->length && !relay->is_down_over) {
        int got = SSL_read(relay->ssl, down->bytes, PIECE);
        down->at = 0;
        down->length = got > 0 ? (size_t)got : 0;
        if (got > 0)
            return true;
        int wants = SSL_get_error(relay->ssl, got);
        if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE)
            relay->is_down_over = true;
        relay->is_cut = relay->is_down_over && wants != SSL_ERROR_ZERO_RETURN;
        return false;
    }
    if (down->at == down->length)
        return false;
    ssize_t wrote = write(STDOUT_FILENO, down->bytes + down->at, down->length - down->at);
    if (wrote > 0)
        down->at += (size_t)wrote;
    else if (wrote < 0 && errno != EAGAIN && errno != EINTR)
        relay->is_down_over = relay->is_up_over = true, down->at = down->length;
    return wrote > 0;
}

static void run(struct relay *relay)
{
    for (;;) {
        relay->wants_write = false;
        bool has_moved = move_up(relay);
        has_moved |= move_down(relay);
        bool is_delivered = relay->down.at == relay->down.length;
        if (relay->is_down_over && is_delivered)
            return;
        if (relay->is_up_over && relay->is_down_over)
            return;
        if (has_moved)
            continue;
        bool has_up = relay->up.at < relay->up.length;
        struct pollfd fds[] = {
            {.fd = has_up || relay->is_up_over ? -1 : STDIN_FILENO, .events = POLLIN},
            {.fd = is_delivered ? -1 : STDOUT_FILENO, .events = POLLOUT},
            {.fd = relay->fd,
             .events = (short)((is_delivered ? POLLIN : 0) | (relay->wants_write ? POLLOUT : 0))},
            {.fd = STDOUT_FILENO, .events = 0}, // whoever started us has gone
        };
        if (poll(fds, 4, -1) < 0 && errno != EINTR)
            return;
        if (fds[3].revents & (POLLHUP | POLLERR) && is_delivered)
            return;
    }
}

int main(int argc, char **argv)
{
    static struct relay relay;
    int wait_ms = argc > 3 ? atoi(argv[3]) : 10000;
    char reason[256];

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN); // who started us decides, and closes
    if (argc < 3) {
        (void)fputs("usage: burrow-tls HOST PORT [CONNECT_MS [CA_FILE]]\n", stderr);
        return 2;
    }
    if (dial(argv[1], argv[2], wait_ms, &relay.fd) != 0)
        return 1;
    relay.ssl = prepare(argv[1], argc > 4 ? argv[4] : NULL, relay.fd);
    if (!relay.ssl)
        return fail(argv[1], "TLS cannot be prepared", argc > 4 ? argv[4] : "");
    if (shake_hands(relay.ssl, relay.fd, wait_ms) < 0)
        return fail(argv[1], "the certificate or the handshake failed",
                    tls_reason(relay.ssl, reason));
    if (write(STDOUT_FILENO, "ok\n", 3) != 3)
        return 1;
    (void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    (void)fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    run(&relay);
    return relay.is_cut ? EXIT_CUT : 0;
}
