/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker of burrow-egress: the process that reads what boxes and strangers' servers send. It has no rights, no files, and a short list of system calls; what needs more it asks
 * of the supervisor.
 * Threads: one thread.
 */
#pragma once
#include "egress/dns_message.h"
#include "egress/egress_wire.h"
#include "egress/exchange.h"

#include <openssl/ssl.h>
#include <stdint.h>
#include <sys/epoll.h>

#define WORKER_LINK 3 // the socket to the supervisor
enum { WORKER_DNS_UDP = 4, WORKER_DNS_TCP, WORKER_FLOWS, WORKER_HOST, WORKER_FDS };
#define WORKER_MAX_FLOWS 8000 // of all boxes, where there are descriptors for so many
#define WORKER_BOX_FLOWS 512  // of one box
#define WORKER_FEW_FLOWS 64   // of one box, once half of all are taken
#define WORKER_FLOW_FDS 6     // of one
#define WORKER_BOX_LOOKUPS 64 // at a time

struct worker;

/* Something that waits for a descriptor. */
struct watch {
    int fd; // -1: none
    uint32_t events;
    void (*on_event)(struct worker *worker, struct watch *watch, uint32_t events);
    void *owner;
};
void watch_add(struct worker *worker, struct watch *watch, int fd, uint32_t events);
void watch_change(struct worker *worker, struct watch *watch, uint32_t events);
void watch_close(struct worker *worker, struct watch *watch); // closes the descriptor

// ---- boxes ----

struct secret {
    char host[POLICY_NAME_LENGTH];
    char *header, *value, *placeholder; // placeholder "": none
};

/* An address that a name has resolved to for a box. */
struct pin {
    uint32_t address;
    char *name;
    uint64_t expires_ms;
};

struct bucket {
    double tokens;
    uint64_t at_ms;
};

struct box {
    unsigned slot;
    uint32_t address;
    uint64_t generation;
    struct policy policy;
    enum policy_class class;
    struct secret *secrets;
    size_t n_secrets;
    struct pin *pins;
    size_t n_pins, next_pin; // a ring once it is full
    struct egress_counters counters;
    struct bucket lookups, records;
    unsigned open_lookups, open_flows;
};
struct box *box_of(struct worker *worker, uint32_t address); // NULL: unknown
struct box *box_at(struct worker *worker, unsigned slot);
/* Takes a message of the supervisor; -1: it makes no sense. */
int box_set(struct worker *worker, const char *data, size_t length);
void box_remove(struct worker *worker, unsigned slot);
/* Whether there is one more; so many a second, and so many at once. */
bool bucket_take(struct bucket *bucket, double rate, double burst);
void box_add_pin(struct box *box, uint32_t address, const char *name, uint64_t expires_ms);
/* Whether the name has resolved to the address; how long that holds still. */
uint64_t box_pin_left_ms(const struct box *box, uint32_t address, const char *name);
const char *box_pin_name(const struct box *box, uint32_t address); // any; NULL: none
const struct secret *box_secret(const struct box *box, const char *host);

// ---- what was refused ----

/* Decides, records what was or would be refused, and counts. */
void judge(struct worker *worker, struct box *box, enum egress_refusal_kind kind,
           const struct policy_question *question, struct policy_verdict *out);
/* Records a refusal that no rule decided. */
void refuse(struct worker *worker, struct box *box, enum egress_refusal_kind kind,
            const struct policy_question *question, const struct policy_verdict *verdict);
/* Sends the counts of what was held back; once a second. */
void refusals_flush(struct worker *worker);

// ---- lookups (resolver.c) ----

void resolver_start(struct worker *worker);
void resolver_set_upstream(struct worker *worker, uint32_t index, int fd);
void resolver_pinned(struct worker *worker, uint64_t serial, bool is_done);
void resolver_dialled(struct worker *worker, uint64_t serial, int fd);
void resolver_forget_box(struct worker *worker, unsigned slot);
void resolver_tick(struct worker *worker);
/* Opens in the kernel again what is still allowed of a box, after a change. */
void resolver_repin(struct worker *worker, struct box *box);

// ---- connections (flow.c) ----

void flows_start(struct worker *worker);
void flows_dialled(struct worker *worker, uint64_t serial, int fd);
void flows_leaf(struct worker *worker, uint64_t serial, const char *pem, size_t length);
/* Ends those of a box that are no longer allowed; all of them where it is gone. */
void flows_judge(struct worker *worker, unsigned slot);
void flows_tick(struct worker *worker);

struct resolver;
struct flows;
struct refusals;
struct worker {
    int epoll;
    struct exchange supervisor;
    struct watch supervisor_watch;
    uint32_t gateway; // its address
    bool has_proxy;
    size_t max_flows;
    struct box **boxes; // by slot
    size_t n_slots;
    uint32_t first_address; // of slot 0
    struct resolver *resolver;
    struct flows *flows;
    struct refusals *refusals;
    uint64_t serial;
    uint64_t now_ms;
    void **dead; // freed when all events of a round are done
    size_t n_dead;
    SSL_CTX *upstream; // with the host's roots
};
/* Asks the supervisor; the answer comes with the serial. */
uint64_t worker_ask(struct worker *worker, uint32_t kind, const void *data, size_t length);
/* Frees it once nobody of this round can name it any more. */
void worker_free_later(struct worker *worker, void *memory);

int worker_main(int argc, char **argv);
