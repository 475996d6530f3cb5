/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account/once.c: a request that is sent again gets what the first one made. */
#include "core/account/once.h"

#include "../core_rig.h"

static struct once request(const char *key, unsigned char content)
{
    struct once once = {.realm = "test create", .key = key};

    memset(once.request_hash, content, sizeof once.request_hash);
    return once;
}

TEST(the_second_request_gets_what_the_first_made)
{
    struct core *core = rig_core();
    struct actor us = rig_actor();
    const struct once first = request("k", 1);
    char subject[ID_TEXT] = "";
    struct error err = {0};
    bool is_new = false;

    CHECK_OK(once_claim(core->accounts, &us, &first, &is_new, subject, &err), err);
    CHECK(is_new);
    CHECK_OK(once_finish(core->accounts, &us, &first, "made", &err), err);
    CHECK_OK(once_claim(core->accounts, &us, &first, &is_new, subject, &err), err);
    CHECK(!is_new);
    CHECK_STR(subject, "made");
}

TEST(a_request_under_way_and_another_with_its_key_are_refused)
{
    struct core *core = rig_core();
    struct actor us = rig_actor();
    const struct once first = request("k", 1), other = request("k", 2);
    char subject[ID_TEXT] = "";
    struct error err = {0};
    bool is_new = false;

    CHECK_OK(once_claim(core->accounts, &us, &first, &is_new, subject, &err), err);
    CHECK(once_claim(core->accounts, &us, &first, &is_new, subject, &err) < 0);
    CHECK_INT(err.reason, ERROR_PENDING);
    CHECK_OK(once_finish(core->accounts, &us, &first, "made", &err), err);
    CHECK(once_claim(core->accounts, &us, &other, &is_new, subject, &err) < 0);
    CHECK_INT(err.reason, ERROR_MISMATCH);
}

TEST(a_key_is_free_again_after_a_failure)
{
    struct core *core = rig_core();
    struct actor us = rig_actor();
    const struct once first = request("k", 1), other = request("k", 2);
    char subject[ID_TEXT] = "";
    struct error err = {0};
    bool is_new = false;

    CHECK_OK(once_claim(core->accounts, &us, &first, &is_new, subject, &err), err);
    once_release(core->accounts, &us, &first);
    is_new = false;
    CHECK_OK(once_claim(core->accounts, &us, &other, &is_new, subject, &err), err);
    CHECK(is_new);
}

TEST(without_a_key_every_request_is_new)
{
    struct core *core = rig_core();
    struct actor us = rig_actor();
    char subject[ID_TEXT] = "";
    struct error err = {0};

    for (int i = 0; i < 2; i++) {
        bool is_new = false;
        CHECK_OK(once_claim(core->accounts, &us, NULL, &is_new, subject, &err), err);
        CHECK(is_new);
        CHECK_OK(once_finish(core->accounts, &us, NULL, "made", &err), err);
    }
}
