/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that tells webhooks of events; see sender.h. */
#include "hook/sender.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/core.h"
#include "core/event/channel.h"
#include "hook/courier.h"
#include "hook/signature.h"
#include "hook/target.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AT_ONCE 64        // deliveries under way
#define AT_ONCE_OF_ONE 16 // of one organisation: its slow receivers are nobody else's trouble
#define PASS_MS 60000     // how often it is recorded that there was nothing to tell
#define LONGEST_MS 60000  // between two looks
#define PATIENCE_MS 1000  // after a failure of our own
#define BODY_MAXIMUM (64u << 10)
#define GONE 410

struct sender {
    struct sender_settings settings;
    int wake_fd;
    pthread_t thread;
    atomic_bool is_stopping;
    struct watch *watch;
    // The thread's:
    struct target **targets;
    size_t n_targets;
    size_t first; // whose turn is first: all get theirs
    unsigned version;
    bool is_loaded, is_joined;
    struct courier *courier; // NULL: there is nothing to send
    uint64_t posts;          // that were handed to it
    unsigned n_sending;
    int64_t try_again_at; // after a failure of our own
};

/* From any thread: there may be something to do. */
static void wake(void *data)
{
    struct sender *sender = data;

    (void)eventfd_write(sender->wake_fd, 1);
}

static struct event_channel *channel_of(const struct sender *sender)
{
    return sender->settings.core->events;
}

static struct webhooks *webhooks_of(const struct sender *sender)
{
    return sender->settings.core->webhooks;
}

static void note_failure(struct sender *sender, const char *what, const struct error *err)
{
    sender->try_again_at = (int64_t)clock_wall_ms() + PATIENCE_MS;
    log_warn(what, F("error", (const char *)err->text));
}

// ---- which webhooks there are ----

static struct target *find_target(struct sender *sender, const char *id)
{
    for (size_t i = 0; i < sender->n_targets; i++) {
        if (strcmp(sender->targets[i]->hook.id, id) == 0)
            return sender->targets[i];
    }
    return NULL;
}

static void free_target(struct sender *sender, struct target *target)
{
    if (target->post_id)
        sender->n_sending--;
    target_clear(target);
    free(target);
}

/* Takes the webhook as it is now. One that has changed is begun anew: what is under way to where it was is given up, and told again. */
static void put_target(struct sender *sender, struct webhook_info *hook)
{
    struct target *target = find_target(sender, hook->id);

    if (!target) {
        sender->targets = xrealloc(sender->targets, sender->n_targets + 1, sizeof *sender->targets);
        target = sender->targets[sender->n_targets++] = xnew(struct target);
        target->place = hook->event_cursor;
        target->passed_at = (int64_t)clock_wall_ms();
    } else if (target->hook.updated_at != hook->updated_at) {
        if (target->post_id)
            sender->n_sending--;
        target->post_id = 0;
        target->place = hook->event_cursor;
    } else {
        target->is_kept = true;
        return;
    }
    webhook_info_clear(&target->hook);
    target->hook = *hook;
    target->is_kept = true;
    *hook = (struct webhook_info){0};
}

static void drop_others(struct sender *sender)
{
    size_t kept = 0;

    for (size_t i = 0; i < sender->n_targets; i++) {
        struct target *target = sender->targets[i];
        if (target->is_kept)
            sender->targets[kept++] = target;
        else
            free_target(sender, target);
    }
    sender->n_targets = kept;
}

static void join_or_leave(struct sender *sender)
{
    bool is_wanted = sender->n_targets > 0;

    if (is_wanted == sender->is_joined)
        return;
    (is_wanted ? event_channel_join : event_channel_leave)(channel_of(sender));
    sender->is_joined = is_wanted;
}

static void load(struct sender *sender)
{
    autoclear(webhook_infos) found = {0};
    struct error err = {0};

    if (sender->is_loaded && sender->version == webhooks_version(webhooks_of(sender)))
        return;
    if (webhooks_enabled(webhooks_of(sender), &found, &sender->version, &err) < 0) {
        note_failure(sender, "webhooks could not be read", &err);
        return;
    }
    sender->is_loaded = true;
    for (size_t i = 0; i < sender->n_targets; i++)
        sender->targets[i]->is_kept = false;
    for (size_t i = 0; i < found.count; i++)
        put_target(sender, &found.items[i]);
    drop_others(sender);
    join_or_leave(sender);
    if (sender->n_targets == 0)
        courier_free(take(sender->courier));
}

// ---- sending ----

static int ensure_courier(struct sender *sender, struct error *err)
{
    const struct core_settings *wanted = &sender->settings.core->settings;
    const struct courier_settings settings = {.networks = wanted->webhook_networks,
                                              .is_http_allowed = wanted->is_webhook_http_allowed};

    return sender->courier ? 0 : courier_new(&settings, &sender->courier, err);
}

static int send_body(struct sender *sender, struct target *target, const struct buffer *body,
                     struct error *err)
{
    char id[DELIVERY_ID], text[SIGNATURE_TEXT], headers[512];
    int64_t now = (int64_t)clock_wall_ms();

    (void)snprintf(headers, sizeof headers,
                   "Content-Type: application/json\nUser-Agent: burrow/" BURROW_VERSION
                   "\nAccept:\nExpect:\nBurrow-Delivery: dlv_%s\nBurrow-Event: "
                   "%s\nBurrow-Signature: %s\n",
                   delivery_id(&target->hook, id), target->event_kind,
                   signature_make(target->hook.secret, now / 1000, body->data, body->length, text));
    const struct courier_post post = {
        .id = ++sender->posts,
        .url = target->hook.url,
        .headers = headers,
        .body = body->data,
        .length = body->length,
    };
    if (ensure_courier(sender, err) < 0 || courier_send(sender->courier, &post, err) < 0)
        return -1;
    target->started_at = now;
    target->post_id = post.id;
    sender->n_sending++;
    return 0;
}

static int record_pass(struct sender *sender, struct target *target, int64_t now, struct error *err)
{
    if (target->place <= target->hook.event_cursor || now - target->passed_at < PASS_MS)
        return 0;
    target->passed_at = now;
    return webhook_pass(webhooks_of(sender), &target->hook, target->place, false, err);
}

/* 1: it may have more to do at once. */
static int begin_next(struct sender *sender, struct target *target, int64_t now, struct error *err)
{
    autobuffer body = {.maximum = BODY_MAXIMUM};
    bool is_more = false, is_off = false;

    if (webhook_admit(webhooks_of(sender), &target->hook, &target->actor, &is_off, err) < 0)
        return -1;
    if (is_off) {
        log_warn("a webhook was turned off", F("webhook", target->hook.id),
                 F("error", "its key has ended, or may less"));
        return 0;
    }
    int found = target_next(target, channel_of(sender), webhooks_of(sender),
                            sender->settings.render, &body, &is_more, err);

    if (found < 0)
        return -1;
    if (found == 0)
        return record_pass(sender, target, now, err) < 0 ? -1 : is_more;
    return send_body(sender, target, &body, err);
}

static bool has_room(const struct sender *sender, const struct target *target)
{
    unsigned of_one = 0;

    if (sender->n_sending < AT_ONCE_OF_ONE)
        return true;
    for (size_t i = 0; i < sender->n_targets; i++) {
        const struct target *other = sender->targets[i];
        of_one += other->post_id &&
                  strcmp(other->hook.owner.organisation, target->hook.owner.organisation) == 0;
    }
    return sender->n_sending < AT_ONCE && of_one < AT_ONCE_OF_ONE;
}

/* Begins what is due. Returns when to look again. */
static int64_t begin_all(struct sender *sender)
{
    int64_t now = (int64_t)clock_wall_ms(), next = now + LONGEST_MS;
    struct error err = {0};

    if (sender->try_again_at > now)
        return sender->try_again_at;
    for (size_t i = 0; i < sender->n_targets; i++) {
        struct target *target = sender->targets[(sender->first + i) % sender->n_targets];
        if (target->post_id || !target->hook.is_enabled)
            continue;
        if (target->hook.next_at > now) {
            next = target->hook.next_at < next ? target->hook.next_at : next;
            continue;
        }
        if (!has_room(sender, target))
            continue; // when one of the others is done
        int result = begin_next(sender, target, now, &err);
        if (result < 0) {
            note_failure(sender, "a webhook could not be served", &err);
            return sender->try_again_at;
        }
        if (result > 0)
            next = now;
    }
    sender->first++;
    return next;
}

static void settle(struct sender *sender, struct target *target,
                   const struct courier_result *result)
{
    int64_t now = (int64_t)clock_wall_ms();

    target->post_id = 0;
    sender->n_sending--;
    const struct delivery_attempt attempt = {
        .event_number = target->event_number,
        .event_kind = target->event_kind,
        .is_delivered = result->is_delivered,
        .is_final = result->status == GONE,
        .status = result->status,
        .error = *result->error ? result->error : NULL,
        .started_at = target->started_at,
        .duration_ms = now - target->started_at,
    };
    struct error err = {0};

    // Not recorded: told again, from where it was.
    if (webhook_settle(webhooks_of(sender), &target->hook, &attempt, &err) < 0) {
        target->hook.next_at = now + PATIENCE_MS;
        log_warn("a delivery could not be recorded", F("error", (const char *)err.text));
    } else if (result->is_delivered && target->place < target->event_number) {
        target->place = target->event_number;
    }
    if (!target->hook.is_enabled)
        log_warn("a webhook was turned off", F("webhook", target->hook.id),
                 F("error", (const char *)result->error));
}

static struct target *find_post(struct sender *sender, uint64_t id)
{
    for (size_t i = 0; i < sender->n_targets; i++) {
        if (sender->targets[i]->post_id == id)
            return sender->targets[i];
    }
    return NULL;
}

/* What it was sending has failed, whatever ended it; another one is started when there is something to send. */
static void replace_courier(struct sender *sender)
{
    static const struct courier_result lost = {.error = "the program that sends has ended"};

    log_warn("burrow-courier has ended", F("deliveries", (int64_t)sender->n_sending));
    courier_free(take(sender->courier));
    sender->try_again_at = (int64_t)clock_wall_ms() + PATIENCE_MS;
    for (size_t i = 0; i < sender->n_targets; i++) {
        if (sender->targets[i]->post_id)
            settle(sender, sender->targets[i], &lost);
    }
}

static void collect(struct sender *sender)
{
    struct courier_result result;
    int got = 0;

    while (sender->courier && (got = courier_receive(sender->courier, &result)) > 0) {
        struct target *target = result.id ? find_post(sender, result.id) : NULL;
        if (target) // else it has changed since, and is told again
            settle(sender, target, &result);
    }
    if (got < 0)
        replace_courier(sender);
}

static void wait_for_work(struct sender *sender, int64_t until)
{
    struct pollfd ready[] = {
        {.fd = sender->wake_fd, .events = POLLIN},
        {.fd = sender->courier ? courier_fd(sender->courier) : -1, .events = POLLIN},
    };
    int64_t wait = until - (int64_t)clock_wall_ms();
    eventfd_t ignored;

    (void)poll(ready, ARRAY_SIZE(ready),
               wait <= 0           ? 0
               : wait < LONGEST_MS ? (int)wait
                                   : LONGEST_MS);
    (void)eventfd_read(sender->wake_fd, &ignored);
}

static void work(struct sender *sender)
{
    load(sender);
    wait_for_work(sender, begin_all(sender));
    collect(sender);
}

static void record_passes(struct sender *sender)
{
    struct error ignored;

    for (size_t i = 0; i < sender->n_targets; i++)
        (void)record_pass(sender, sender->targets[i], INT64_MAX, &ignored); // best effort
}

static void *run(void *data)
{
    struct sender *sender = data;

    thread_set_name("webhooks");
    while (!atomic_load(&sender->is_stopping))
        work(sender);
    record_passes(sender);
    while (sender->n_targets)
        free_target(sender, sender->targets[--sender->n_targets]);
    join_or_leave(sender);
    courier_free(sender->courier);
    free(sender->targets);
    return NULL;
}

// ---- start and end ----

static void clear(struct sender *sender)
{
    closep(&sender->wake_fd);
    free(sender);
}

static int start(struct sender *sender, struct error *err)
{
    sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sender->wake_fd < 0)
        return error_sys(err, "make a descriptor for webhooks");
    int code = pthread_create(&sender->thread, NULL, run, sender);
    return code ? error_sys_code(err, code, "start the thread for webhooks") : 0;
}

int sender_new(const struct sender_settings *settings, struct sender **out, struct error *err)
{
    struct sender *sender = xnew(struct sender);

    sender->settings = *settings;
    if (start(sender, err) < 0) {
        clear(sender);
        return -1;
    }
    webhooks_on_change(settings->core->webhooks, wake, sender);
    sender->watch = hub_watch(settings->core->hub, EVENT_CHANNEL_ID, wake, sender);
    *out = sender;
    return 0;
}

void sender_free(struct sender *sender)
{
    if (!sender)
        return;
    webhooks_on_change(sender->settings.core->webhooks, NULL, NULL);
    watch_free(sender->watch);
    atomic_store(&sender->is_stopping, true);
    wake(sender);
    (void)pthread_join(sender->thread, NULL);
    clear(sender);
}
