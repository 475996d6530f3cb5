/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/fronts.h"

#include "test.h"
#include "web/router.h"

#include <stdio.h>
#include <string.h>

#define MANY 100

static struct route made_routes[MANY][2];
static char patterns[MANY][16];
static unsigned opened, closed;

static int open_numbered(struct front *front, const struct config *config, struct error *err)
{
    unsigned number = opened++;

    (void)snprintf(patterns[number], sizeof patterns[number], "/front%u", number);
    made_routes[number][0] = (struct route){"GET", patterns[number]};
    *front = (struct front){.name = patterns[number] + 1, .routes = made_routes[number]};
    return 0;
}

static int open_badly(struct front *front, const struct config *config, struct error *err)
{
    return error_set(err, ERROR_INVALID, "no such luck");
}

static void count_closed(struct front *front)
{
    closed++;
}

TEST(there_is_room_for_any_number_of_fronts)
{
    static struct front_entry entries[MANY + 1];
    autoconfig config = {0};
    struct fronts *fronts = NULL;
    autoptr(router) router = NULL;
    struct error err = {0};
    size_t length;

    for (size_t i = 0; i < MANY; i++)
        entries[i] = (struct front_entry){.open = open_numbered, .close = count_closed};
    opened = closed = 0;
    CHECK_OK(fronts_open(entries, &config, &fronts, &err), err);
    const struct front *const *list = fronts_list(fronts);
    for (size_t i = 0; i < MANY; i++)
        CHECK_STR(list[i]->name, patterns[i] + 1);
    CHECK(!list[MANY]);
    CHECK_OK(router_new(&(struct router_settings){.fronts = list}, &router, &err), err);
    CHECK(strstr(router_openapi(router, NULL, &length), "\"/front99\""));
    fronts_free(fronts);
    CHECK_INT(closed, MANY);
}

TEST(what_was_opened_before_one_that_fails_is_closed)
{
    static const struct front_entry entries[] = {
        {.open = open_numbered, .close = count_closed},
        {.open = open_badly, .close = count_closed},
        {.open = open_numbered, .close = count_closed},
        {0},
    };
    autoconfig config = {0};
    struct fronts *fronts = NULL;
    struct error err = {0};

    opened = closed = 0;
    CHECK(fronts_open(entries, &config, &fronts, &err) < 0);
    CHECK_STR(err.text, "no such luck");
    CHECK(!fronts);
    CHECK_INT(opened, 1);
    CHECK_INT(closed, 2);
}

TEST(the_servers_fronts_tell_the_core_what_they_want)
{
    autoconfig config = {0};
    autoptr(fronts) fronts = NULL;
    struct core_settings settings = core_settings_default;
    struct error err = {0};

    config_init(&config);
    config.aionis.queue_at_once = 5;
    config.aionis.queue_length = 77;
    CHECK_OK(fronts_open(front_entries, &config, &fronts, &err), err);
    fronts_set_defaults(fronts, &settings);
    CHECK_INT(settings.queue_at_once, 5);
    CHECK_INT(settings.queue_length, 77);
}
