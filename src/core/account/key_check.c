/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a key is, mostly from memory; and when keys were used; see key.h. */
#include "core/account/key.h"

#include "core/account/account_info_impl.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/account/account_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MS 1000
#define KNOWN_ROWS 512 // answers in memory, of each kind
#define USED_EVERY_MS 60000
#define USES 32            // keys whose use waits to be recorded
#define LOOK_EVERY_MS 5000 // for keys that were ended by others, as by `burrow key`, or by time
#define LOOK_AFTER_MS 300  // one was ended here: the answer that tells so may have come with it
#define LOOK_LATEST_MS 1000

// What key_check found out.
struct answer {
    unsigned char hash[KEY_HASH];
    uint64_t until_ms; // monotonic; 0: empty
    int64_t expires_at;
    unsigned scopes;
    bool has_rules;
    uint32_t tools;
    char key_id[ID_TEXT];  // of a token: of the key that made it
    char used_id[ID_TEXT]; // its own
    char sandbox[ID_TEXT];
    char member[MEMBER_TEXT];
    char selector[SELECTOR_TEXT];
    struct quota quota;
};

struct key_checks {
    struct store *store;
    EVP_MD *sha256;   // asking OpenSSL for it each time takes longer than the hash
    struct lock lock; // guards all below
    // Two tables, so that a flood of wrong keys does not push out the good ones. A row is found by the hash's first bytes.
    struct answer good[KNOWN_ROWS], bad[KNOWN_ROWS];
    unsigned n_forgotten; // how often all answers were: what was asked for before that is not kept
    char used[USES][ID_TEXT]; // keys whose use is to be recorded
    size_t n_used;
    bool is_closing;
    uint64_t look_ms;          // when to look for keys that have ended
    uint64_t asked_ms;         // when somebody first asked for that since the last look; 0: nobody
    char (*narrowed)[ID_TEXT]; // keys that may less than before, until the next look
    size_t n_narrowed;
    void (*on_ended)(void *data, const char *key_id, const char *token_id);
    void *on_ended_data;
    struct lock_condition changed; // n_used, is_closing, look_ms or on_ended
    int64_t looked_at;             // the recorder's own
    pthread_t recorder;
};

// ---- when keys were used ----

// Under the lock.
static bool is_time_to_look(const struct key_checks *checks)
{
    return checks->on_ended && clock_monotonic_ms() >= checks->look_ms;
}

// Waits for a key whose use is to be recorded ("": none), or for the time to look for those that have ended; false: it is all over.
static bool next_use(struct key_checks *checks, char id[ID_TEXT], bool *is_look_due)
{
    autolock(&checks->lock);
    while (!(*is_look_due = is_time_to_look(checks)) && !checks->n_used && !checks->is_closing)
        (void)lock_condition_wait(&checks->changed, &checks->lock,
                                  checks->on_ended ? checks->look_ms : 0);
    if (*is_look_due) {
        checks->look_ms = clock_monotonic_ms() + LOOK_EVERY_MS;
        checks->asked_ms = 0;
    }
    id[0] = '\0';
    if (checks->n_used)
        memcpy(id, checks->used[--checks->n_used], ID_TEXT);
    return *id || !checks->is_closing;
}

// Under the lock, so that nobody is told who has asked to be told no more.
static void tell_ended(struct key_checks *checks, const struct key_list *ended)
{
    autolock(&checks->lock);
    for (size_t i = 0; checks->on_ended && i < ended->count; i++) {
        const struct key_record *key = &ended->rows[i];
        bool is_token = key->sandbox_id != NULL;
        checks->on_ended(checks->on_ended_data, is_token ? key->made_by : key->id,
                         is_token ? key->id : NULL);
    }
    for (size_t i = 0; checks->on_ended && i < checks->n_narrowed; i++)
        checks->on_ended(checks->on_ended_data, checks->narrowed[i], NULL);
    free(take(checks->narrowed));
    checks->n_narrowed = 0;
}

// Keys that have been revoked or have expired since the last look, or may less.
static void look_for_ended(struct key_checks *checks)
{
    int64_t now = (int64_t)clock_wall_ms();
    autokeys ended = {0};
    struct error err = {0};

    if (store_key_list_ended(checks->store, checks->looked_at, now, &ended, &err) < 0) {
        log_debug("keys that have ended not found", F("error", err.text));
        return;
    }
    checks->looked_at = now - 1000; // what was being written then
    tell_ended(checks, &ended);
}

static void *record_uses(void *data)
{
    struct key_checks *checks = data;
    char id[ID_TEXT];
    bool is_look_due;

    thread_set_name("key uses");
    while (next_use(checks, id, &is_look_due)) {
        struct error err = {0};
        if (is_look_due)
            look_for_ended(checks);
        if (*id && store_key_used(checks->store, id, (int64_t)clock_wall_ms(), &err) < 0)
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
    checks->looked_at = (int64_t)clock_wall_ms(); // here: the recorder may be late
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
    free(checks->narrowed);
    OPENSSL_cleanse(checks, sizeof *checks);
    free(checks);
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
    *out = (struct actor){
        .scopes = answer->scopes,
        .is_admin = (answer->scopes & SCOPE_ADMIN) != 0,
        .has_rules = answer->has_rules,
        .tools = answer->tools,
        .quota = answer->quota,
    };
    memcpy(out->key_id, answer->key_id, sizeof out->key_id);
    memcpy(out->member, answer->member, sizeof out->member);
    memcpy(out->sandbox, answer->sandbox, sizeof out->sandbox);
    memcpy(out->selector, answer->selector, sizeof out->selector);
    if (*answer->sandbox)
        memcpy(out->token_id, answer->used_id, sizeof out->token_id);
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
                     bool is_use_new, unsigned n_forgotten)
{
    autolock(&checks->lock);
    if (checks->n_forgotten != n_forgotten)
        return;
    if (!is_good && find_old(checks, answer->hash))
        *row_of(checks->good, answer->hash) = (struct answer){0};
    *row_of(is_good ? checks->good : checks->bad, answer->hash) = *answer;
    if (is_good && is_use_new)
        add_use(checks, answer->used_id);
}

static bool is_usable(const struct accounts *accounts, const struct key_record *key, int64_t now)
{
    return !key->revoked_at && (!key->expires_at || key->expires_at > now) &&
           strcmp(key->organisation, accounts->organisation) == 0;
}

static void copy_text(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
}

static bool has_rules(const struct key_record *key)
{
    return key->runtimes || key->has_no_network || key->network_allow || key->selector;
}

// Words that are not known any more leave a key that is for nothing, not one for everything.
static uint32_t tools_of(const struct key_record *key)
{
    uint32_t tools = mcp_tools_read(key->tools);

    return key->tools && !tools ? MCP_NO_TOOL : tools;
}

static void take_key(struct answer *answer, const struct key_record *key)
{
    answer->expires_at = key->expires_at;
    answer->scopes = scopes_read(key->scopes);
    answer->has_rules = has_rules(key);
    answer->tools = tools_of(key);
    answer->quota = key->quota;
    copy_text(answer->key_id, sizeof answer->key_id, key->id);
    copy_text(answer->used_id, sizeof answer->used_id, key->id);
    copy_text(answer->member, sizeof answer->member, key->member);
    copy_text(answer->selector, sizeof answer->selector, key->selector);
}

bool key_actor(const struct accounts *accounts, const struct key_record *key, struct actor *out)
{
    struct answer answer = {0};

    if (!is_usable(accounts, key, (int64_t)clock_wall_ms()))
        return false;
    take_key(&answer, key);
    fill_actor(accounts, &answer, out);
    return true;
}

int key_get_actor(struct accounts *accounts, const char *id, struct actor *out, struct error *err)
{
    autokey key = {0};

    if (!*id) {
        accounts_local_actor(accounts, out);
        return 0;
    }
    if (store_key_get(accounts->store, id, &key, err) < 0 && !error_is(err, ERROR_NOT_FOUND))
        return -1;
    if (key.id && !key.sandbox_id && key_actor(accounts, &key, out))
        return 0;
    return error_refuse(err, ERROR_UNAUTHORIZED, "key", "it was revoked or has expired");
}

int key_check_again(struct accounts *accounts, const char *id, enum key_scope scope,
                    struct error *err)
{
    struct actor now = {0};

    return key_get_actor(accounts, id, &now, err) < 0 ? -1 : actor_need(&now, scope, err);
}

// A token acts for the key that made it, in one sandbox, as long as both are there.
static int take_token(struct accounts *accounts, struct answer *answer,
                      const struct key_record *token, int64_t now, bool *is_good, struct error *err)
{
    bool is_alive = false;
    autokey maker = {0};

    if (store_token_is_alive(accounts->store, token->sandbox_id, &is_alive, err) < 0)
        return -1;
    if (token->made_by && store_key_get(accounts->store, token->made_by, &maker, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? (*is_good = false, 0) : -1;
    *is_good = is_alive && (!token->made_by || is_usable(accounts, &maker, now));
    if (token->made_by)
        take_key(answer, &maker);
    else
        answer->scopes = SCOPES_ALL;
    answer->expires_at = token->expires_at;
    // What the key has lost since, the token has not either; whose sandboxes it sees is the key's.
    answer->scopes &= scopes_read(token->scopes) | SCOPE_ORGANISATION;
    copy_text(answer->used_id, sizeof answer->used_id, token->id);
    copy_text(answer->sandbox, sizeof answer->sandbox, token->sandbox_id);
    return 0;
}

// Of a key by its id; a token has none that anybody shows.
static int ask_id(struct accounts *accounts, const char *id, struct answer *answer, bool *is_good,
                  struct error *err)
{
    autokey key = {0};

    *is_good = false;
    if (store_key_get(accounts->store, id, &key, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : error_wrap(err, "check the API key");
    *is_good = !key.sandbox_id && is_usable(accounts, &key, (int64_t)clock_wall_ms());
    if (*is_good)
        take_key(answer, &key);
    return 0;
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
    *is_good =
        CRYPTO_memcmp(key.hash, answer->hash, KEY_HASH) == 0 && is_usable(accounts, &key, now);
    *is_use_new = key.used_at + USED_EVERY_MS <= now;
    if (!*is_good)
        return 0;
    if (!key.sandbox_id) {
        take_key(answer, &key);
        return 0;
    }
    return take_token(accounts, answer, &key, now, is_good, err) < 0
               ? error_wrap(err, "check the token")
               : 0;
}

static unsigned count_forgotten(struct key_checks *checks)
{
    autolock(&checks->lock);
    return checks->n_forgotten;
}

int key_check(struct accounts *accounts, const char *text, struct actor *out, struct error *err)
{
    struct answer answer = {0};
    bool is_good, is_use_new = false;

    if (!text || strlen(text) > KEY_MAXIMUM)
        return refuse(err);
    key_hash(accounts, text, answer.hash);
    enum key_known known = recall(accounts, answer.hash, out);
    if (known == KEY_VALID || known == KEY_WRONG)
        return known == KEY_VALID ? 0 : refuse(err);
    unsigned n_forgotten = count_forgotten(accounts->checks);
    answer.until_ms = clock_monotonic_ms() + KNOWN_MS; // counted from before the database was asked
    if (ask(accounts, &answer, &is_good, &is_use_new, err) < 0)
        return -1;
    remember(accounts->checks, &answer, is_good, is_use_new, n_forgotten);
    if (!is_good)
        return refuse(err);
    fill_actor(accounts, &answer, out);
    return 0;
}

enum key_known key_check_quick(struct accounts *accounts, const char *text, struct actor *out)
{
    unsigned char hash[KEY_HASH];

    if (!text || strlen(text) > KEY_MAXIMUM)
        return KEY_WRONG;
    key_hash(accounts, text, hash);
    return recall(accounts, hash, out);
}

// Beside the keys in the same tables. It begins with a byte that no text has, so no text that is shown as a key is found there.
static void hash_id(const struct accounts *accounts, const char *id, unsigned char hash[KEY_HASH])
{
    char text[ID_TEXT + 1] = "";

    (void)snprintf(text + 1, sizeof text - 1, "%s", id);
    if (EVP_Digest(text, sizeof text, hash, NULL, accounts->checks->sha256, NULL) != 1)
        abort(); // out of memory
}

int key_check_id(struct accounts *accounts, const char *id, struct actor *out, struct error *err)
{
    struct answer answer = {0};
    bool is_good;

    if (!*id) {
        accounts_local_actor(accounts, out);
        return 0;
    }
    hash_id(accounts, id, answer.hash);
    enum key_known known = recall(accounts, answer.hash, out);
    if (known == KEY_VALID || known == KEY_WRONG)
        return known == KEY_VALID ? 0 : refuse(err);
    unsigned n_forgotten = count_forgotten(accounts->checks);
    answer.until_ms = clock_monotonic_ms() + KNOWN_MS; // counted from before the database was asked
    if (ask_id(accounts, id, &answer, &is_good, err) < 0)
        return -1;
    remember(accounts->checks, &answer, is_good, false, n_forgotten);
    if (!is_good)
        return refuse(err);
    fill_actor(accounts, &answer, out);
    return 0;
}

enum key_known key_check_id_quick(struct accounts *accounts, const char *id, struct actor *out)
{
    unsigned char hash[KEY_HASH];

    if (!*id) {
        accounts_local_actor(accounts, out);
        return KEY_VALID;
    }
    hash_id(accounts, id, hash);
    return recall(accounts, hash, out);
}

void key_forget_checks(struct accounts *accounts)
{
    struct key_checks *checks = accounts->checks;

    autolock(&checks->lock);
    memset(checks->good, 0, sizeof checks->good);
    memset(checks->bad, 0, sizeof checks->bad);
    checks->n_forgotten++;
}

void key_watch_ends(struct accounts *accounts,
                    void (*on_ended)(void *data, const char *key_id, const char *token_id),
                    void *data)
{
    struct key_checks *checks = accounts->checks;

    autolock(&checks->lock);
    checks->on_ended = on_ended;
    checks->on_ended_data = data;
    checks->look_ms = clock_monotonic_ms() + LOOK_EVERY_MS;
    lock_condition_wake(&checks->changed);
}

// Under the lock. Whoever asks again and again does not put it off.
static void look_soon(struct key_checks *checks)
{
    uint64_t now = clock_monotonic_ms();

    if (!checks->asked_ms)
        checks->asked_ms = now;
    uint64_t latest = checks->asked_ms + LOOK_LATEST_MS;
    checks->look_ms = now + LOOK_AFTER_MS < latest ? now + LOOK_AFTER_MS : latest;
    lock_condition_wake(&checks->changed);
}

void key_look_for_ended(struct accounts *accounts)
{
    autolock(&accounts->checks->lock);
    look_soon(accounts->checks);
}

void key_cut_off(struct accounts *accounts, const char *id)
{
    struct key_checks *checks = accounts->checks;

    autolock(&checks->lock);
    if (!checks->on_ended)
        return;
    checks->narrowed = xrealloc(checks->narrowed, checks->n_narrowed + 1, sizeof *checks->narrowed);
    (void)snprintf(checks->narrowed[checks->n_narrowed++], ID_TEXT, "%s", id);
    look_soon(checks);
}

void key_hash(const struct accounts *accounts, const char *text, unsigned char hash[KEY_HASH])
{
    if (EVP_Digest(text, strlen(text), hash, NULL, accounts->checks->sha256, NULL) != 1)
        abort(); // out of memory
}
