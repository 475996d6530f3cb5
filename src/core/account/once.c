/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that must happen once; see once.h. */
#include "core/account/once.h"

#include "base/clock.h"
#include "core/account/account_impl.h"
#include "store/idempotency.h"

#include <stdio.h>
#include <string.h>

#define NAME_TEXT (MEMBER_TEXT + 512) // longer ones are cut: no front takes any

/* Each member of an organisation has keys of its own: "alice\tk1". */
static const char *name_of(const struct actor *actor, const struct once *once, char name[NAME_TEXT])
{
    if (!*actor->member)
        return once->key;
    (void)snprintf(name, NAME_TEXT, "%s\t%s", actor->member, once->key);
    return name;
}

static struct idempotency_record describe(const struct actor *actor, const struct once *once,
                                          char name[NAME_TEXT])
{
    struct idempotency_record record = {
        .organisation = actor->organisation,
        .realm = once->realm,
        .key = name_of(actor, once, name),
        .created_at = (int64_t)clock_wall_ms(),
    };
    memcpy(record.request_hash, once->request_hash, sizeof record.request_hash);
    return record;
}

static int refuse_pending(const struct once *once, struct error *err)
{
    return error_refuse(err, ERROR_PENDING, "request",
                        "a request with the idempotency key '%s' is still under way", once->key);
}

int once_claim(struct accounts *accounts, const struct actor *actor, const struct once *once,
               bool *is_new, char subject[ID_TEXT], struct error *err)
{
    autoidempotency earlier = {0};
    char name[NAME_TEXT];

    *is_new = true;
    if (!once)
        return 0;
    struct idempotency_record record = describe(actor, once, name);
    if (store_idempotency_claim(accounts->store, &record, is_new, &earlier, err) < 0)
        return -1;
    if (*is_new)
        return 0;
    if (earlier.state == IDEMPOTENCY_PENDING || !earlier.subject_id)
        return refuse_pending(once, err);
    (void)snprintf(subject, ID_TEXT, "%s", earlier.subject_id);
    return 0;
}

int once_claim_answer(struct accounts *accounts, const struct actor *actor, const struct once *once,
                      bool *is_new, char **answer, struct error *err)
{
    autoidempotency earlier = {0};
    char name[NAME_TEXT];
    struct idempotency_record record = describe(actor, once, name);

    if (store_idempotency_claim(accounts->store, &record, is_new, &earlier, err) < 0)
        return -1;
    if (*is_new)
        return 0;
    if (earlier.state == IDEMPOTENCY_PENDING || !earlier.answer)
        return refuse_pending(once, err);
    *answer = (char *)(uintptr_t)take(earlier.answer);
    return 0;
}

int once_finish_answer(struct accounts *accounts, const struct actor *actor,
                       const struct once *once, const char *answer, struct error *err)
{
    char name[NAME_TEXT];
    struct idempotency_record record = describe(actor, once, name);

    record.answer = answer;
    return store_idempotency_finish(accounts->store, &record, err);
}

int once_finish(struct accounts *accounts, const struct actor *actor, const struct once *once,
                const char *subject, struct error *err)
{
    char name[NAME_TEXT];

    if (!once)
        return 0;
    struct idempotency_record record = describe(actor, once, name);
    record.subject_id = subject;
    return store_idempotency_finish(accounts->store, &record, err);
}

void once_release(struct accounts *accounts, const struct actor *actor, const struct once *once)
{
    struct error ignored = {0};
    char name[NAME_TEXT];

    if (once)
        (void)store_idempotency_release(accounts->store, actor->organisation, once->realm,
                                        name_of(actor, once, name), &ignored);
}
