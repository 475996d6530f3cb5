/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a connection that is read here, plain or with TLS; see flow.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/flow.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#define PART 16384

void leg_init(struct leg *leg)
{
    leg->watch.fd = -1;
    buffer_init(&leg->in, 0);
    buffer_init(&leg->out, 0);
    buffer_init(&leg->waiting, 0);
}

void leg_clear(struct worker *worker, struct leg *leg)
{
    watch_close(worker, &leg->watch);
    SSL_free(leg->ssl);
    leg->ssl = NULL;
    buffer_clear(&leg->in);
    buffer_clear(&leg->out);
    buffer_clear(&leg->waiting);
}

void leg_used(struct leg *leg, size_t length)
{
    if (!length)
        return;
    memmove(leg->in.data, leg->in.data + length, leg->in.length - length);
    leg->in.length -= length;
}

/* What TLS has to send. */
static bool take_records(struct leg *leg)
{
    char part[PART];
    struct error err;
    int got;

    while ((got = BIO_read(SSL_get_wbio(leg->ssl), part, sizeof part)) > 0) {
        if (buffer_add(&leg->out, part, (size_t)got, &err) < 0)
            return false;
    }
    return true;
}

/* What was put before TLS had agreed. */
static bool put_waiting(struct leg *leg)
{
    if (!leg->waiting.length || !SSL_is_init_finished(leg->ssl))
        return true;
    int length = (int)leg->waiting.length;
    bool is_good = SSL_write(leg->ssl, leg->waiting.data, length) == length;
    buffer_clear(&leg->waiting);
    return is_good;
}

/* Reads all that TLS can make of what it was fed. */
static bool take_plain(struct leg *leg)
{
    char part[PART];
    struct error err;

    for (;;) {
        ERR_clear_error();
        int got = SSL_read(leg->ssl, part, sizeof part);
        int why = SSL_get_error(leg->ssl, got);
        if (!put_waiting(leg))
            return false;
        if (got > 0 && buffer_add(&leg->in, part, (size_t)got, &err) < 0)
            return false;
        if (got > 0)
            continue;
        if (why == SSL_ERROR_ZERO_RETURN)
            leg->is_eof = true;
        bool is_good = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ||
                       why == SSL_ERROR_ZERO_RETURN;
        return take_records(leg) && is_good;
    }
}

bool leg_feed(struct leg *leg, const void *bytes, size_t length)
{
    struct error err;

    if (!leg->ssl)
        return buffer_add(&leg->in, bytes, length, &err) == 0;
    return BIO_write(SSL_get_rbio(leg->ssl), bytes, (int)length) == (int)length && take_plain(leg);
}

bool leg_pull(struct leg *leg)
{
    char part[PART];

    for (int i = 0; i < 8 && !leg->is_eof && leg->in.length < LEG_ROOM; i++) {
        ssize_t got = recv(leg->watch.fd, part, sizeof part, MSG_DONTWAIT);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0) {
            leg->is_eof = true;
            return true;
        }
        if (!leg_feed(leg, part, (size_t)got))
            return false;
    }
    return true;
}

bool leg_put(struct leg *leg, const void *bytes, size_t length)
{
    struct error err;

    if (!length)
        return true;
    if (!leg->ssl)
        return buffer_add(&leg->out, bytes, length, &err) == 0;
    ERR_clear_error();
    if (!SSL_is_init_finished(leg->ssl))
        return buffer_add(&leg->waiting, bytes, length, &err) == 0;
    return SSL_write(leg->ssl, bytes, (int)length) == (int)length && take_records(leg);
}

bool leg_flush(struct leg *leg)
{
    if (leg->is_ending && !leg->is_ended && leg->ssl && SSL_is_init_finished(leg->ssl) &&
        !(SSL_get_shutdown(leg->ssl) & SSL_SENT_SHUTDOWN)) {
        (void)SSL_shutdown(leg->ssl);
        (void)take_records(leg);
    }
    size_t sent = 0;
    while (sent < leg->out.length && leg->watch.fd >= 0) {
        ssize_t got = send(leg->watch.fd, leg->out.data + sent, leg->out.length - sent,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (got < 0)
            break;
        sent += (size_t)got;
    }
    if (sent) {
        memmove(leg->out.data, leg->out.data + sent, leg->out.length - sent);
        leg->out.length -= sent;
    }
    if (leg->is_ending && !leg->is_ended && !leg->out.length && leg->watch.fd >= 0) {
        leg->is_ended = true;
        (void)shutdown(leg->watch.fd, SHUT_WR);
    }
    return true;
}
