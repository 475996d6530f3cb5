/* SPDX-License-Identifier: Apache-2.0 */
/* burrow doctor --attack: makes two sandboxes, runs the table of attacks on them and prints a table for people, or JSON. */
#include "cli/doctor.h"

#include "attack/attack_range.h"
#include "base/auto.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "cli/exit.h"
#include "data/json_writer.h"
#include "runtime/catalog.h"
#include "runtime/image.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WITHOUT_LIMITS "BURROW_TEST_ATTACK_WITHOUT_LIMITS" // tests: something is to be found open
#define MAX_BINDS 16
#define EXIT_OPEN 3 // something is open; EXIT_FAILED: something could not be tried

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* What is found, kept until all is over. */
struct findings {
    struct attack_result *results; // one each row of the table
    unsigned count[ATTACK_OPEN + 1];
    unsigned total;
};

struct look {
    const char *mark;
    const char *colour;
};

static const struct look looks[] = {
    [ATTACK_HELD] = {"✓", "\033[32m"},
    [ATTACK_NOT_APPLICABLE] = {"-", "\033[36m"},
    [ATTACK_UNTRIED] = {"?", "\033[33m"},
    [ATTACK_OPEN] = {"✗", "\033[31m"},
};

/* From here on these signals wait, so that whatever was made is ended in order. */
static void hold_signals(void)
{
    sigset_t held;
    (void)sigemptyset(&held);
    for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++) {
        struct sigaction now;
        if (sigaction(stop_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&held, stop_signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &held, NULL);
}

/* The signal that asks for an end; 0: none has come. */
static int stop_signal(void)
{
    sigset_t pending, blocked;
    (void)sigprocmask(SIG_BLOCK, NULL, &blocked);
    if (sigpending(&pending) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++) {
        if (sigismember(&pending, stop_signals[i]) == 1 &&
            sigismember(&blocked, stop_signals[i]) == 1)
            return stop_signals[i];
    }
    return 0;
}

static bool is_stopped(void)
{
    return stop_signal() != 0;
}

static int open_range(const struct doctor *doctor, struct engine *engine,
                      const struct runtime_image *image, struct range **out, struct error *err)
{
    struct box_bind binds[MAX_BINDS];
    struct box_spec spec = {
        .layers = (const char *const *)image->layers,
        .n_layers = image->n_layers,
        .binds = binds,
        .n_binds = image->n_binds,
        .hold_fd = image->lock_fd,
    };
    const char *without = getenv(WITHOUT_LIMITS);
    const struct range_options options = {
        .spec = &spec,
        .data_dir = doctor->data_dir,
        .is_stopped = is_stopped,
        .has_no_limits = without && *without,
    };
    if (image->n_binds > ARRAY_SIZE(binds))
        return error_set(err, ERROR_INVALID, "the runtime '%s' has too many binds",
                         doctor->runtime);
    for (size_t i = 0; i < image->n_binds; i++)
        binds[i] = (struct box_bind){image->binds[i].host, image->binds[i].box};
    return range_open(engine, &options, out, err);
}

static void show_progress(const struct attack *attack, unsigned number, unsigned total)
{
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K[%u/%u] %s", number, total, attack->name);
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

static void run_all(struct range *range, struct findings *findings)
{
    for (unsigned i = 0; i < findings->total; i++) {
        show_progress(&attack_table[i], i + 1, findings->total);
        attack_run(&attack_table[i], range, &findings->results[i]);
        findings->count[findings->results[i].verdict]++;
    }
    end_progress();
}

/* Makes everything, attacks, and leaves nothing behind. */
static int attack_all(const struct doctor *doctor, struct findings *findings, struct error *err)
{
    const struct engine_options options = {.data_dir = doctor->data_dir};
    autofree char *runtime = runtime_full_name(doctor->runtime);
    autoptr(runtime_image) image = NULL;
    autoptr(engine) engine = NULL;
    autoptr(range) range = NULL;

    if (engine_need_root(err) < 0 ||
        runtime_image_open(doctor->data_dir, runtime, &image, err) < 0 ||
        engine_open(&options, &engine, err) < 0)
        return -1;
    if (engine_has_leftovers(engine) && engine_sweep(engine, err) < 0)
        return -1;
    if (open_range(doctor, engine, image, &range, err) < 0)
        return error_wrap(err, "make sandboxes to attack");
    run_all(range, findings);
    range_free(take(range));
    if (is_stopped())
        return error_set(err, ERROR_CANCELLED, "stopped before all attacks were tried");
    return engine_has_leftovers(engine) ? engine_sweep(engine, err) : 0;
}

static void print_row(const struct attack *attack, const struct attack_result *result,
                      bool is_coloured)
{
    const struct look *look = &looks[result->verdict];
    printf("%s%s%s %-20s %s\n", is_coloured ? look->colour : "", look->mark,
           is_coloured ? "\033[0m" : "", attack->name, attack->tried);
    if (result->verdict == ATTACK_HELD)
        return;
    printf("    %s: %s\n",
           result->verdict == ATTACK_NOT_APPLICABLE ? "not applicable"
                                                    : attack_verdict_name(result->verdict),
           result->reason);
    if (result->verdict == ATTACK_OPEN)
        printf("    fix: %s\n", attack->remedy);
}

static void print_table(const struct findings *findings)
{
    bool is_coloured = doctor_has_colour();
    for (unsigned i = 0; i < findings->total; i++)
        print_row(&attack_table[i], &findings->results[i], is_coloured);
    printf("\n%u attacks: %u held", findings->total, findings->count[ATTACK_HELD]);
    if (findings->count[ATTACK_OPEN])
        printf(", %u open", findings->count[ATTACK_OPEN]);
    if (findings->count[ATTACK_NOT_APPLICABLE])
        printf(", %u not applicable", findings->count[ATTACK_NOT_APPLICABLE]);
    if (findings->count[ATTACK_UNTRIED])
        printf(", %u could not be tried", findings->count[ATTACK_UNTRIED]);
    putchar('\n');
}

static void write_row(struct json_writer *json, const struct attack *attack,
                      const struct attack_result *result)
{
    json_map_begin(json);
    json_key(json, "name");
    json_string(json, attack->name);
    json_key(json, "tried");
    json_string(json, attack->tried);
    json_key(json, "threat");
    json_string(json, attack->threat);
    json_key(json, "way");
    json_string(json, attack_way_name(attack->way));
    json_key(json, "verdict");
    json_string(json, attack_verdict_name(result->verdict));
    json_key(json, "reason");
    json_string(json, result->verdict == ATTACK_HELD ? NULL : result->reason);
    json_key(json, "remedy");
    json_string(json, result->verdict == ATTACK_OPEN ? attack->remedy : NULL);
    json_map_end(json);
}

/* How many have a verdict: all, or none where it could not begin. */
static unsigned count_tried(const struct findings *findings)
{
    unsigned tried = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(findings->count); i++)
        tried += findings->count[i];
    return tried;
}

/* The worst of all; nothing at all is untried. */
static enum attack_verdict worst(const struct findings *findings, bool has_failed)
{
    if (findings->count[ATTACK_OPEN] > 0)
        return ATTACK_OPEN;
    return has_failed || findings->count[ATTACK_UNTRIED] > 0 ? ATTACK_UNTRIED : ATTACK_HELD;
}

static int print_json(const struct findings *findings, const struct error *failure,
                      struct error *err)
{
    autobuffer text;
    struct json_writer json;

    buffer_init(&text, 0);
    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "verdict");
    json_string(&json, attack_verdict_name(worst(findings, failure != NULL)));
    json_key(&json, "error");
    json_string(&json, failure ? failure->text : NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(findings->count); i++) {
        json_key(&json, attack_verdict_name(i));
        json_natural(&json, findings->count[i]);
    }
    json_key(&json, "attacks");
    json_list_begin(&json);
    for (unsigned i = 0; count_tried(findings) > 0 && i < findings->total; i++)
        write_row(&json, &attack_table[i], &findings->results[i]);
    json_list_end(&json);
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    puts(text.data);
    return 0;
}

int doctor_attack(const struct doctor *doctor)
{
    struct findings findings = {0};
    struct error err = {0}, failure = {0};

    while (attack_table[findings.total].name)
        findings.total++;
    autofree struct attack_result *results = xcalloc(findings.total + 1, sizeof *results);
    findings.results = results;
    hold_signals();
    bool has_failed = attack_all(doctor, &findings, &failure) < 0;
    if (has_failed)
        exit_tell(&failure);
    if (doctor->is_json && print_json(&findings, has_failed ? &failure : NULL, &err) < 0) {
        exit_tell(&err);
        return EXIT_FAILED;
    }
    if (!doctor->is_json && count_tried(&findings) > 0 && !is_stopped())
        print_table(&findings);
    if (is_stopped())
        return EXIT_SIGNAL + stop_signal();
    if (findings.count[ATTACK_OPEN] > 0)
        return EXIT_OPEN;
    return worst(&findings, has_failed) == ATTACK_HELD ? EXIT_DONE : EXIT_FAILED;
}
