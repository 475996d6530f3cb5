/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of the front, joined from the tables of its files; see agentuity.h. */
#include "base/mem.h"
#include "front/agentuity/agentuity_impl.h"

#include <string.h>

const struct agentuity_settings agentuity_settings_default = {
    .region = "local",
    .region_description = "this server",
    .first_name = "burrow",
    .last_name = "user",
};

static const struct route *const tables[] = {
    agentuity_create_routes,     agentuity_sandbox_routes,  agentuity_execution_routes,
    agentuity_job_routes,        agentuity_event_routes,    agentuity_runtime_routes,
    agentuity_stats_routes,      agentuity_account_routes,  agentuity_ssh_key_routes,
    agentuity_stream_routes,     agentuity_file_routes,     agentuity_pause_routes,
    agentuity_checkpoint_routes, agentuity_snapshot_routes, agentuity_snapshot_build_routes,

};

static struct route *join_tables(void)
{
    struct route *routes = NULL;
    size_t total = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        size_t count = route_count(tables[i]);
        routes = xrealloc(routes, total + count + 1, sizeof *routes);
        memcpy(routes + total, tables[i], (count + 1) * sizeof *routes);
        total += count;
    }
    return routes;
}

void agentuity_front_init(struct front *front, const struct agentuity_settings *settings)
{
    *front = (struct front){
        .name = "agentuity",
        .title = "Agentuity sandboxes, streams and files",
        .routes = join_tables(),
        .on_error = envelope_error,
        .failure = answers_failure,
        .sandbox_prefix = SANDBOX_PREFIX,
        .settings = (void *)(uintptr_t)settings, // handlers only read it
    };
}

void agentuity_front_clear(struct front *front)
{
    free((void *)(uintptr_t)front->routes);
    *front = (struct front){0};
}
