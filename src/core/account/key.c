/* SPDX-License-Identifier: Apache-2.0 */
/* API keys; see key.h. */
#include "core/account/key.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/accounts.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define KNOWN_MS 1000
#define KNOWN_ROWS 512 // answers in memory, of each kind
#define USED_EVERY_MS 60000
#define USES 32 // keys whose use waits to be noted
#define TEXT_MAXIMUM 256
#define SHOWN_MADE KEY_SHOWN // of a made key: "brw_" and 40 of its 260 bits
#define SHOWN_CHOSEN 4
#define SCOPES_ADMIN "admin"

// What key_check found out.
struct answer {
    unsigned char hash[KEY_HASH];
    uint64_t until_ms; // monotonic; 0: empty
    int64_t expires_at;
    char key_id[ID_TEXT];
    bool is_admin;
};

struct keys {
    struct store *store;
    char organisation[ID_TEXT];
    pthread_mutex_t lock; // guards all below
    // Two tables, so that a flood of wrong keys does not push out the good ones. A row is found by the hash's first bytes.
    struct answer good[KNOWN_ROWS], bad[KNOWN_ROWS];
    char used[USES][ID_TEXT]; // to be noted
    size_t n_used;
    bool is_closing;
    pthread_cond_t box_events;
    pthread_t noter;
};

// ---- when keys were used ----

static void *record_uses(void *data)
{
    struct keys *keys = data;

    (void)pthread_mutex_lock(&keys->lock);
    for (;;) {
        while (!keys->n_used && !keys->is_closing)
            (void)pthread_cond_wait(&keys->box_events, &keys->lock);
        if (!keys->n_used)
            break;
        char id[ID_TEXT];
        struct error err;
        memcpy(id, keys->used[--keys->n_used], sizeof id);
        (void)pthread_mutex_unlock(&keys->lock);
        if (store_key_used(keys->store, id, (int64_t)clock_wall_ms(), &err) < 0)
            log_debug("use of a key not noted", F("id", id), F("error", err.text));
        (void)pthread_mutex_lock(&keys->lock);
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return NULL;
}

// Under the lock. What finds no room is noted at the next use.
static void add_use(struct keys *keys, const char *id)
{
    if (keys->n_used == USES)
        return;
    for (size_t i = 0; i < keys->n_used; i++)
        if (strcmp(keys->used[i], id) == 0)
            return;
    (void)snprintf(keys->used[keys->n_used++], ID_TEXT, "%s", id);
    (void)pthread_cond_signal(&keys->box_events);
}

// ---- opening ----

static int find_organisation(struct keys *keys, struct error *err)
{
    struct page first = {.limit = 1};
    struct organisation_record fresh = {
        .id = keys->organisation, .name = "default", .created_at = (int64_t)clock_wall_ms()};
    autotransaction together = {0};
    autoorganisations list = {0};

    // As one: a server and a command line may both be the first.
    if (store_begin(keys->store, STORE_DURABLE, &together, err) < 0 ||
        store_organisation_list(keys->store, &first, &list, err) < 0)
        return -1;
    if (list.count) {
        (void)snprintf(keys->organisation, sizeof keys->organisation, "%s", list.rows[0].id);
        return 0; // nothing was written
    }
    (void)id_make(keys->organisation);
    if (store_organisation_put(keys->store, &fresh, err) < 0)
        return -1;
    return store_commit(&together, err);
}

int keys_open(struct store *store, struct keys **out, struct error *err)
{
    struct keys *keys = xnew(struct keys);

    keys->store = store;
    (void)pthread_mutex_init(&keys->lock, NULL);
    (void)pthread_cond_init(&keys->box_events, NULL);
    int code = 0;
    if (find_organisation(keys, err) < 0 ||
        ((code = pthread_create(&keys->noter, NULL, record_uses, keys)) &&
         error_sys_code(err, code, "start a thread"))) {
        free(keys);
        return -1;
    }
    *out = keys;
    return 0;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    (void)pthread_mutex_lock(&keys->lock);
    keys->is_closing = true;
    (void)pthread_cond_signal(&keys->box_events);
    (void)pthread_mutex_unlock(&keys->lock);
    (void)pthread_join(keys->noter, NULL);
    (void)pthread_cond_destroy(&keys->box_events);
    (void)pthread_mutex_destroy(&keys->lock);
    OPENSSL_cleanse(keys, sizeof *keys);
    free(keys);
}

void keys_local_actor(struct keys *keys, struct actor *out)
{
    *out = (struct actor){.is_admin = true};
    memcpy(out->organisation, keys->organisation, sizeof out->organisation);
}

// ---- making ----

#define KEY_LETTERS 52 // 260 random bits

static void make_text(char text[KEY_TEXT])
{
    static const char prefix[] = "brw_";

    memcpy(text, prefix, sizeof prefix);
    id_make_letters(text + sizeof prefix - 1, KEY_LETTERS);
}

size_t key_shown(const char *text)
{
    size_t length = strlen(text);

    if (length == 4 + KEY_LETTERS && strncmp(text, "brw_", 4) == 0)
        return SHOWN_MADE;
    return length >= KEY_MINIMUM ? SHOWN_CHOSEN : 0;
}

int key_check_chosen(const char *text, struct error *err)
{
    size_t length = strlen(text);

    if (length < KEY_MINIMUM)
        error_set(
            err, ERROR_INVALID,
            "a key of %zu characters can be guessed; choose at least %d, or let burrow make one",
            length, KEY_MINIMUM);
    else if (length > TEXT_MAXIMUM)
        error_set(err, ERROR_INVALID, "a key has at most %d characters", TEXT_MAXIMUM);
    else {
        for (const char *at = text; *at; at++)
            if (*at <= ' ' || *at > '~') {
                error_set(err, ERROR_INVALID,
                          "a key is made of printable ASCII characters without spaces; character "
                          "%zu is none",
                          (size_t)(at - text) + 1);
                return error_about(err, "key", "text");
            }
        return 0;
    }
    return error_about(err, "key", "text");
}

static void hash_text(const char *text, unsigned char hash[KEY_HASH])
{
    (void)SHA256((const unsigned char *)text, strlen(text), hash);
}

// The chosen key is known already: fine, unless it is not to be used any more.
static int take_known(struct keys *keys, const unsigned char hash[KEY_HASH], struct key_record *out,
                      struct error *err)
{
    autokey known = {0};

    if (store_key_find(keys->store, hash, &known, err) < 0)
        return -1;
    if (known.revoked_at || (known.expires_at && known.expires_at <= (int64_t)clock_wall_ms())) {
        error_set(err, ERROR_CONFLICT, "key '%s' has %s; choose another one", known.prefix,
                  known.revoked_at ? "been revoked" : "expired");
        return error_about(err, "key", "state");
    }
    *out = known;
    known = (struct key_record){0};
    return 0;
}

int key_create(struct keys *keys, const struct key_request *request, char *text,
               struct key_record *out, struct error *err)
{
    char made[KEY_TEXT], id[ID_TEXT], prefix[SHOWN_MADE + 1];
    struct key_record record = {
        .id = id_make(id),
        .prefix = prefix,
        .name = request->name ? request->name : "",
        .organisation = keys->organisation,
        .scopes = request->is_admin ? SCOPES_ADMIN : "",
        .created_at = (int64_t)clock_wall_ms(),
        .expires_at = request->expires_at,
    };

    if (request->text && key_check_chosen(request->text, err) < 0)
        return -1;
    make_text(made);
    const char *key = request->text ? request->text : made;
    (void)snprintf(prefix, sizeof prefix, "%.*s", request->text ? SHOWN_CHOSEN : SHOWN_MADE, key);
    hash_text(key, record.hash);
    int result = store_key_put(keys->store, &record, err);
    if (result < 0 && err->kind == ERROR_CONFLICT && request->text)
        result = take_known(keys, record.hash, out, err);
    else if (result == 0)
        result = store_key_get(keys->store, id, out, err);
    if (result == 0 && !request->text)
        memcpy(text, made, sizeof made);
    OPENSSL_cleanse(made, sizeof made);
    keys_forget(keys);
    return result;
}

bool key_is_admin(const struct key_record *key)
{
    return strcmp(key->scopes, SCOPES_ADMIN) == 0;
}

// ---- revoking, listing ----

// The id of the one key that can still be used and is shown so.
static int find_shown(struct keys *keys, const char *prefix, char id[ID_TEXT], struct error *err)
{
    struct page page = {.limit = PAGE_MAX};
    unsigned found = 0;

    for (;; page.offset += page.limit) {
        autokeys list = {0};
        if (store_key_list(keys->store, keys->organisation, &page, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++)
            if (strcmp(list.rows[i].prefix, prefix) == 0 && !list.rows[i].revoked_at && !found++)
                (void)snprintf(id, ID_TEXT, "%s", list.rows[i].id);
        if (page.offset + (int64_t)list.count >= list.total)
            break;
    }
    if (found == 1)
        return 0;
    if (found)
        error_set(err, ERROR_CONFLICT, "%u keys begin with '%.60s'; name one by its id", found,
                  prefix);
    else
        error_set(err, ERROR_NOT_FOUND, "there is no key '%.60s' in use", prefix);
    return error_about(err, "key", found ? "ambiguous" : NULL);
}

int key_revoke(struct keys *keys, const char *id, struct error *err)
{
    char shown[ID_TEXT];

    if (!id_is_valid(id)) {
        if (find_shown(keys, id, shown, err) < 0)
            return -1;
        id = shown;
    }
    if (store_key_revoke(keys->store, id, (int64_t)clock_wall_ms(), err) < 0)
        return -1;
    keys_forget(keys);
    return 0;
}

int key_list(struct keys *keys, const struct page *page, struct key_list *out, struct error *err)
{
    return store_key_list(keys->store, keys->organisation, page, out, err);
}

// ---- checking ----

static struct answer *row_of(struct answer *table, const unsigned char hash[KEY_HASH])
{
    return &table[(hash[0] | hash[1] << 8) % KNOWN_ROWS];
}

// Under the lock.
static const struct answer *look_up(struct answer *table, const unsigned char hash[KEY_HASH])
{
    const struct answer *row = row_of(table, hash);

    if (row->until_ms <= clock_monotonic_ms() || CRYPTO_memcmp(row->hash, hash, KEY_HASH) != 0)
        return NULL;
    return !row->expires_at || row->expires_at > (int64_t)clock_wall_ms() ? row : NULL;
}

static void fill_actor(const struct keys *keys, const struct answer *answer, struct actor *out)
{
    *out = (struct actor){.is_admin = answer->is_admin};
    memcpy(out->key_id, answer->key_id, sizeof out->key_id);
    memcpy(out->organisation, keys->organisation, sizeof out->organisation);
}

static int refuse(struct error *err)
{
    error_set(err, ERROR_DENIED, "the API key is missing or not valid");
    return error_about(err, "key", "unauthorized");
}

// From memory: 1 valid, 0 wrong, -1 not known.
static int recall(struct keys *keys, const unsigned char hash[KEY_HASH], struct actor *out)
{
    int result = -1;

    (void)pthread_mutex_lock(&keys->lock);
    const struct answer *answer = look_up(keys->good, hash);
    if (answer) {
        fill_actor(keys, answer, out);
        result = 1;
    } else if (look_up(keys->bad, hash)) {
        result = 0;
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return result;
}

// From the database. Revoked, expired and unknown are the same answer.
static int ask(struct keys *keys, struct answer *answer, bool *is_good, bool *is_use_new,
               struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms();
    autokey key = {0};

    *is_good = false;
    if (store_key_find(keys->store, answer->hash, &key, err) < 0)
        return err->kind == ERROR_NOT_FOUND ? 0 : error_wrap(err, "check the API key");
    *is_good = CRYPTO_memcmp(key.hash, answer->hash, KEY_HASH) == 0 && !key.revoked_at &&
               (!key.expires_at || key.expires_at > now) &&
               strcmp(key.organisation, keys->organisation) == 0;
    *is_use_new = key.used_at + USED_EVERY_MS <= now;
    answer->expires_at = *is_good ? key.expires_at : 0;
    answer->is_admin = key_is_admin(&key);
    (void)snprintf(answer->key_id, sizeof answer->key_id, "%s", key.id);
    return 0;
}

int key_check(struct keys *keys, const char *text, struct actor *out, struct error *err)
{
    struct answer answer = {0};
    bool is_good, is_use_new = false;

    if (!text || strlen(text) > TEXT_MAXIMUM)
        return refuse(err);
    hash_text(text, answer.hash);
    int known = recall(keys, answer.hash, out);
    if (known >= 0)
        return known ? 0 : refuse(err);
    answer.until_ms = clock_monotonic_ms() + KNOWN_MS; // counted from before the database was asked
    if (ask(keys, &answer, &is_good, &is_use_new, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&keys->lock);
    *row_of(is_good ? keys->good : keys->bad, answer.hash) = answer;
    if (is_good && is_use_new)
        add_use(keys, answer.key_id);
    (void)pthread_mutex_unlock(&keys->lock);
    if (!is_good)
        return refuse(err);
    fill_actor(keys, &answer, out);
    return 0;
}

bool key_check_quick(struct keys *keys, const char *text, struct actor *out)
{
    unsigned char hash[KEY_HASH];

    if (!text || strlen(text) > TEXT_MAXIMUM)
        return false;
    hash_text(text, hash);
    return recall(keys, hash, out) == 1;
}

void keys_forget(struct keys *keys)
{
    (void)pthread_mutex_lock(&keys->lock);
    memset(keys->good, 0, sizeof keys->good);
    memset(keys->bad, 0, sizeof keys->bad);
    (void)pthread_mutex_unlock(&keys->lock);
}
