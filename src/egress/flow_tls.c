/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for hosts, and both ends of TLS; see flow_tls.h. */
#include "egress/flow_tls.h"

#include "base/auto.h"
#include "base/mem.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_MS ((uint64_t)12 * 3600 * 1000)
#define MAX_LEAVES 256

struct leaf {
    char name[POLICY_NAME_LENGTH];
    SSL_CTX *context;
    uint64_t until_ms;
    struct leaf *next;
};

static SSL_CTX *find_leaf(struct worker *worker, const char *name)
{
    for (struct leaf *leaf = worker->flows->leaves; leaf; leaf = leaf->next) {
        if (strcmp(leaf->name, name) == 0 && leaf->until_ms > worker->now_ms)
            return leaf->context;
    }
    return NULL;
}

static void drop_leaves(struct worker *worker)
{
    size_t count = 0;

    for (struct leaf **at = &worker->flows->leaves; *at;) {
        struct leaf *leaf = *at;
        if (leaf->until_ms > worker->now_ms && ++count < MAX_LEAVES) {
            at = &leaf->next;
            continue;
        }
        *at = leaf->next;
        SSL_CTX_free(leaf->context);
        free(leaf);
    }
}

/* HTTP/1.1 alone: no second parser in this path. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *in, unsigned in_length, void *data)
{
    static const unsigned char wanted[] = "http/1.1";

    for (unsigned at = 0; at < in_length && at + 1 + in[at] <= in_length; at += 1 + in[at]) {
        if (in[at] == sizeof wanted - 1 && memcmp(in + at + 1, wanted, sizeof wanted - 1) == 0) {
            *out = in + at + 1;
            *out_length = in[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *make_context(const char *pem, size_t length)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)length);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    BIO_free(bio);
    if (context && certificate && key && SSL_CTX_use_certificate(context, certificate) == 1 &&
        SSL_CTX_use_PrivateKey(context, key) == 1) {
        (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    } else {
        SSL_CTX_free(context);
        context = NULL;
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
}

static bool make_ssl(struct leg *leg, SSL_CTX *context)
{
    leg->ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (!leg->ssl || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    SSL_set_bio(leg->ssl, in, out);
    return true;
}

bool flow_begin_tls(struct worker *worker, struct flow *flow)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    struct leg *leg = &flow->server;

    if (!worker->upstream || !make_ssl(leg, worker->upstream) ||
        SSL_set1_host(leg->ssl, flow->name) != 1 ||
        SSL_set_tlsext_host_name(leg->ssl, flow->name) != 1 ||
        SSL_set_alpn_protos(leg->ssl, protocols, sizeof protocols - 1) != 0)
        return false;
    SSL_set_hostflags(leg->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set_connect_state(leg->ssl);
    return true;
}

static void start(struct worker *worker, struct flow *flow, SSL_CTX *context)
{
    autobuffer hello = flow->client.in;

    buffer_init(&flow->client.in, 0);
    flow->is_opened = true;
    flow->kind = EGRESS_HTTP;
    flow->state = FLOW_RELAY;
    if (!make_ssl(&flow->client, context)) {
        flow_reset(worker, flow);
        return;
    }
    SSL_set_accept_state(flow->client.ssl);
    if (!leg_feed(&flow->client, hello.data, hello.length) || !flow_begin_tls(worker, flow)) {
        (void)leg_flush(&flow->client);
        flow_reset(worker, flow);
        return;
    }
    relay_start(worker, flow);
}

void flow_open_tls(struct worker *worker, struct flow *flow)
{
    SSL_CTX *context = find_leaf(worker, flow->name);

    if (context) {
        start(worker, flow, context);
        return;
    }
    flow->state = FLOW_DIALLING;
    watch_change(worker, &flow->client.watch, 0);
    flow->serial = worker_ask(worker, EGRESS_LEAF, flow->name, strlen(flow->name) + 1);
}

void flows_leaf(struct worker *worker, uint64_t serial, const char *pem, size_t length)
{
    for (struct flow *flow = worker->flows->first; flow; flow = flow->next) {
        if (flow->serial != serial)
            continue;
        flow->serial = 0;
        SSL_CTX *context = make_context(pem, length);
        if (!context) {
            flow_reset(worker, flow);
            return;
        }
        drop_leaves(worker);
        struct leaf *leaf = xnew(struct leaf);
        (void)strcpy(leaf->name, flow->name);
        leaf->context = context;
        leaf->until_ms = worker->now_ms + LEAF_MS;
        leaf->next = worker->flows->leaves;
        worker->flows->leaves = leaf;
        start(worker, flow, context);
        return;
    }
}
