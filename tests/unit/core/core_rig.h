/* SPDX-License-Identifier: Apache-2.0 */
/* As much of a core as calls need that only use the store and the data directory: a real store, no boxes. */
#pragma once
#include "../store/fixture.h"
#include "core/core.h"
#include "core/sandbox/sandboxes.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "store/store.h"
#include "core/account/key.h"
#include "core/runtime/runtimes.h"
#include "test.h"

/* A core over a fresh store in a directory of its own; the rig's. */
static inline struct core *rig_core(void)
{
    static struct core core;
    static struct sandboxes sandboxes; // with a store alone
    static char data_dir[160];
    struct error err = {0};

    accounts_free(core.accounts); // of the test before
    runtimes_free(core.runtimes);
    core = (struct core){.store = fixture_store(), .sandboxes = &sandboxes};
    sandboxes = (struct sandboxes){.store = core.store};
    (void)snprintf(data_dir, sizeof data_dir, "%.*s",
                   (int)(strrchr(fixture_path(), '/') - fixture_path()), fixture_path());
    core.settings.data_dir = data_dir;
    CHECK_OK(accounts_open(core.store, &core.accounts, &err), err);
    CHECK_OK(runtimes_open(data_dir, NULL, &core.runtimes, &err), err);
    return &core;
}

/* Somebody of the fixture's organisation. */
static inline struct actor rig_actor(void)
{
    return (struct actor){.organisation = ORGANISATION, .scopes = SCOPES_ALL};
}
