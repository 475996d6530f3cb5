/* SPDX-License-Identifier: Apache-2.0 */
/* The list of fronts; see fronts.h. A new one is a folder below src/front and a row here. */
#include "serve/fronts.h"

#include "base/mem.h"
#include "front/agentuity/agentuity.h"
#include "front/aionis/aionis.h"
#include "front/api/api.h"
#include "front/e2b/e2b.h"
#include "front/mcp/mcp.h"
#include "front/ops/ops.h"

static int open_agentuity(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    agentuity_front_init(front, &config->agentuity);
    return 0;
}

static int open_aionis(struct front *front, const struct config *config, struct error *err)
{
    return aionis_front_init(front, &config->aionis, err);
}

static int open_api(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    api_front_init(front, &config->api);
    return 0;
}

static int open_e2b(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    e2b_front_init(front, &config->e2b);
    return 0;
}

static int open_e2b_envd(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    e2b_envd_front_init(front, &config->e2b);
    return 0;
}

static int open_e2b_code(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    e2b_code_front_init(front, &config->e2b);
    return 0;
}

static int open_mcp(struct front *front, const struct config *config, struct error *err)
{
    (void)err;
    mcp_front_init(front, config->api.origins);
    return 0;
}

const struct front_entry front_entries[] = {
    {.open = open_agentuity, .close = agentuity_front_clear},
    {.fixed = &ops_front},
    {.open = open_api, .close = api_front_clear},
    {.open = open_aionis, .close = aionis_front_clear},
    {.open = open_mcp, .close = mcp_front_clear},
    {.open = open_e2b, .close = e2b_front_clear},
    {.open = open_e2b_code, .close = e2b_front_clear}, // before envd, which claims all of a sandbox
    {.open = open_e2b_envd, .close = e2b_front_clear},
    {0},
};

struct fronts {
    const struct front_entry *entries;
    size_t count; // opened so far
    struct front *made;
    const struct front **list;
};

static bool is_end(const struct front_entry *entry)
{
    return !entry->fixed && !entry->open;
}

static int open_entry(struct fronts *fronts, const struct config *config, struct error *err)
{
    const struct front_entry *entry = &fronts->entries[fronts->count];
    struct front *made = &fronts->made[fronts->count];

    fronts->list[fronts->count++] = entry->fixed ? entry->fixed : made;
    return entry->fixed ? 0 : entry->open(made, config, err);
}

int fronts_open(const struct front_entry *entries, const struct config *config, struct fronts **out,
                struct error *err)
{
    autoptr(fronts) fronts = xnew(struct fronts);
    size_t total = 0;

    while (!is_end(&entries[total]))
        total++;
    fronts->entries = entries;
    fronts->made = xcalloc(total + 1, sizeof *fronts->made);
    fronts->list = xcalloc(total + 1, sizeof *fronts->list);
    while (fronts->count < total) {
        if (open_entry(fronts, config, err) < 0)
            return -1;
    }
    *out = take(fronts);
    return 0;
}

void fronts_free(struct fronts *fronts)
{
    if (!fronts)
        return;
    for (size_t i = 0; i < fronts->count; i++) {
        if (fronts->entries[i].close)
            fronts->entries[i].close(&fronts->made[i]);
    }
    free(fronts->made);
    free(fronts->list);
    free(fronts);
}

const struct front *const *fronts_list(const struct fronts *fronts)
{
    return fronts->list;
}

void fronts_set_defaults(const struct fronts *fronts, struct core_settings *settings)
{
    struct front_defaults wanted = front_defaults_of(fronts->list);

    if (wanted.queue_at_once)
        settings->queue_at_once = wanted.queue_at_once;
    if (wanted.queue_length)
        settings->queue_length = wanted.queue_length;
}
