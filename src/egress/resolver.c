/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS for boxes. A name that no rule allows is refused here and nothing of it leaves; an address is answered once it is pinned in the kernel, so that the
 * connection which follows finds it open.
 */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define UPSTREAMS 8
#define LOOKUPS 4096
#define RATE 200 // lookups a second of one box
#define BURST 400
#define TRY_MS 2000
#define TRIES 4
#define CHAIN 8
#define CLIENTS 1024      // over TCP
#define CLIENTS_OF_BOX 16 // of these
#define CLIENT_MS 10000
#define CLIENT_BYTES 2048
#define MIN_PIN_SECONDS 300
#define CACHE 1024
#define CACHE_ADDRESSES 16
#define BATCH 64
#define PLAIN_SECONDS 60 // to live, of what is made here

/* A box's connection for lookups; one question at a time. */
struct client {
    struct watch watch;
    uint32_t address;
    uint64_t until_ms;
    size_t length;
    bool is_busy; // its question is being answered
    unsigned char bytes[CLIENT_BYTES];
    struct client *next, **link;
};

struct lookup {
    unsigned slot;
    uint64_t generation;
    struct dns_question question;
    struct sockaddr_in from;
    struct client *client;          // NULL: over UDP
    char asked[POLICY_NAME_LENGTH]; // of the resolver, which is the name or what it stands for
    unsigned hops, tries;
    uint16_t id;
    uint64_t until_ms;
    bool is_refused;  // by a rule, for a name of the chain
    uint64_t serial;  // of the pins it waits for, or of a connection to a resolver
    struct watch tcp; // to a resolver
    size_t tcp_length;
    unsigned char *tcp_bytes;
    struct dns_answer answer;
    struct lookup *next, **link;
};

struct cached {
    char name[POLICY_NAME_LENGTH];
    uint32_t addresses[CACHE_ADDRESSES];
    size_t count;
    uint64_t until_ms;
    unsigned code;
};

struct resolver {
    struct watch udp, tcp;
    struct watch upstreams[UPSTREAMS];
    size_t n_upstreams;
    struct lookup *by_id[65536];
    struct lookup *lookups;
    size_t n_lookups;
    struct client *clients;
    size_t n_clients;
    struct cached cache[CACHE];
};

// ---- ends ----

static void client_free(struct worker *worker, struct client *client)
{
    for (struct lookup *lookup = worker->resolver->lookups; lookup; lookup = lookup->next) {
        if (lookup->client == client)
            lookup->client = NULL, lookup->from.sin_port = 0; // nobody waits for it
    }
    watch_close(worker, &client->watch);
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    worker->resolver->n_clients--;
    worker_free_later(worker, client);
}

static void lookup_free(struct worker *worker, struct lookup *lookup)
{
    struct resolver *resolver = worker->resolver;
    struct box *box = box_at(worker, lookup->slot);

    if (resolver->by_id[lookup->id] == lookup)
        resolver->by_id[lookup->id] = NULL;
    watch_close(worker, &lookup->tcp);
    free(lookup->tcp_bytes);
    *lookup->link = lookup->next;
    if (lookup->next)
        lookup->next->link = lookup->link;
    resolver->n_lookups--;
    if (box && box->open_lookups)
        box->open_lookups--;
    worker_free_later(worker, lookup);
}

// ---- answers ----

static void send_reply(struct worker *worker, const struct dns_question *question,
                       const struct sockaddr_in *from, struct client *client,
                       const struct dns_reply *reply)
{
    unsigned char out[2 + DNS_MESSAGE];

    if (!client) {
        size_t length = dns_write_reply(question, reply, question->room, out);
        if (from->sin_port)
            (void)sendto(WORKER_DNS_UDP, out, length, MSG_DONTWAIT | MSG_NOSIGNAL,
                         (const struct sockaddr *)from, sizeof *from);
        return;
    }
    size_t length = dns_write_reply(question, reply, DNS_MESSAGE, out + 2);
    out[0] = (unsigned char)(length >> 8);
    out[1] = (unsigned char)length;
    client->is_busy = false;
    if (send(client->watch.fd, out, length + 2, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        (ssize_t)(length + 2)) {
        client_free(worker, client); // it does not read its answers
        return;
    }
    watch_change(worker, &client->watch, EPOLLIN);
}

static void finish(struct worker *worker, struct lookup *lookup, const struct dns_reply *reply)
{
    send_reply(worker, &lookup->question, &lookup->from, lookup->client, reply);
    lookup_free(worker, lookup);
}

static void fail(struct worker *worker, struct lookup *lookup, const char *why)
{
    finish(
        worker, lookup,
        &(struct dns_reply){.code = DNS_SERVER_FAILURE, .extended = DNS_NO_REACHABLE, .text = why});
}

/* What is answered to a question that has no lookup behind it. */
static void answer_now(struct worker *worker, const struct dns_question *question,
                       const struct sockaddr_in *from, struct client *client,
                       const struct dns_reply *reply)
{
    send_reply(worker, question, from, client, reply);
}

// ---- pins ----

static size_t add_pins(const struct box *box, const char *name, uint32_t address,
                       struct egress_pin *out, size_t count)
{
    struct policy_pin pins[POLICY_MAX_PINS];
    size_t found = policy_pins(&box->policy, name, address, pins);
    bool has_all = false;

    for (size_t i = 0; i < found && count < EGRESS_MAX_PINS; i++) {
        has_all |= !pins[i].port && (pins[i].protocols & POLICY_TCP);
        out[count++] = (struct egress_pin){address, (uint16_t)pins[i].protocols, pins[i].port};
    }
    // What is read here gets here by its pin, whoever allows it.
    static const uint16_t read_here[] = {80, 443};
    bool is_by_default =
        box->policy.mode == POLICY_OPEN || box->policy.is_default_allow || box->policy.is_observing;
    for (size_t i = 0; i < ARRAY_SIZE(read_here) && (has_all || is_by_default); i++) {
        if (count < EGRESS_MAX_PINS)
            out[count++] = (struct egress_pin){address, POLICY_TCP, read_here[i]};
    }
    return count;
}

void resolver_repin(struct worker *worker, struct box *box)
{
    struct {
        struct egress_pin_message head;
        struct egress_pin pins[EGRESS_MAX_PINS];
    } message = {.head.slot = box->slot};

    for (size_t i = 0; i < box->n_pins && box->class == POLICY_CLASS_NAMES; i++) {
        const struct pin *pin = &box->pins[i];
        uint64_t left_ms = box_pin_left_ms(box, pin->address, pin->name);
        size_t count = left_ms ? add_pins(box, pin->name, pin->address, message.pins, 0) : 0;
        if (!count)
            continue;
        message.head.seconds = (uint32_t)(left_ms / 1000) + 1;
        message.head.count = (uint32_t)count;
        (void)worker_ask(worker, EGRESS_PIN, &message,
                         sizeof message.head + count * sizeof *message.pins);
    }
}

/* Whether all of them were pinned a short while ago. */
static bool is_pinned(const struct box *box, const struct lookup *lookup)
{
    for (size_t i = 0; i < lookup->answer.count; i++) {
        if (box_pin_left_ms(box, lookup->answer.addresses[i], lookup->question.name) <
            (uint64_t)MIN_PIN_SECONDS * 900)
            return false;
    }
    return true;
}

static void reply_addresses(struct worker *worker, struct lookup *lookup)
{
    finish(worker, lookup,
           &(struct dns_reply){.addresses = lookup->answer.addresses,
                               .count = lookup->answer.count,
                               .seconds = lookup->answer.seconds});
}

/* Pins what was found, and answers when that is done. */
static void pin_and_reply(struct worker *worker, struct box *box, struct lookup *lookup)
{
    struct {
        struct egress_pin_message head;
        struct egress_pin pins[EGRESS_MAX_PINS];
    } message = {.head.slot = box->slot};
    uint32_t seconds =
        lookup->answer.seconds < MIN_PIN_SECONDS ? MIN_PIN_SECONDS : lookup->answer.seconds;
    size_t count = 0;

    if (box->class != POLICY_CLASS_NAMES || is_pinned(box, lookup)) {
        reply_addresses(worker, lookup);
        return;
    }
    for (size_t i = 0; i < lookup->answer.count; i++) {
        uint32_t address = lookup->answer.addresses[i];
        count = add_pins(box, lookup->question.name, address, message.pins, count);
        box_add_pin(box, address, lookup->question.name, worker->now_ms + (uint64_t)seconds * 1000);
    }
    if (!count) {
        reply_addresses(worker, lookup);
        return;
    }
    message.head.seconds = seconds;
    message.head.count = (uint32_t)count;
    lookup->until_ms = worker->now_ms + TRY_MS;
    lookup->tries = TRIES;
    lookup->serial = worker_ask(worker, EGRESS_PIN, &message,
                                sizeof message.head + count * sizeof *message.pins);
}

void resolver_pinned(struct worker *worker, uint64_t serial, bool is_done)
{
    for (struct lookup *lookup = worker->resolver->lookups; lookup; lookup = lookup->next) {
        if (lookup->serial != serial)
            continue;
        if (is_done)
            reply_addresses(worker, lookup);
        else
            fail(worker, lookup, "the address could not be opened");
        return;
    }
}

// ---- resolvers ----

static struct cached *cache_place(struct resolver *resolver, const char *name)
{
    uint32_t hash = 2166136261u;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return &resolver->cache[hash % CACHE];
}

static void cache_put(struct worker *worker, const struct lookup *lookup)
{
    struct cached *cached = cache_place(worker->resolver, lookup->question.name);
    const struct dns_answer *answer = &lookup->answer;

    if (answer->count == 0 || answer->count > CACHE_ADDRESSES || lookup->is_refused ||
        answer->seconds == 0 || lookup->hops) // a chain is judged for each box anew
        return;
    (void)strcpy(cached->name, lookup->question.name);
    memcpy(cached->addresses, answer->addresses, answer->count * sizeof *answer->addresses);
    cached->count = answer->count;
    cached->until_ms = worker->now_ms + (uint64_t)answer->seconds * 1000;
}

static bool make_id(struct resolver *resolver, struct lookup *lookup)
{
    uint16_t id;

    for (int i = 0; i < 64; i++) {
        if (getrandom(&id, sizeof id, 0) != sizeof id)
            return false;
        if (resolver->by_id[id])
            continue;
        lookup->id = id;
        resolver->by_id[id] = lookup;
        return true;
    }
    return false;
}

/* Asks the next resolver, or once more. */
static void ask(struct worker *worker, struct lookup *lookup)
{
    struct resolver *resolver = worker->resolver;
    unsigned char query[DNS_MESSAGE];

    lookup->serial = 0;
    if (resolver->by_id[lookup->id] == lookup)
        resolver->by_id[lookup->id] = NULL;
    if (!resolver->n_upstreams || lookup->tries >= TRIES || !make_id(resolver, lookup)) {
        fail(worker, lookup,
             resolver->n_upstreams ? "no resolver answered" : "there is no resolver to ask");
        return;
    }
    size_t length = dns_write_query(lookup->id, lookup->asked, DNS_A, query);
    struct watch *upstream = &resolver->upstreams[lookup->tries++ % resolver->n_upstreams];
    lookup->until_ms = worker->now_ms + TRY_MS;
    if (upstream->fd >= 0)
        (void)send(upstream->fd, query, length,
                   MSG_DONTWAIT | MSG_NOSIGNAL); // or the time runs out
}

struct chain {
    struct worker *worker;
    struct lookup *lookup;
};

/*
 * Another name that the one asked for stands for. Whoever owns a name may host it where it likes, so no rule has to allow the other; one that refuses it, though, holds. What is
 * pinned is the name that was asked for.
 */
static bool on_chain_name(void *data, const char *name)
{
    struct chain *chain = data;
    struct box *box = box_at(chain->worker, chain->lookup->slot);
    struct policy_verdict verdict;

    if (!box || policy_is_host(name))
        return false;
    policy_decide(&box->policy, &(struct policy_question){.name = name}, &verdict);
    chain->lookup->hops++;
    if ((verdict.is_allowed && !verdict.would_deny) || verdict.tier == POLICY_DEFAULT)
        return chain->lookup->hops <= CHAIN;
    refuse(chain->worker, box, EGRESS_DNS, &(struct policy_question){.name = name}, &verdict);
    if (verdict.would_deny)
        return chain->lookup->hops <= CHAIN;
    chain->lookup->is_refused = true;
    return false;
}

/* Leaves out what the box may not reach by this name: private addresses, the host's and those that a rule refuses. */
static size_t keep_allowed(struct worker *worker, struct box *box, struct lookup *lookup)
{
    struct dns_answer *answer = &lookup->answer;
    size_t kept = 0;

    for (size_t i = 0; i < answer->count; i++) {
        struct policy_verdict verdict;
        const struct policy_question question = {.name = lookup->question.name,
                                                 .address = answer->addresses[i]};
        policy_decide(&box->policy, &question, &verdict);
        if (!verdict.is_allowed)
            refuse(worker, box, EGRESS_DNS, &question, &verdict);
        else
            answer->addresses[kept++] = answer->addresses[i];
    }
    return kept;
}

static void refuse_lookup(struct worker *worker, struct lookup *lookup, const char *why)
{
    finish(worker, lookup,
           &(struct dns_reply){.code = DNS_REFUSED, .extended = DNS_BLOCKED, .text = why});
}

/* All addresses are there, or there are none. */
static void conclude(struct worker *worker, struct lookup *lookup)
{
    struct box *box = box_at(worker, lookup->slot);
    struct dns_answer *answer = &lookup->answer;

    if (!box || box->generation != lookup->generation) { // another policy by now
        refuse_lookup(worker, lookup, "the network policy has changed");
        return;
    }
    if (lookup->is_refused) {
        refuse_lookup(worker, lookup, "the name stands for another that a rule refuses");
        return;
    }
    if (answer->count == 0) {
        bool is_known = answer->code == DNS_NO_ERROR || answer->code == DNS_NAME_ERROR;
        finish(worker, lookup,
               &(struct dns_reply){.code = is_known ? answer->code : DNS_SERVER_FAILURE});
        return;
    }
    answer->count = keep_allowed(worker, box, lookup);
    if (answer->count == 0) {
        refuse_lookup(worker, lookup, "its addresses are closed to sandboxes");
        return;
    }
    pin_and_reply(worker, box, lookup);
}

/* What a resolver said. */
static void take_answer(struct worker *worker, struct lookup *lookup, const unsigned char *bytes,
                        size_t length, bool is_tcp)
{
    struct chain chain = {worker, lookup};

    if (!dns_read_answer(bytes, length, lookup->id, lookup->asked, on_chain_name, &chain,
                         &lookup->answer))
        return;
    if (lookup->answer.is_cut && !is_tcp) {
        const struct egress_dial_message dial = {.slot = lookup->slot,
                                                 .port = (lookup->tries - 1) %
                                                         (uint32_t)worker->resolver->n_upstreams};
        lookup->serial = worker_ask(worker, EGRESS_DIAL_DNS, &dial, sizeof dial);
        return;
    }
    if (!lookup->answer.count && *lookup->answer.target && !lookup->is_refused) {
        (void)strcpy(lookup->asked, lookup->answer.target);
        lookup->tries = 0;
        ask(worker, lookup);
        return;
    }
    cache_put(worker, lookup);
    conclude(worker, lookup);
}

static void on_upstream(struct worker *worker, struct watch *watch, uint32_t events)
{
    unsigned char bytes[DNS_MESSAGE];

    for (int i = 0; i < BATCH; i++) {
        ssize_t got = recv(watch->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 2)
            return;
        struct lookup *lookup = worker->resolver->by_id[bytes[0] << 8 | bytes[1]];
        if (lookup && lookup->tcp.fd < 0 && !lookup->serial)
            take_answer(worker, lookup, bytes, (size_t)got, false);
    }
}

void resolver_set_upstream(struct worker *worker, uint32_t index, int fd)
{
    struct resolver *resolver = worker->resolver;

    if (index >= UPSTREAMS || fd < 0)
        return;
    struct watch *watch = &resolver->upstreams[index];
    watch_close(worker, watch);
    watch->on_event = on_upstream;
    watch_add(worker, watch, fd, EPOLLIN);
    resolver->n_upstreams = index + 1; // they come in order, and all again where one has changed
    for (size_t i = index + 1; i < UPSTREAMS; i++)
        watch_close(worker, &resolver->upstreams[i]);
}

// ---- resolvers over TCP, for what is too long ----

static void on_tcp_answer(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct lookup *lookup = watch->owner;

    if (lookup->tcp_length < 2 && !lookup->tcp_bytes) { // connected: ask
        unsigned char query[2 + DNS_MESSAGE];
        size_t length = dns_write_query(lookup->id, lookup->asked, DNS_A, query + 2);
        query[0] = (unsigned char)(length >> 8);
        query[1] = (unsigned char)length;
        if (send(watch->fd, query, length + 2, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            fail(worker, lookup, "no resolver answered");
            return;
        }
        lookup->tcp_bytes = xcalloc(1, 65538);
        watch_change(worker, watch, EPOLLIN);
        return;
    }
    ssize_t got = recv(watch->fd, lookup->tcp_bytes + lookup->tcp_length,
                       65537 - lookup->tcp_length, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        fail(worker, lookup, "no resolver answered");
        return;
    }
    lookup->tcp_length += (size_t)got;
    size_t want = lookup->tcp_length < 2
                      ? 65538
                      : ((size_t)lookup->tcp_bytes[0] << 8 | lookup->tcp_bytes[1]) + 2;
    if (lookup->tcp_length < want)
        return;
    autofree unsigned char *bytes = take(lookup->tcp_bytes);
    lookup->tcp_length = 0;
    watch_close(worker, &lookup->tcp);
    take_answer(worker, lookup, bytes + 2, want - 2, true);
}

void resolver_dialled(struct worker *worker, uint64_t serial, int fd)
{
    for (struct lookup *lookup = worker->resolver->lookups; lookup; lookup = lookup->next) {
        if (lookup->serial != serial)
            continue;
        lookup->serial = 0;
        if (fd < 0) {
            fail(worker, lookup, "no resolver answered");
            return;
        }
        lookup->until_ms = worker->now_ms + 2 * TRY_MS;
        lookup->tries = TRIES;
        lookup->tcp.on_event = on_tcp_answer;
        lookup->tcp.owner = lookup;
        watch_add(worker, &lookup->tcp, fd, EPOLLOUT);
        return;
    }
    closep(&fd);
}

// ---- questions ----

/* A name that a rule allows. */
static void begin(struct worker *worker, struct box *box, const struct dns_question *question,
                  const struct sockaddr_in *from, struct client *client)
{
    struct resolver *resolver = worker->resolver;
    const struct cached *cached = cache_place(resolver, question->name);

    if (resolver->n_lookups >= LOOKUPS || box->open_lookups >= WORKER_BOX_LOOKUPS) {
        answer_now(worker, question, from, client,
                   &(struct dns_reply){.code = DNS_SERVER_FAILURE,
                                       .extended = DNS_NO_REACHABLE,
                                       .text = "too many lookups at once"});
        return;
    }
    struct lookup *lookup = xnew(struct lookup);
    lookup->slot = box->slot;
    lookup->generation = box->generation;
    lookup->question = *question;
    lookup->from = *from;
    lookup->client = client;
    lookup->tcp.fd = -1;
    (void)strcpy(lookup->asked, question->name);
    lookup->next = resolver->lookups;
    lookup->link = &resolver->lookups;
    if (lookup->next)
        lookup->next->link = &lookup->next;
    resolver->lookups = lookup;
    resolver->n_lookups++;
    box->open_lookups++;
    if (strcmp(cached->name, question->name) == 0 && cached->until_ms > worker->now_ms) {
        memcpy(lookup->answer.addresses, cached->addresses, sizeof cached->addresses);
        lookup->answer.count = cached->count;
        lookup->answer.seconds = (uint32_t)((cached->until_ms - worker->now_ms) / 1000) + 1;
        conclude(worker, lookup);
        return;
    }
    ask(worker, lookup);
}

static void refuse_question(struct worker *worker, const struct dns_question *question,
                            const struct sockaddr_in *from, struct client *client,
                            unsigned extended, const char *text)
{
    answer_now(worker, question, from, client,
               &(struct dns_reply){.code = DNS_REFUSED, .extended = extended, .text = text});
}

static void take_name(struct worker *worker, struct box *box, const struct dns_question *question,
                      const struct sockaddr_in *from, struct client *client)
{
    const struct policy_question asked = {.name = question->name};
    struct policy_verdict verdict;
    char text[sizeof verdict.reason + sizeof verdict.remedy + 2];

    judge(worker, box, EGRESS_DNS, &asked, &verdict);
    if (!verdict.is_allowed) {
        (void)snprintf(text, sizeof text, "%s; %s", verdict.reason, verdict.remedy);
        text[300] = '\0'; // it has to fit into a packet
        refuse_question(worker, question, from, client, DNS_BLOCKED, text);
        return;
    }
    if (policy_is_host(question->name)) {
        answer_now(worker, question, from, client,
                   &(struct dns_reply){.addresses = &worker->gateway,
                                       .count = question->type == DNS_A,
                                       .seconds = PLAIN_SECONDS});
        return;
    }
    if (question->type == DNS_A)
        begin(worker, box, question, from, client);
    else // no IPv6 inside, and no hints at other protocols
        answer_now(worker, question, from, client, &(struct dns_reply){0});
}

static void take_question(struct worker *worker, const unsigned char *bytes, size_t length,
                          const struct sockaddr_in *from, struct client *client)
{
    struct dns_question question;
    struct box *box = box_of(worker, ntohl(from->sin_addr.s_addr));
    int code = dns_read_question(bytes, length, &question);

    if (code < 0) {
        if (client)
            client_free(worker, client);
        return;
    }
    if (box)
        box->counters.lookups++;
    if (!box) {
        refuse_question(worker, &question, from, client, DNS_PROHIBITED,
                        "this sandbox has no network policy yet");
    } else if (code) {
        answer_now(worker, &question, from, client, &(struct dns_reply){.code = (unsigned)code});
    } else if (!bucket_take(&box->lookups, RATE, BURST)) {
        refuse(worker, box, EGRESS_RATE, &(struct policy_question){0},
               &(struct policy_verdict){.tier = POLICY_DEFAULT,
                                        .reason = "more lookups than a sandbox may make",
                                        .remedy = "keep the addresses that were found"});
        if (client)
            client_free(worker, client);
    } else if (question.class != 1 || !*question.name ||
               (question.type != DNS_A && question.type != DNS_AAAA && question.type != DNS_HTTPS &&
                question.type != DNS_SVCB)) {
        refuse(worker, box, EGRESS_DNS,
               &(struct policy_question){.name = *question.name ? question.name : NULL},
               &(struct policy_verdict){.tier = POLICY_CLOSED,
                                        .reason = "only addresses are resolved for sandboxes",
                                        .remedy = "look the name up outside"});
        refuse_question(worker, &question, from, client, DNS_NOT_SUPPORTED,
                        "only addresses are resolved for sandboxes");
    } else {
        take_name(worker, box, &question, from, client);
    }
}

static void on_udp(struct worker *worker, struct watch *watch, uint32_t events)
{
    unsigned char bytes[CLIENT_BYTES];
    struct sockaddr_in from;

    for (int i = 0; i < BATCH; i++) {
        socklen_t size = sizeof from;
        ssize_t got =
            recvfrom(watch->fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
        if (got < 0)
            return;
        if (size == sizeof from && from.sin_family == AF_INET)
            take_question(worker, bytes, (size_t)got, &from, NULL);
    }
}

// ---- boxes over TCP ----

/* Takes the question that is there; the next one waits until this is answered. */
static void take_from_client(struct worker *worker, struct client *client)
{
    if (client->length < 2 || client->is_busy)
        return;
    size_t want = (size_t)client->bytes[0] << 8 | client->bytes[1];
    if (want > CLIENT_BYTES - 2) {
        client_free(worker, client);
        return;
    }
    if (client->length < want + 2)
        return;
    unsigned char bytes[CLIENT_BYTES];
    const struct sockaddr_in from = {AF_INET, .sin_addr.s_addr = htonl(client->address)};
    memcpy(bytes, client->bytes + 2, want);
    client->length -= want + 2;
    memmove(client->bytes, client->bytes + want + 2, client->length);
    client->is_busy = true;
    watch_change(worker, &client->watch, 0);
    take_question(worker, bytes, want, &from, client);
}

static void on_client(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct client *client = watch->owner;

    ssize_t got = recv(watch->fd, client->bytes + client->length, CLIENT_BYTES - client->length,
                       MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        client_free(worker, client);
        return;
    }
    client->length += (size_t)got;
    take_from_client(worker, client);
}

/* Whoever has its share loses its oldest connection, a box as well as all together. False: all are being answered. */
static bool make_room(struct worker *worker, uint32_t address)
{
    struct client *of_box = NULL, *of_all = NULL; // the newest come first
    size_t count = 0;

    for (struct client *client = worker->resolver->clients; client; client = client->next) {
        of_all = client->is_busy ? of_all : client;
        if (client->address == address)
            of_box = client, count++;
    }
    if (count >= CLIENTS_OF_BOX)
        client_free(worker, of_box);
    else if (worker->resolver->n_clients >= CLIENTS && of_all)
        client_free(worker, of_all);
    return worker->resolver->n_clients < CLIENTS;
}

static void on_tcp(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct client **first = &worker->resolver->clients;
    struct sockaddr_in from;
    socklen_t size = sizeof from;

    autofd fd = accept4(watch->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || size != sizeof from || !box_of(worker, ntohl(from.sin_addr.s_addr)) ||
        !make_room(worker, ntohl(from.sin_addr.s_addr)))
        return;
    struct client *client = xnew(struct client);
    client->address = ntohl(from.sin_addr.s_addr);
    client->until_ms = worker->now_ms + CLIENT_MS;
    client->watch.on_event = on_client;
    client->watch.owner = client;
    client->next = *first;
    client->link = first;
    if (client->next)
        client->next->link = &client->next;
    *first = client;
    worker->resolver->n_clients++;
    watch_add(worker, &client->watch, take_fd(fd), EPOLLIN);
}

// ---- time ----

void resolver_forget_box(struct worker *worker, unsigned slot)
{
    const struct box *box = box_at(worker, slot);

    for (struct client *client = worker->resolver->clients, *next; client; client = next) {
        next = client->next;
        if (!box && !box_of(worker, client->address))
            client_free(worker, client);
    }
    for (struct lookup *lookup = worker->resolver->lookups, *next; lookup; lookup = next) {
        next = lookup->next;
        if (lookup->slot == slot && !box)
            lookup_free(worker, lookup);
    }
}

void resolver_tick(struct worker *worker)
{
    for (struct lookup *lookup = worker->resolver->lookups, *next; lookup; lookup = next) {
        next = lookup->next;
        if (lookup->until_ms > worker->now_ms)
            continue;
        if (lookup->tries >= TRIES)
            fail(worker, lookup, "no resolver answered");
        else
            ask(worker, lookup);
    }
    for (struct client *client = worker->resolver->clients, *next; client; client = next) {
        next = client->next;
        if (client->is_busy)
            continue;
        if (client->until_ms <= worker->now_ms)
            client_free(worker, client);
        else
            take_from_client(worker, client);
    }
}

void resolver_start(struct worker *worker)
{
    struct resolver *resolver = xnew(struct resolver);

    worker->resolver = resolver;
    for (size_t i = 0; i < UPSTREAMS; i++)
        resolver->upstreams[i].fd = -1;
    resolver->udp.on_event = on_udp;
    resolver->tcp.on_event = on_tcp;
    watch_add(worker, &resolver->udp, WORKER_DNS_UDP, EPOLLIN);
    watch_add(worker, &resolver->tcp, WORKER_DNS_TCP, EPOLLIN);
}
