/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks: who is told of events over HTTP, how far that is, and the last deliveries of each. Making, changing and removing are durable.
 * Threads: any but loops.
 */
#pragma once
#include "model/webhook.h"
#include "store/store.h"

struct webhook_record {
    const char *id;
    const char *node;   // put with NULL: this one, which does the telling
    struct owner owner; // whose events it is told of: a filter
    const char *key_id; // that made it, or NULL
    const char *name;
    const char *url;
    const char *secret;             // what deliveries are signed with
    const char *const *kinds;       // patterns; none: all
    const char *sandbox_id;         // NULL: of all
    bool is_enabled;                //
    const char *disabled_reason;    // why the server turned it off; NULL: it did not
    int64_t event_cursor;           // the last event that was told, or need not be
    int64_t attempts;               // that failed since the last delivery
    int64_t failing_since, next_at; // 0: it is not failing; when it is tried again
    int64_t delivery_count;         //
    int64_t created_at, updated_at;
};
void webhook_record_clear(struct webhook_record *record);
#define autowebhook __attribute__((cleanup(webhook_record_clear))) struct webhook_record

struct webhook_list {
    struct webhook_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void webhook_list_clear(struct webhook_list *list);
#define autowebhooks __attribute__((cleanup(webhook_list_clear))) struct webhook_list

int store_webhook_put(struct store *store, const struct webhook_record *record, struct error *err);
int store_webhook_get(struct store *store, const char *id, struct webhook_record *out,
                      struct error *err);
int store_webhook_list(struct store *store, const struct owner *owner, const struct page *page,
                       struct webhook_list *out, struct error *err);
/* All of this node that are enabled. */
int store_webhook_list_enabled(struct store *store, struct webhook_list *out, struct error *err);
/* How many there are: in all, of the owner's organisation, and of its member (NULL: of nobody). */
struct webhook_counts {
    int64_t all, organisation, member;
};
int store_webhook_count(struct store *store, const struct owner *owner, struct webhook_counts *out,
                        struct error *err);
/* Writes what a user may change, and that it has not failed so far. */
int store_webhook_change(struct store *store, const struct webhook_record *record,
                         struct error *err);
/* Writes how far it is, and whether it is enabled. Does nothing to one that is gone, or was turned off meanwhile. */
int store_webhook_progress(struct store *store, const struct webhook_record *record,
                           struct error *err);
int store_webhook_remove(struct store *store, const char *id, struct error *err);

struct delivery_record {
    const char *id;
    const char *webhook_id;
    int64_t number; // 1, 2, 3 … of its webhook
    int64_t event_serial;
    const char *event_kind;
    enum delivery_state state;
    int64_t status; // HTTP's of the last attempt; 0: there was none
    int64_t attempts;
    const char *error; // why the last attempt failed, or NULL
    int64_t duration_ms;
    int64_t created_at, updated_at;
};
struct delivery_list {
    struct delivery_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next;
};
void delivery_list_clear(struct delivery_list *list);
#define autodeliveries __attribute__((cleanup(delivery_list_clear))) struct delivery_list

/* Writes it, over the one of the same number, and forgets all that are `kept` older ones behind. */
int store_delivery_put(struct store *store, const struct delivery_record *record, int64_t kept,
                       struct error *err);
/* The newest first. */
int store_delivery_list(struct store *store, const char *webhook_id, const struct page *page,
                        struct delivery_list *out, struct error *err);
