/* SPDX-License-Identifier: Apache-2.0 */
/* API keys; see key.h. */
#include "core/account/key.h"

#include "core/account/account_info_impl.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/account/account_impl.h"
#include "store/accounts.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KNOWN_MS 1000
#define KNOWN_ROWS 512 // answers in memory, of each kind
#define USED_EVERY_MS 60000
#define USES 32 // keys whose use waits to be recorded
#define TEXT_MAXIMUM 256
#define SHOWN_MADE KEY_SHOWN // of a made key: "brw_" and 40 of its 260 bits
#define SHOWN_CHOSEN 4

// What key_check found out.
struct answer {
    unsigned char hash[KEY_HASH];
    uint64_t until_ms; // monotonic; 0: empty
    int64_t expires_at;
    char key_id[ID_TEXT];
    bool is_admin;
};

struct key_checks {
    struct store *store;
    EVP_MD *sha256;   // asking OpenSSL for it each time takes longer than the hash
    struct lock lock; // guards all below
    // Two tables, so that a flood of wrong keys does not push out the good ones. A row is found by the hash's first bytes.
    struct answer good[KNOWN_ROWS], bad[KNOWN_ROWS];
    char used[USES][ID_TEXT]; // keys whose use is to be recorded
    size_t n_used;
    bool is_closing;
    struct lock_condition changed; // n_used or is_closing
    pthread_t recorder;
};

// ---- when keys were used ----

// Waits for a key whose use is to be recorded; false: there will be none.
static bool next_use(struct key_checks *checks, char id[ID_TEXT])
{
    autolock(&checks->lock);
    while (!checks->n_used && !checks->is_closing)
        (void)lock_condition_wait(&checks->changed, &checks->lock, 0);
    if (!checks->n_used)
        return false;
    memcpy(id, checks->used[--checks->n_used], ID_TEXT);
    return true;
}

static void *record_uses(void *data)
{
    struct key_checks *checks = data;
    char id[ID_TEXT];

    thread_set_name("key uses");
    while (next_use(checks, id)) {
        struct error err = {0};
        if (store_key_used(checks->store, id, (int64_t)clock_wall_ms(), &err) < 0)
            log_debug("use of a key not recorded", F("id", id), F("error", err.text));
    }
    return NULL;
}

// Under the lock. What finds no room is recorded at the next use.
static void add_use(struct key_checks *checks, const char *id)
{
    if (checks->n_used == USES)
        return;
    for (size_t i = 0; i < checks->n_used; i++)
        if (strcmp(checks->used[i], id) == 0)
            return;
    (void)snprintf(checks->used[checks->n_used++], ID_TEXT, "%s", id);
    lock_condition_wake(&checks->changed);
}

int key_checks_new(struct store *store, struct key_checks **out, struct error *err)
{
    struct key_checks *checks = xnew(struct key_checks);

    checks->store = store;
    checks->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    lock_init(&checks->lock, LOCK_KEYS);
    lock_condition_init(&checks->changed);
    int code =
        checks->sha256 ? pthread_create(&checks->recorder, NULL, record_uses, checks) : ENOMEM;
    if (code) {
        lock_condition_clear(&checks->changed);
        lock_clear(&checks->lock);
        EVP_MD_free(checks->sha256);
        free(checks);
        return error_sys_code(err, code, "start the check of keys");
    }
    *out = checks;
    return 0;
}

static void close_checks(struct key_checks *checks)
{
    autolock(&checks->lock);
    checks->is_closing = true;
    lock_condition_wake(&checks->changed);
}

void key_checks_free(struct key_checks *checks)
{
    if (!checks)
        return;
    close_checks(checks);
    (void)pthread_join(checks->recorder, NULL);
    lock_condition_clear(&checks->changed);
    lock_clear(&checks->lock);
    EVP_MD_free(checks->sha256);
    OPENSSL_cleanse(checks, sizeof *checks);
    free(checks);
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
            if (*at <= ' ' || *at > '~')
                return error_refuse(
                    err, ERROR_INVALID, "key",
                    "a key is made of printable ASCII characters without spaces; character "
                    "%zu is none",
                    (size_t)(at - text) + 1);
        return 0;
    }
    return error_about(err, "key");
}

static void hash_text(const struct accounts *accounts, const char *text,
                      unsigned char hash[KEY_HASH])
{
    if (EVP_Digest(text, strlen(text), hash, NULL, accounts->checks->sha256, NULL) != 1)
        abort(); // out of memory
}

// The chosen key is known already: fine, unless it is not to be used any more.
static int take_known(struct accounts *accounts, const unsigned char hash[KEY_HASH],
                      struct key_record *out, struct error *err)
{
    autokey known = {0};

    if (store_key_find(accounts->store, hash, &known, err) < 0)
        return -1;
    if (known.revoked_at || (known.expires_at && known.expires_at <= (int64_t)clock_wall_ms()))
        return error_refuse(err, ERROR_STATE, "key", "key '%s' has %s; choose another one",
                            known.prefix, known.revoked_at ? "been revoked" : "expired");
    *out = known;
    known = (struct key_record){0};
    return 0;
}

int key_create(struct accounts *accounts, const struct key_request *request, char *text,
               struct key_info *out, struct error *err)
{
    autokey kept = {0};
    char made[KEY_TEXT], id[ID_TEXT], prefix[SHOWN_MADE + 1];
    struct key_record record = {
        .id = id_make(id),
        .prefix = prefix,
        .name = request->name ? request->name : "",
        .organisation = accounts->organisation,
        .scopes = request->is_admin ? KEY_SCOPES_ADMIN : "",
        .created_at = (int64_t)clock_wall_ms(),
        .expires_at = request->expires_at,
    };

    if (request->text && key_check_chosen(request->text, err) < 0)
        return -1;
    make_text(made);
    const char *key = request->text ? request->text : made;
    (void)snprintf(prefix, sizeof prefix, "%.*s", request->text ? SHOWN_CHOSEN : SHOWN_MADE, key);
    hash_text(accounts, key, record.hash);
    int result = store_key_put(accounts->store, &record, err);
    if (result < 0 && error_is(err, ERROR_CONFLICT) && request->text)
        result = take_known(accounts, record.hash, &kept, err);
    else if (result == 0)
        result = store_key_get(accounts->store, id, &kept, err);
    if (result == 0)
        key_info_take(out, &kept);
    if (result == 0 && !request->text)
        memcpy(text, made, sizeof made);
    OPENSSL_cleanse(made, sizeof made);
    key_forget_checks(accounts);
    return result;
}

// ---- revoking, listing ----

// The id of the one key that can still be used and is shown so.
static int find_shown(struct accounts *accounts, const char *prefix, char id[ID_TEXT],
                      struct error *err)
{
    struct page page = {.limit = PAGE_MAX};
    unsigned found = 0;

    for (;; page.offset += page.limit) {
        autokeys list = {0};
        if (store_key_list(accounts->store, accounts->organisation, &page, &list, err) < 0)
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
        return error_refuse(err, ERROR_AMBIGUOUS, "key",
                            "%u keys begin with '%.60s'; name one by its id", found, prefix);
    return error_refuse(err, ERROR_NOT_FOUND, "key", "there is no key '%.60s' in use", prefix);
}

int key_revoke(struct accounts *accounts, const char *id, struct error *err)
{
    char shown[ID_TEXT];

    if (!id_is_valid(id)) {
        if (find_shown(accounts, id, shown, err) < 0)
            return -1;
        id = shown;
    }
    if (store_key_revoke(accounts->store, id, (int64_t)clock_wall_ms(), err) < 0)
        return -1;
    key_forget_checks(accounts);
    return 0;
}

int key_list(struct accounts *accounts, const struct page *page, struct key_infos *out,
             struct error *err)
{
    autokeys found = {0};

    if (store_key_list(accounts->store, accounts->organisation, page, &found, err) < 0)
        return -1;
    key_infos_take(out, &found);
    return 0;
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

static void fill_actor(const struct accounts *accounts, const struct answer *answer,
                       struct actor *out)
{
    *out = (struct actor){.is_admin = answer->is_admin};
    memcpy(out->key_id, answer->key_id, sizeof out->key_id);
    memcpy(out->organisation, accounts->organisation, sizeof out->organisation);
}

static int refuse(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "key", "the API key is missing or not valid");
}

// Under the lock: a good one, however old.
static const struct answer *find_old(struct key_checks *checks, const unsigned char hash[KEY_HASH])
{
    const struct answer *row = row_of(checks->good, hash);

    return row->until_ms && CRYPTO_memcmp(row->hash, hash, KEY_HASH) == 0 ? row : NULL;
}

static enum key_known recall(struct accounts *accounts, const unsigned char hash[KEY_HASH],
                             struct actor *out)
{
    struct key_checks *checks = accounts->checks;

    autolock(&checks->lock);
    const struct answer *answer = look_up(checks->good, hash);
    bool is_valid = answer != NULL;
    if (!answer && look_up(checks->bad, hash))
        return KEY_WRONG;
    if (!answer)
        answer = find_old(checks, hash);
    if (!answer)
        return KEY_UNKNOWN;
    fill_actor(accounts, answer, out);
    return is_valid ? KEY_VALID : KEY_STALE;
}

static void remember(struct key_checks *checks, const struct answer *answer, bool is_good,
                     bool is_use_new)
{
    autolock(&checks->lock);
    if (!is_good && find_old(checks, answer->hash))
        *row_of(checks->good, answer->hash) = (struct answer){0};
    *row_of(is_good ? checks->good : checks->bad, answer->hash) = *answer;
    if (is_good && is_use_new)
        add_use(checks, answer->key_id);
}

// From the database. Revoked, expired and unknown are the same answer.
static int ask(struct accounts *accounts, struct answer *answer, bool *is_good, bool *is_use_new,
               struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms();
    autokey key = {0};

    *is_good = false;
    if (store_key_find(accounts->store, answer->hash, &key, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : error_wrap(err, "check the API key");
    *is_good = CRYPTO_memcmp(key.hash, answer->hash, KEY_HASH) == 0 && !key.revoked_at &&
               (!key.expires_at || key.expires_at > now) &&
               strcmp(key.organisation, accounts->organisation) == 0;
    *is_use_new = key.used_at + USED_EVERY_MS <= now;
    answer->expires_at = *is_good ? key.expires_at : 0;
    answer->is_admin = key_record_is_admin(&key);
    (void)snprintf(answer->key_id, sizeof answer->key_id, "%s", key.id);
    return 0;
}

int key_check(struct accounts *accounts, const char *text, struct actor *out, struct error *err)
{
    struct answer answer = {0};
    bool is_good, is_use_new = false;

    if (!text || strlen(text) > TEXT_MAXIMUM)
        return refuse(err);
    hash_text(accounts, text, answer.hash);
    enum key_known known = recall(accounts, answer.hash, out);
    if (known == KEY_VALID || known == KEY_WRONG)
        return known == KEY_VALID ? 0 : refuse(err);
    answer.until_ms = clock_monotonic_ms() + KNOWN_MS; // counted from before the database was asked
    if (ask(accounts, &answer, &is_good, &is_use_new, err) < 0)
        return -1;
    remember(accounts->checks, &answer, is_good, is_use_new);
    if (!is_good)
        return refuse(err);
    fill_actor(accounts, &answer, out);
    return 0;
}

enum key_known key_check_quick(struct accounts *accounts, const char *text, struct actor *out)
{
    unsigned char hash[KEY_HASH];

    if (!text || strlen(text) > TEXT_MAXIMUM)
        return KEY_WRONG;
    hash_text(accounts, text, hash);
    return recall(accounts, hash, out);
}

void key_forget_checks(struct accounts *accounts)
{
    struct key_checks *checks = accounts->checks;

    autolock(&checks->lock);
    memset(checks->good, 0, sizeof checks->good);
    memset(checks->bad, 0, sizeof checks->bad);
}
