/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes as they are kept while they wait, and what tells their steps apart; see recipe_impl.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "core/core.h"
#include "core/recipe_impl.h"
#include "core/runtime/runtime.h"
#include "core/snapshot/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- a copy ----

static const char *keep(struct arena *arena, const char *text)
{
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

static const char *const *keep_list(struct arena *arena, const char *const *list)
{
    size_t count = 0;

    if (!list)
        return NULL;
    while (list[count])
        count++;
    const char **kept = arena_alloc(arena, (count + 1) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = keep(arena, list[i]);
    return kept;
}

static struct command keep_command(struct arena *arena, const struct command *command)
{
    return (struct command){.argv = keep_list(arena, command->argv),
                            .env = keep_list(arena, command->env),
                            .directory = keep(arena, command->directory),
                            .user = keep(arena, command->user)};
}

static struct recipe_step keep_step(struct arena *arena, const struct recipe_step *step)
{
    return (struct recipe_step){.label = keep(arena, step->label),
                                .command = keep_command(arena, &step->command),
                                .upload = keep(arena, step->upload),
                                .source = keep(arena, step->source),
                                .destination = keep(arena, step->destination),
                                .owner = keep(arena, step->owner),
                                .mode = keep(arena, step->mode),
                                .is_forced = step->is_forced,
                                .is_silent = step->is_silent};
}

void recipe_copy_into(struct recipe_build *build, const struct recipe *recipe,
                      const struct actor *actor)
{
    struct arena *arena = &build->arena;
    struct recipe_step *steps = arena_alloc(arena, (recipe->n_steps + 1) * sizeof *steps);

    for (size_t i = 0; i < recipe->n_steps; i++)
        steps[i] = keep_step(arena, &recipe->steps[i]);
    build->actor = *actor;
    build->actor.tenant = keep(arena, actor->tenant);
    build->actor.scope = keep(arena, actor->scope);
    build->actor.project = keep(arena, actor->project);
    build->actor.cancel = NULL;
    build->recipe = (struct recipe){
        .snapshot = keep(arena, recipe->snapshot),
        .runtime = keep(arena, recipe->runtime),
        .home = keep(arena, recipe->home),
        .user = keep(arena, recipe->user),
        .limits = recipe->limits,
        .steps = steps,
        .n_steps = recipe->n_steps,
        .service = {.start = keep_list(arena, recipe->service.start),
                    .ready = keep_list(arena, recipe->service.ready),
                    .around = keep_command(arena, &recipe->service.around)},
        .outcome = {.env = keep_list(arena, recipe->outcome.env),
                    .metadata = keep(arena, recipe->outcome.metadata),
                    .other_tags = keep_list(arena, recipe->outcome.other_tags)},
        .front_data = keep(arena, recipe->front_data),
    };
    build->n_stages = recipe->n_steps + (recipe->service.start != NULL);
    build->keys = arena_alloc(arena, (build->n_stages + 1) * sizeof *build->keys);
    build->uploads = arena_alloc(arena, (build->n_stages + 1) * sizeof *build->uploads);
}

// ---- keys ----

/* With its end, so that "ab" and "a", "b" differ; NULL and "" do too. */
static void add_text(struct digest *digest, const char *text)
{
    digest_add(digest, text ? "+" : "-", 1);
    digest_add(digest, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_list(struct digest *digest, const char *const *list)
{
    for (; list && *list; list++)
        add_text(digest, *list);
    add_text(digest, NULL);
}

static void add_command(struct digest *digest, const struct command *command)
{
    add_list(digest, command->argv);
    add_list(digest, command->env);
    add_text(digest, command->directory);
    add_text(digest, command->user);
}

/* `upload` is a digest of its files: what their sender calls them says nothing. */
static void add_step(struct digest *digest, const struct recipe_step *step, const char *upload)
{
    add_command(digest, &step->command);
    add_text(digest, step->upload);
    add_text(digest, upload);
    add_text(digest, step->source);
    add_text(digest, step->destination);
    add_text(digest, step->owner);
    add_text(digest, step->mode);
}

static void add_service(struct digest *digest, const struct recipe_service *service)
{
    add_list(digest, service->start);
    add_list(digest, service->ready);
    add_command(digest, &service->around);
}

/* What it starts from: a runtime that was built anew is another; of one that has no digest, as the host's, nobody knows for longer than now. */
static void add_base(struct recipe_build *build, struct digest *digest)
{
    const struct recipe *recipe = &build->recipe;
    char runtime[RUNTIME_DIGEST] = "";
    struct error ignored = {0};

    if (!recipe->snapshot &&
        runtime_digest(build->core->runtimes, recipe->runtime, runtime, &ignored) < 0)
        (void)snprintf(runtime, sizeof runtime, "%016" PRIx64, clock_monotonic_us());
    add_text(digest, recipe->snapshot);
    add_text(digest, recipe->runtime);
    add_text(digest, runtime);
    add_text(digest, recipe->home);
    add_text(digest, recipe->user);
}

static int digest_uploads(struct recipe_build *build, struct error *err)
{
    const struct recipe *recipe = &build->recipe;

    for (size_t i = 0; i < recipe->n_steps; i++) {
        if (recipe->steps[i].command.argv || recipe->steps[i].is_silent)
            continue;
        build->step = (int)i + 1;
        autofd archive = recipe_upload_open(build, &recipe->steps[i], build->uploads[i], err);
        if (archive < 0)
            return -1;
    }
    build->step = 0;
    return 0;
}

int recipe_make_keys(struct recipe_build *build, struct error *err)
{
    const struct recipe *recipe = &build->recipe;
    char before[DIGEST_TEXT] = "";

    if (digest_uploads(build, err) < 0)
        return -1;
    for (size_t i = 0; i < build->n_stages; i++) {
        struct digest digest = {0};
        digest_begin(&digest);
        add_text(&digest, before);
        if (i == 0)
            add_base(build, &digest);
        if (i < recipe->n_steps && !recipe->steps[i].is_silent)
            add_step(&digest, &recipe->steps[i], build->uploads[i]);
        else if (i == recipe->n_steps)
            add_service(&digest, &recipe->service);
        char key[DIGEST_TEXT];
        digest_end(&digest, key);
        if (i == 0 || i == recipe->n_steps || !recipe->steps[i].is_silent)
            memcpy(before, key, sizeof before); // else nothing is different behind it
        memcpy(build->keys[i], before, sizeof before);
    }
    return 0;
}

// ---- copying ----

/*
 * $1 where it was unpacked, $2 source, $3 destination, $4 owner, $5 mode. What was unpacked is all that the pattern stood for, so a pattern
 * without '/' means all of it. A directory's contents are copied, not itself.
 */
static const char script[] =
    "set -e; d=$3 o=$4\n"
    "own() { if [ ! -d \"$1\" ]; then mkdir -p \"$1\"; [ -z \"$o\" ] || chown \"$o\" \"$1\"; fi; "
    "}\n"
    "cd \"$1\"\n"
    "[ -z \"$o\" ] || chown -R -h \"$o\" .\n"
    "[ -z \"$5\" ] || chmod -R \"$5\" .\n"
    "case $2 in\n"
    "*'**'*) set -- \"$1\" . ;;\n"
    "*/*[*?[]*) f=$1 p=$2 IFS=; set -- \"$f\" $p ;;\n"
    "*[*?[]*) f=$1; set -- \"$f\"; for i in ./* ./.[!.]* ./..?*; do\n"
    "  if [ -e \"$i\" ] || [ -L \"$i\" ]; then set -- \"$@\" \"$i\"; fi; done ;;\n"
    "*) set -- \"$1\" \"./$2\" ;;\n"
    "esac\n"
    "f=$1; shift; n=$#\n"
    "for i in \"$@\"; do\n"
    "  if [ -d \"$i\" ] && [ ! -L \"$i\" ]; then own \"$d\"; cp -a \"$i/.\" \"$d/\"\n"
    "  elif [ ! -e \"$i\" ] && [ ! -L \"$i\" ]; then echo \"'$i' is not in the upload\" >&2; exit "
    "1\n"
    "  else\n"
    "    case $d in */) own \"$d\" ;; esac\n"
    "    if [ $n -gt 1 ]; then own \"$d\"; fi\n"
    "    if [ ! -d \"$d\" ]; then own \"${d%/*}/\"; fi\n"
    "    cp -a \"$i\" \"$d\"\n"
    "  fi\n"
    "done\n"
    "cd /; rm -rf \"$f\"\n";

const char *const *recipe_copy_command(struct arena *arena, const struct recipe_step *step)
{
    const char *const words[] = {"/bin/sh",
                                 "-c",
                                 script,
                                 "copy",
                                 RECIPE_UNPACKED,
                                 step->source,
                                 step->destination,
                                 step->owner ? step->owner : "",
                                 step->mode ? step->mode : "",
                                 NULL};

    return keep_list(arena, words);
}
