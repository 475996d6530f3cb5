/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of sandboxes; see seal.h. */
#include "core/seal.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandboxes.h"
#include "core/sandbox/sandbox_object.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(SEAL_KEYS == SANDBOX_SEAL_KEYS, "a sandbox has room for them");

#define SEED_FILE "seed"
#define SEED_LETTERS 52 // 260 random bits

static int make_seed(int directory_fd, struct error *err)
{
    char text[SEED_LETTERS + 2];

    id_make_letters(text, SEED_LETTERS);
    text[SEED_LETTERS] = '\n';
    int result = fd_replace_file(directory_fd, SEED_FILE, text, SEED_LETTERS + 1, 0600, err);
    OPENSSL_cleanse(text, sizeof text);
    if (result == 0 && fsync(directory_fd) < 0)
        return error_sys(err, "bring '" SEED_FILE "' to the disk");
    return result;
}

int seal_open(struct core *core, struct error *err)
{
    const char *directory = core->settings.data_dir;
    char text[SEED_LETTERS + 8];
    autofd directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory_fd < 0)
        return error_sys(err, "open the data directory '%s'", directory);
    if (faccessat(directory_fd, SEED_FILE, F_OK, 0) < 0 && errno == ENOENT &&
        make_seed(directory_fd, err) < 0)
        return error_wrap(err, "make '%s/" SEED_FILE "'", directory);
    if (fd_read_knob(directory_fd, SEED_FILE, text, sizeof text, err) < 0)
        return error_wrap(err, "read '%s/" SEED_FILE "'", directory);
    if (strlen(text) < SEED_LETTERS)
        return error_set(err, ERROR_INVALID,
                         "'%s/" SEED_FILE "' is damaged: remove it, and the secrets of sandboxes "
                         "that are alive are others from then on",
                         directory);
    (void)EVP_Digest(text, strlen(text), core->seed, NULL, EVP_sha256(), NULL);
    OPENSSL_cleanse(text, sizeof text);
    return 0;
}

void seal_make(const struct core *core, const char *purpose, const char *subject,
               char out[SEAL_TEXT])
{
    unsigned char digest[SEAL_BYTES];
    char text[128];
    int length = snprintf(text, sizeof text, "%s:%s", purpose, subject);

    (void)HMAC(EVP_sha256(), core->seed, SEAL_BYTES, (const unsigned char *)text,
               length < (int)sizeof text ? (size_t)length : sizeof text - 1, digest, NULL);
    for (size_t i = 0; i < SEAL_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
    OPENSSL_cleanse(digest, sizeof digest);
}

bool seal_is(const struct core *core, const char *purpose, const char *subject, const char *text)
{
    char wanted[SEAL_TEXT];

    seal_make(core, purpose, subject, wanted);
    bool is_it = strlen(text) == SEAL_TEXT - 1 && CRYPTO_memcmp(text, wanted, SEAL_TEXT - 1) == 0;
    OPENSSL_cleanse(wanted, sizeof wanted);
    return is_it;
}

static void copy_text(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
}

bool seal_is_alive(struct core *core, const char *sandbox_id, enum sandbox_state *state)
{
    struct actor ignored;

    return seal_actor(core, sandbox_id, &ignored, state);
}

bool seal_actor(struct core *core, const char *sandbox_id, struct actor *out,
                enum sandbox_state *state)
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, sandbox_id);

    if (!sandbox)
        return false;
    autolock(&sandbox->lock);
    const struct sandbox_record *record = &sandbox->record;
    if (sandbox_in(record->state) & SANDBOX_ENDING)
        return false;
    *out = (struct actor){.scopes = SCOPES_USUAL};
    copy_text(out->organisation, sizeof out->organisation, record->owner.organisation);
    copy_text(out->member, sizeof out->member, record->owner.member);
    copy_text(out->key_id, sizeof out->key_id, record->key_id);
    copy_text(out->sandbox, sizeof out->sandbox, sandbox->id);
    if (!record->owner.member)
        out->scopes |= SCOPE_ORGANISATION; // nobody's in particular: it is seen so alone
    if (state)
        *state = record->state;
    return true;
}

bool seal_stranger(struct core *core, const char *sandbox_id, struct actor *out)
{
    if (!seal_actor(core, sandbox_id, out, NULL))
        return false;
    out->key_id[0] = out->member[0] = '\0';
    out->scopes = SCOPE_READ | SCOPE_RUN | SCOPE_ORGANISATION; // whosever this one sandbox is
    out->is_stranger = true;
    return true;
}

bool seal_hold(struct core *core, const char *sandbox_id, struct actor *actor)
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, sandbox_id);

    if (!sandbox || !actor_sees_in(actor, &sandbox->record.owner, sandbox->id))
        return false;
    actor->scopes &= SCOPES_USUAL | SCOPE_ORGANISATION;
    actor->is_admin = false;
    copy_text(actor->sandbox, sizeof actor->sandbox, sandbox->id);
    return true;
}

// Under the sandbox's lock.
static bool has_key(const struct sandbox *sandbox, const char *key_id)
{
    const char *maker = sandbox->record.key_id;

    if (strcmp(key_id, maker ? maker : "") == 0)
        return true;
    for (size_t i = 0; i < SEAL_KEYS && i < sandbox->n_seal_keys; i++) {
        if (strcmp(key_id, sandbox->seal_keys[i]) == 0)
            return true;
    }
    return false;
}

void seal_add_key(struct core *core, const char *sandbox_id, const char *key_id)
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, sandbox_id);

    if (!sandbox)
        return;
    autolock(&sandbox->lock);
    if (!has_key(sandbox, key_id)) // the oldest goes where there is no room
        copy_text(sandbox->seal_keys[sandbox->n_seal_keys++ % SEAL_KEYS], ID_TEXT, key_id);
}

size_t seal_list_keys(struct core *core, const char *sandbox_id, char out[SEAL_KEYS + 1][ID_TEXT])
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, sandbox_id);
    size_t count = 0;

    if (!sandbox)
        return 0;
    autolock(&sandbox->lock);
    copy_text(out[count++], ID_TEXT, sandbox->record.key_id);
    for (size_t i = 0; i < SEAL_KEYS && i < sandbox->n_seal_keys; i++)
        copy_text(out[count++], ID_TEXT, sandbox->seal_keys[i]);
    return count;
}

char *seal_front_data(struct core *core, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, sandbox_id);

    if (!sandbox)
        return NULL;
    autolock(&sandbox->lock);
    const struct sandbox_record *record = &sandbox->record;
    bool is_told = record->front_data && !(sandbox_in(record->state) & SANDBOX_ENDING);
    return is_told ? xstrdup(record->front_data) : NULL;
}

bool seal_find(struct core *core, bool (*fn)(void *data, const char *sandbox_id), void *data)
{
    struct sandbox **all;
    size_t count = registry_all(core->sandboxes->registry, &all);
    bool is_found = false;

    for (size_t i = 0; i < count; i++) {
        is_found = is_found || (!sandbox_is_over(all[i]) && fn(data, all[i]->id));
        sandbox_free(all[i]);
    }
    free(all);
    return is_found;
}
