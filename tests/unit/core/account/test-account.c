/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account/account.c. */
#include "core/account/account.h"

#include "../core_rig.h"

TEST(an_actor_learns_of_its_organisation)
{
    struct core *core = rig_core();
    struct actor us = rig_actor(), nobody = {.organisation = "org9"};
    autoclear(organisation_info) ours = {0}, none = {0};
    struct error err = {0};

    CHECK_OK(account_organisation(core->accounts, &us, &ours, &err), err);
    CHECK_STR(ours.name, "Us");
    CHECK(account_organisation(core->accounts, &nobody, &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}
