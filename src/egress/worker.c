/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's loop, and what the supervisor tells it; see worker.h. */
#include "egress/worker.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "egress/egress_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define TICK_MS 250

void watch_add(struct worker *worker, struct watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    watch->fd = fd;
    watch->events = events;
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        _exit(1); // no memory: the supervisor starts another
}

void watch_change(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->fd < 0 || watch->events == events)
        return;
    watch->events = events;
    if (epoll_ctl(worker->epoll, EPOLL_CTL_MOD, watch->fd, &event) < 0)
        _exit(1);
}

void watch_close(struct worker *worker, struct watch *watch)
{
    if (watch->fd >= 0)
        (void)epoll_ctl(worker->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    closep(&watch->fd);
    watch->on_event = NULL; // an event of this round may name it still
}

void worker_free_later(struct worker *worker, void *memory)
{
    if ((worker->n_dead & (worker->n_dead - 1)) == 0)
        worker->dead =
            xrealloc(worker->dead, worker->n_dead ? worker->n_dead * 2 : 1, sizeof *worker->dead);
    worker->dead[worker->n_dead++] = memory;
}

uint64_t worker_ask(struct worker *worker, uint32_t kind, const void *data, size_t length)
{
    uint64_t serial = ++worker->serial;

    if (exchange_send(&worker->supervisor, kind, serial, data, length, -1) < 0)
        _exit(0);
    return serial;
}

// ---- the supervisor ----

static void answer(struct worker *worker, uint64_t serial, const void *data, size_t length)
{
    if (exchange_send(&worker->supervisor, EGRESS_DONE, serial, data, length, -1) < 0)
        _exit(0);
}

static void tell_counters(struct worker *worker, const struct frame *frame)
{
    struct egress_counters counters = {0};
    uint32_t slot = 0;

    if (frame->head.length == sizeof slot)
        memcpy(&slot, frame->data, sizeof slot);
    const struct box *box = box_at(worker, slot);
    if (box)
        counters = box->counters;
    answer(worker, frame->head.serial, &counters, sizeof counters);
}

/* What the kernel refused. */
static void take_refusal(struct worker *worker, const struct frame *frame)
{
    struct egress_refusal told;
    struct policy_verdict verdict;

    if (frame->head.length != sizeof told)
        return;
    memcpy(&told, frame->data, sizeof told);
    struct box *box = box_at(worker, told.slot);
    if (!box)
        return;
    struct policy_question question = {
        .address = told.address,
        .port = told.port,
        .protocol = (enum policy_protocol)(told.protocol ? told.protocol : POLICY_TCP)};
    policy_decide(&box->policy, &question, &verdict);
    question.name = box_pin_name(box, told.address);
    if (verdict.is_allowed &&
        !verdict.would_deny) { // by what only the kernel has, as a limit of this path
        verdict.is_allowed = told.would_deny;
        verdict.tier = POLICY_DEFAULT;
        verdict.rule[0] = '\0';
        (void)snprintf(verdict.reason, sizeof verdict.reason,
                       "what was sent is none of the connections that are allowed");
    }
    verdict.would_deny = told.would_deny;
    refuse(worker, box, EGRESS_CONNECTION, &question, &verdict);
}

static void take_frame(struct worker *worker, struct frame *frame)
{
    uint32_t number = 0;

    if (frame->head.length >= sizeof number)
        memcpy(&number, frame->data, sizeof number);
    switch (frame->head.kind) {
    case EGRESS_SET:
        if (box_set(worker, frame->data, frame->head.length) < 0)
            _exit(1); // the supervisor has read it before
        answer(worker, frame->head.serial, NULL, 0);
        break;
    case EGRESS_REMOVE:
        box_remove(worker, number);
        answer(worker, frame->head.serial, NULL, 0);
        break;
    case EGRESS_COUNT:
        tell_counters(worker, frame);
        break;
    case EGRESS_REFUSAL:
        take_refusal(worker, frame);
        break;
    case EGRESS_RESOLVER:
        resolver_set_upstream(worker, number, take_fd(frame->fd));
        break;
    case EGRESS_PIN:
        resolver_pinned(worker, frame->head.serial, number);
        break;
    case EGRESS_DIAL_DNS:
        resolver_dialled(worker, frame->head.serial, take_fd(frame->fd));
        break;
    case EGRESS_DIAL_HOST:
    case EGRESS_DIAL_PROXY:
        flows_dialled(worker, frame->head.serial, take_fd(frame->fd));
        break;
    case EGRESS_LEAF:
        flows_leaf(worker, frame->head.serial, frame->data, frame->head.length);
        break;
    default:
        break;
    }
    closep(&frame->fd);
}

static void on_supervisor(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct frame frame;

    if (exchange_flush(&worker->supervisor) < 0)
        _exit(0);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (exchange_read(&worker->supervisor, false) < 0)
        _exit(0); // it has ended, and so does this
    while (exchange_next(&worker->supervisor, &frame))
        take_frame(worker, &frame);
    watch_change(worker, watch, worker->supervisor.out.length ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// ---- the loop ----

static void tick(struct worker *worker)
{
    resolver_tick(worker);
    flows_tick(worker);
    refusals_flush(worker);
}

static _Noreturn void run(struct worker *worker)
{
    struct epoll_event events[EVENTS];
    uint64_t next_tick = 0;

    for (;;) {
        int count = epoll_wait(worker->epoll, events, EVENTS, TICK_MS);
        worker->now_ms = clock_monotonic_ms();
        for (int i = 0; i < count; i++) {
            struct watch *watch = events[i].data.ptr;
            if (watch->on_event)
                watch->on_event(worker, watch, events[i].events);
        }
        if (worker->now_ms >= next_tick) {
            tick(worker);
            next_tick = worker->now_ms + TICK_MS;
        }
        if (worker->supervisor.out.length)
            watch_change(worker, &worker->supervisor_watch, EPOLLIN | EPOLLOUT);
        while (worker->n_dead)
            free(worker->dead[--worker->n_dead]);
    }
}

/* Before the files are out of reach. */
static void load_roots(struct worker *worker)
{
    static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
                                          "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};

    (void)setenv("TZ", "UTC0", 1); // else libc looks for a file of it when certificates are checked
    tzset();
    worker->upstream = SSL_CTX_new(TLS_client_method());
    if (!worker->upstream)
        return;
    (void)SSL_CTX_set_min_proto_version(worker->upstream, TLS1_2_VERSION);
    SSL_CTX_set_verify(worker->upstream, SSL_VERIFY_PEER, NULL);
    const char *named = getenv(EGRESS_ROOTS);
    if (named) { // these and no others; none where it cannot be read
        (void)SSL_CTX_load_verify_file(worker->upstream, named);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(bundles); i++) {
        if (SSL_CTX_load_verify_file(worker->upstream, bundles[i]) == 1)
            return;
    }
}

/* As many connections as there are descriptors for, with some left for lookups. */
static size_t count_flows(void)
{
    struct rlimit files = {.rlim_cur = 1024};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    size_t count = ((size_t)files.rlim_cur - 768) / WORKER_FLOW_FDS;
    return files.rlim_cur < 1024 ? 32 : count < WORKER_MAX_FLOWS ? count : WORKER_MAX_FLOWS;
}

/* usage: burrow-egress --worker GATEWAY FIRST-ADDRESS proxy|direct; descriptors as in worker.h */
int worker_main(int argc, char **argv)
{
    struct worker worker = {.now_ms = clock_monotonic_ms()};
    struct error err = {0};

    if (argc != 5)
        return 2;
    worker.gateway = (uint32_t)strtoul(argv[2], NULL, 10);
    worker.first_address = (uint32_t)strtoul(argv[3], NULL, 10);
    worker.has_proxy = strcmp(argv[4], "proxy") == 0;
    load_roots(&worker);
    worker.max_flows = count_flows();
    worker.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (worker.epoll < 0 || egress_confine(&err) < 0)
        return 1;
    exchange_init(&worker.supervisor, WORKER_LINK);
    worker.supervisor.is_quiet = true;
    worker.supervisor_watch.on_event = on_supervisor;
    watch_add(&worker, &worker.supervisor_watch, WORKER_LINK, EPOLLIN);
    resolver_start(&worker);
    flows_start(&worker);
    run(&worker);
}
