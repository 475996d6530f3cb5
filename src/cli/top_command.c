/* SPDX-License-Identifier: Apache-2.0 */
/* burrow top: what living sandboxes use, between one look and the next. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/endpoint.h"
#include "cli/invocation.h"
#include "cli/say.h"
#include "cli/sandbox_options.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_MS 2000
#define MOST 50 // sandboxes: the newest, the busiest first; each is asked for by itself

struct seen {
    char id[64], name[64], state[24];
    uint64_t at_ms;
    int64_t cpu_ms, egress;              // counts that grow
    int64_t memory, disk;                // now
    int64_t cpu_millicores, egress_rate; // between the look before and this one
    int64_t memory_limit, disk_limit;
};

struct look {
    struct seen items[MOST];
    size_t count;
};

static void copy_text(char *to, size_t size, const struct burrow_value *value)
{
    const char *text = burrow_text(value);
    autofree char *clean = say_clean(text ? text : "");

    (void)snprintf(to, size, "%s", clean);
}

static const struct seen *find(const struct look *look, const char *id)
{
    for (size_t i = 0; i < look->count; i++) {
        if (strcmp(look->items[i].id, id) == 0)
            return &look->items[i];
    }
    return NULL;
}

static int64_t rate(int64_t now, int64_t before, int64_t ms, int64_t scale)
{
    return ms > 0 && now > before ? (now - before) * scale / ms : 0;
}

/* `metrics` is what it uses now. */
static void measure(struct look *look, const struct look *before,
                    const struct burrow_value *sandbox, const struct burrow_value *metrics)
{
    struct seen *seen = &look->items[look->count++];

    *seen = (struct seen){
        .at_ms = clock_monotonic_ms(),
        .cpu_ms = burrow_integer(burrow_get(metrics, "cpuMs"), 0),
        .egress = burrow_integer(burrow_get(metrics, "egressBytes"), 0),
        .memory = burrow_integer(burrow_get(metrics, "memoryBytes"), 0),
        .disk = burrow_integer(burrow_get(metrics, "diskBytes"), 0),
        .memory_limit = burrow_integer(burrow_get(sandbox, "limits.memoryBytes"), 0),
        .disk_limit = burrow_integer(burrow_get(sandbox, "limits.diskBytes"), 0),
    };
    copy_text(seen->id, sizeof seen->id, burrow_get(sandbox, "id"));
    copy_text(seen->name, sizeof seen->name, burrow_get(sandbox, "name"));
    copy_text(seen->state, sizeof seen->state, burrow_get(sandbox, "state"));
    const struct seen *old = find(before, seen->id);
    if (!old)
        return;
    int64_t ms = (int64_t)(seen->at_ms - old->at_ms);
    seen->cpu_millicores = rate(seen->cpu_ms, old->cpu_ms, ms, 1000);
    seen->egress_rate = rate(seen->egress, old->egress, ms, 1000);
}

static int compare(const void *a, const void *b)
{
    const struct seen *one = a, *other = b;

    if (one->cpu_millicores != other->cpu_millicores)
        return one->cpu_millicores < other->cpu_millicores ? 1 : -1;
    return strcmp(one->id, other->id);
}

static int look_at(struct invocation *invocation, const struct look *before, struct look *look,
                   struct burrow_error *err)
{
    autoanswer answer = NULL;

    look->count = 0;
    if (burrow_ask(invocation->client, "GET", "/sandboxes?limit=50&state=" LIVING_STATES, NULL,
                   &answer, err) < 0)
        return -1;
    const struct burrow_value *items = burrow_get(burrow_answer_value(answer), "items");
    for (const struct burrow_value *one = burrow_first(items); one && look->count < MOST;
         one = burrow_next(one)) {
        autofree char *path =
            burrow_path("/sandboxes/%s/metrics", burrow_text(burrow_get(one, "id")), NULL);
        autoanswer metrics = NULL;
        struct burrow_error ignored = {0};
        if (burrow_ask(invocation->client, "GET", path, NULL, &metrics, &ignored) == 0)
            measure(look, before, one, burrow_answer_value(metrics)); // else it has ended meanwhile
    }
    qsort(look->items, look->count, sizeof look->items[0], compare);
    return 0;
}

static void add_size(struct table *table, int64_t bytes, const char *behind)
{
    char size[SAY_TEXT], text[SAY_TEXT + 8];

    (void)snprintf(text, sizeof text, "%s%s", say_size(bytes, size), behind);
    table_add(table, text);
}

static void print(const struct look *look)
{
    static const char *const heads[] = {"ID",     "NAME",  "STATE",        ">CPU", ">MEMORY",
                                        ">LIMIT", ">DISK", ">NETWORK OUT", NULL};
    struct table table;
    char text[SAY_TEXT];

    table_init(&table, heads);
    for (size_t i = 0; i < look->count; i++) {
        const struct seen *seen = &look->items[i];
        table_add(&table, seen->id);
        table_add(&table, seen->name);
        table_add_colour(&table, seen->state, say_state_colour(seen->state));
        (void)snprintf(text, sizeof text, "%lld.%lld%%", (long long)seen->cpu_millicores / 10,
                       (long long)seen->cpu_millicores % 10);
        table_add(&table, text);
        add_size(&table, seen->memory, "");
        add_size(&table, seen->memory_limit, "");
        add_size(&table, seen->disk, "");
        add_size(&table, seen->egress_rate, "/s");
    }
    table_print(&table, stdout);
    table_clear(&table);
    (void)fflush(stdout);
}

static int print_json(const struct look *look, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (size_t i = 0; i < look->count; i++) {
        const struct seen *seen = &look->items[i];
        json_map_begin(&json);
        say_put_text(&json, "id", seen->id);
        say_put_text(&json, "name", *seen->name ? seen->name : NULL);
        say_put_text(&json, "state", seen->state);
        json_key(&json, "cpuMillicores");
        json_integer(&json, seen->cpu_millicores);
        json_key(&json, "memoryBytes");
        json_integer(&json, seen->memory);
        json_key(&json, "memoryLimitBytes");
        json_integer(&json, seen->memory_limit);
        json_key(&json, "diskBytes");
        json_integer(&json, seen->disk);
        json_key(&json, "diskLimitBytes");
        json_integer(&json, seen->disk_limit);
        json_key(&json, "egressBytesPerSecond");
        json_integer(&json, seen->egress_rate);
        json_map_end(&json);
    }
    json_list_end(&json);
    return say_written(&json, &text, err);
}

/* False: somebody has pressed Ctrl-C. */
static bool wait_a_moment(void)
{
    struct pollfd fd = {.fd = endpoint_cancel_fd(), .events = POLLIN};

    return poll(&fd, 1, EVERY_MS) == 0;
}

static int top(struct invocation *invocation, struct burrow_error *err)
{
    bool is_live = isatty(STDOUT_FILENO) && !invocation->is_json;
    struct look *looks = xcalloc(2, sizeof *looks);
    autofree void *freed = looks;
    unsigned round = 0;

    (void)freed;
    if (look_at(invocation, &looks[1], &looks[0], err) < 0)
        return -1;
    while (wait_a_moment()) {
        struct look *before = &looks[round % 2], *now = &looks[(round + 1) % 2];
        if (look_at(invocation, before, now, err) < 0)
            return -1;
        round++;
        if (invocation->is_json)
            return print_json(now, err);
        if (is_live)
            (void)fputs("\033[H\033[2J", stdout);
        print(now);
        if (!is_live)
            return 0;
    }
    return 0;
}

static const char *const examples[] = {"$ burrow top", "$ burrow top --json", NULL};

const struct cli_command top_commands[] = {
    {"", "top", "", "show what sandboxes use now",
     "On a terminal the table is drawn anew every two seconds until Ctrl-C; else it is printed "
     "once. Processors and network are those of the time between two looks.",
     NULL, examples, COMMAND_SERVER, top},
    {0},
};
