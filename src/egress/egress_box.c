/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes that the worker knows, their pins and secrets; see worker.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/worker.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PINS 4096
#define MAX_SLOTS 65536

struct box *box_at(struct worker *worker, unsigned slot)
{
    return slot < worker->n_slots ? worker->boxes[slot] : NULL;
}

struct box *box_of(struct worker *worker, uint32_t address)
{
    struct box *box = box_at(worker, address - worker->first_address);

    return box && box->address == address ? box : NULL;
}

static void clear_secrets(struct box *box)
{
    for (size_t i = 0; i < box->n_secrets; i++) {
        struct secret *secret = &box->secrets[i];
        explicit_bzero(secret->value, strlen(secret->value));
        free(secret->header);
        free(secret->value);
        free(secret->placeholder);
    }
    free(box->secrets);
    box->secrets = NULL;
    box->n_secrets = 0;
}

static void box_free(struct box *box)
{
    for (size_t i = 0; i < box->n_pins; i++)
        free(box->pins[i].name);
    free(box->pins);
    clear_secrets(box);
    policy_clear(&box->policy);
    free(box);
}

// ---- setting ----

/* The next text of a message; NULL: there is none. */
static const char *next_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

    if (!nul)
        return NULL;
    *at = nul + 1;
    return text;
}

static int read_secrets(struct box *box, const char *at, const char *end, size_t count)
{
    if (count > EGRESS_MAX_SECRETS)
        return -1;
    box->secrets = xcalloc(count + 1, sizeof *box->secrets);
    for (size_t i = 0; i < count; i++) {
        const char *host = next_text(&at, end), *header = next_text(&at, end),
                   *value = next_text(&at, end), *placeholder = next_text(&at, end);
        if (!placeholder || !policy_fold_name(host, strlen(host), box->secrets[i].host))
            return -1;
        box->secrets[i].header = xstrdup(header);
        box->secrets[i].value = xstrdup(value);
        box->secrets[i].placeholder = xstrdup(placeholder);
        box->n_secrets++;
    }
    return 0;
}

static struct box *make_box(struct worker *worker, unsigned slot)
{
    if (slot >= worker->n_slots) {
        size_t count = slot + 64;
        worker->boxes = xrealloc(worker->boxes, count, sizeof *worker->boxes);
        memset(worker->boxes + worker->n_slots, 0,
               (count - worker->n_slots) * sizeof *worker->boxes);
        worker->n_slots = count;
    }
    if (!worker->boxes[slot])
        worker->boxes[slot] = xnew(struct box);
    return worker->boxes[slot];
}

/* Pins of names that no rule allows any more go; the kernel's go with the supervisor. */
static void drop_pins(struct box *box)
{
    for (size_t i = 0; i < box->n_pins; i++) {
        struct policy_verdict verdict;
        policy_decide(&box->policy, &(struct policy_question){.name = box->pins[i].name}, &verdict);
        if (!verdict.is_allowed)
            box->pins[i].expires_ms = 0;
    }
}

int box_set(struct worker *worker, const char *data, size_t length)
{
    struct egress_set_message message;
    struct policy_kernel kernel;
    struct box next = {0};
    struct error err;

    if (length < sizeof message)
        return -1;
    memcpy(&message, data, sizeof message);
    const char *text = data + sizeof message, *end = data + length;
    if (message.slot >= MAX_SLOTS || message.policy_length == 0 ||
        message.policy_length > (size_t)(end - text) || text[message.policy_length - 1] != '\0')
        return -1;
    if (policy_read(text, &next.policy, &err) < 0)
        return -1;
    if (read_secrets(&next, text + message.policy_length, end, message.n_secrets) < 0) {
        policy_clear(&next.policy);
        clear_secrets(&next);
        return -1;
    }
    struct box *box = make_box(worker, message.slot);
    policy_clear(&box->policy);
    clear_secrets(box);
    box->slot = message.slot;
    box->address = message.address;
    box->generation = message.generation;
    box->policy = next.policy;
    box->secrets = next.secrets;
    box->n_secrets = next.n_secrets;
    policy_compile(&box->policy, &kernel);
    box->class = kernel.class;
    policy_kernel_clear(&kernel);
    drop_pins(box);
    // Resets go out while the kernel still knows the connections; what stays allowed is opened again before this is answered.
    flows_judge(worker, box->slot);
    (void)worker_ask(worker, EGRESS_UNPIN, &message.slot, sizeof message.slot);
    resolver_repin(worker, box);
    resolver_forget_box(worker, box->slot);
    return 0;
}

void box_remove(struct worker *worker, unsigned slot)
{
    struct box *box = box_at(worker, slot);

    if (!box)
        return;
    worker->boxes[slot] = NULL;
    flows_judge(worker, slot);
    resolver_forget_box(worker, slot);
    box_free(box);
}

bool bucket_take(struct bucket *bucket, double rate, double burst)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (!bucket->at_ms)
        bucket->tokens = burst;
    else
        bucket->tokens += (double)(now_ms - bucket->at_ms) * rate / 1000;
    bucket->at_ms = now_ms;
    if (bucket->tokens > burst)
        bucket->tokens = burst;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}

// ---- pins ----

static struct pin *find_pin(const struct box *box, uint32_t address, const char *name)
{
    for (size_t i = 0; i < box->n_pins; i++) {
        if (box->pins[i].address == address && strcmp(box->pins[i].name, name) == 0)
            return &box->pins[i];
    }
    return NULL;
}

void box_add_pin(struct box *box, uint32_t address, const char *name, uint64_t expires_ms)
{
    struct pin *pin = find_pin(box, address, name);

    if (!pin && box->n_pins < MAX_PINS) {
        if ((box->n_pins & (box->n_pins - 1)) == 0)
            box->pins = xrealloc(box->pins, box->n_pins ? box->n_pins * 2 : 1, sizeof *box->pins);
        pin = &box->pins[box->n_pins++];
        *pin = (struct pin){.address = address, .name = xstrdup(name)};
    } else if (!pin) { // the oldest goes
        pin = &box->pins[box->next_pin++ % MAX_PINS];
        free(pin->name);
        *pin = (struct pin){.address = address, .name = xstrdup(name)};
    }
    if (expires_ms > pin->expires_ms)
        pin->expires_ms = expires_ms;
}

static uint64_t now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

uint64_t box_pin_left_ms(const struct box *box, uint32_t address, const char *name)
{
    const struct pin *pin = find_pin(box, address, name);
    uint64_t now_ms = now();

    return pin && pin->expires_ms > now_ms ? pin->expires_ms - now_ms : 0;
}

const char *box_pin_name(const struct box *box, uint32_t address)
{
    for (size_t i = 0; i < box->n_pins; i++) {
        if (box->pins[i].address == address)
            return box->pins[i].name;
    }
    return NULL;
}

const struct secret *box_secret(const struct box *box, const char *host)
{
    for (size_t i = 0; i < box->n_secrets; i++) {
        if (strcmp(box->secrets[i].host, host) == 0)
            return &box->secrets[i];
    }
    return NULL;
}
