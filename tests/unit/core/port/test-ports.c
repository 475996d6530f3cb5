/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/port: tokens of private ports, and the keys that they end with. */
#include "core/port/port.h"

#include "../core_rig.h"
#include "base/clock.h"
#include "core/sandbox/registry.h"
#include "core/settings.h"
#include "loop/workers.h"
#include "store/ports.h"

#include <semaphore.h>
#include <string.h>

static struct core_settings settings = {
    .has_port_names = true, .port_range_first = 40000, .port_range_last = 40000};
static const struct workers_settings one_thread = {
    .lane = {[WORKERS_SLOW] = {1, WORKERS_UNBOUNDED, "worker"}}};
static struct core *core;
static struct sandboxes *sandboxes;
static struct ports *ports;

static void open_ports(void)
{
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    core = rig_core();
    sandboxes = core->sandboxes;
    sandboxes->accounts = core->accounts;
    sandboxes->registry = registry_new();
    CHECK_OK(store_sandbox_put(core->store, &sandbox, &err), err);
    CHECK_OK(workers_new(&one_thread, &sandboxes->recorders, &err), err);
    CHECK_OK(workers_new(&one_thread, &sandboxes->remover, &err), err);
    CHECK_OK(ports_open(&settings, sandboxes, &ports, &err), err);
}

/* What was begun is done. */
static void finish_recorders(void)
{
    workers_free(take(sandboxes->recorders));
}

static void close_ports(void)
{
    finish_recorders();
    workers_free(take(sandboxes->remover));
    ports_free(take(ports));
    registry_free(take(sandboxes->registry));
}

static struct actor make_key(void)
{
    const struct key_request request = {.name = "a key"};
    char text[KEY_TEXT];
    autoclear(key_info) key = {0};
    struct actor actor = {0};
    struct error err = {0};

    CHECK_OK(key_create(core->accounts, &request, text, &key, &err), err);
    CHECK_OK(key_check(core->accounts, text, &actor, &err), err);
    return actor;
}

static void end_key(const struct actor *actor)
{
    struct error err = {0};

    CHECK_OK(key_revoke(core->accounts, actor->key_id, &err), err);
}

static void expose(const struct actor *actor, struct port_request request)
{
    struct port_info told;
    struct error err = {0};

    request.port = 3000;
    request.is_private = true;
    CHECK_OK(port_expose_new(ports, actor, "s", &request, &told, &err), err);
}

static bool is_token_over(void)
{
    autoptr(exposed) exposed = exposed_find(ports, "s", 3000);
    struct port_info told = {0};

    CHECK(exposed != NULL);
    if (exposed)
        exposed_tell(ports, exposed, &told);
    return told.token_expires_at != 0;
}

static void block(void *data)
{
    sem_t *until = data;

    (void)sem_wait(until);
}

TEST(a_token_ends_with_its_key_however_long_files_are_being_removed)
{
    sem_t until;

    open_ports();
    struct actor actor = make_key();
    (void)sem_init(&until, 0, 0);
    workers_run(sandboxes->remover, WORKERS_SLOW, block, &until);
    expose(&actor, (struct port_request){0});
    CHECK(!is_token_over());
    end_key(&actor);
    ports_look_at_key(ports, actor.key_id);
    finish_recorders();
    CHECK(is_token_over());
    (void)sem_post(&until);
    close_ports();
}

TEST(what_is_exposed_while_its_key_ends_has_no_token_that_opens)
{
    open_ports();
    struct actor actor = make_key();
    end_key(&actor);
    ports_look_at_key(ports, actor.key_id);
    finish_recorders(); // it was looked at before the port is there
    expose(&actor, (struct port_request){0});
    CHECK(is_token_over());
    close_ports();
}

TEST(the_end_of_one_key_is_not_recorded_for_the_token_of_another)
{
    struct error err = {0};
    autoports found = {0};

    open_ports();
    struct actor ended = make_key(), good = make_key();
    expose(&ended, (struct port_request){0});
    expose(&good, (struct port_request){0});
    CHECK_OK(store_port_list(core->store, &found, &err), err);
    CHECK_INT(found.count, 1);
    CHECK_OK(store_port_end_token(core->store, found.rows[0].id, ended.key_id, NOW, &err), err);
    CHECK_INT(fixture_number(core->store, "SELECT token_expires_at FROM exposed_ports"), 0);
    CHECK_OK(store_port_end_token(core->store, found.rows[0].id, good.key_id, NOW, &err), err);
    CHECK_INT(fixture_number(core->store, "SELECT token_expires_at FROM exposed_ports"), NOW);
    close_ports();
}

TEST(what_is_opened_by_another_secret_ends_with_no_key)
{
    open_ports();
    struct actor actor = make_key();
    expose(&actor, (struct port_request){.has_own_secret = true});
    end_key(&actor);
    ports_look_at_key(ports, actor.key_id);
    finish_recorders();
    CHECK(!is_token_over());
    close_ports();
}
