/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of templates as a recipe; see e2b_build.h. */
#include "front/e2b/e2b_build.h"

#include "core/core.h"
#include "core/runtime/runtime.h"
#include "core/snapshot/snapshot.h"
#include "data/json.h"
#include "front/e2b/e2b_template.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- what is kept of a template ----

static const char *text_of(struct call *call, const struct data_value *map, const char *name)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_STRING && *value->text
               ? call_print(call, "%s", value->text)
               : NULL;
}

static int64_t number_of(struct call *call, const struct data_value *map, const char *name)
{
    const char *text = text_of(call, map, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

void e2b_about_read(struct call *call, const char *metadata, struct e2b_about *out)
{
    autoptr(data_document) document = NULL;
    struct error ignored = {0};

    *out = (struct e2b_about){0};
    if (!metadata || json_read("", metadata, strlen(metadata), NULL, &document, &ignored) < 0)
        return;
    const struct data_value *map = document->root;
    out->cpu_count = number_of(call, map, "cpuCount");
    out->memory_mb = number_of(call, map, "memoryMB");
    out->user = text_of(call, map, "user");
    out->directory = text_of(call, map, "workdir");
    out->start = text_of(call, map, "startCmd");
    out->ready = text_of(call, map, "readyCmd");
    out->build = text_of(call, map, "buildID");
    out->tags = text_of(call, map, "tags");
}

static void write_text(struct json_writer *json, const char *name, const char *text)
{
    if (text)
        e2b_member_text(json, name, text);
}

static void write_number(struct json_writer *json, const char *name, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, number);
    write_text(json, name, number ? text : NULL);
}

const char *e2b_about_write(struct call *call, const struct e2b_about *about)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    write_number(&json, "cpuCount", about->cpu_count);
    write_number(&json, "memoryMB", about->memory_mb);
    write_text(&json, "user", about->user);
    write_text(&json, "workdir", about->directory);
    write_text(&json, "startCmd", about->start);
    write_text(&json, "readyCmd", about->ready);
    write_text(&json, "buildID", about->build);
    write_text(&json, "tags", about->tags);
    json_map_end(&json);
    return json_writer_finish(&json, &ignored) < 0 ? NULL : call_print(call, "%s", text.data);
}

struct limits e2b_limits(const struct e2b_about *about)
{
    return (struct limits){.cpu_millicores = about->cpu_count * 1000,
                           .memory_bytes = about->memory_mb << 20};
}

// ---- commands ----

static const char *const *shell(struct call *call, const char *command)
{
    const char **argv = call_alloc(call, 5 * sizeof *argv);

    argv[0] = "/bin/bash";
    argv[1] = "-l";
    argv[2] = "-c";
    argv[3] = command;
    return argv;
}

/* What a command of this user has around it; variables are beside the sandbox's. */
static struct command around(struct call *call, const char *user_name, const char *directory,
                             const char *const *env)
{
    struct e2b_user user;
    size_t count = 0;

    e2b_user_find(call, user_name, &user);
    while (env && env[count])
        count++;
    const char **all = call_alloc(call, (count + 5) * sizeof *all);
    all[0] = call_print(call, "HOME=%s", user.home);
    all[1] = call_print(call, "USER=%s", user.name);
    all[2] = call_print(call, "LOGNAME=%s", user.name);
    all[3] = "E2B_SANDBOX=true";
    for (size_t i = 0; i < count; i++)
        all[4 + i] = env[i];
    return (struct command){.env = all,
                            .directory = directory ? directory : user.home,
                            .user = user.box_user ? user.box_user : "0:0"};
}

struct recipe_service e2b_service(struct call *call, const struct e2b_about *about)
{
    return (struct recipe_service){
        .start = about->start ? shell(call, about->start) : NULL,
        .ready = about->start && about->ready ? shell(call, about->ready) : NULL,
        .around = around(call, about->user, about->directory, NULL),
    };
}

// ---- steps ----

#define AT(member) offsetof(struct e2b_step, member)
static const struct field step_fields[] = {
    {"type", FIELD_TEXT, AT(type), .is_needed = true, .maximum = 32},
    {"args", FIELD_TEXTS, AT(args), .is_nullable = true},
    {"filesHash", FIELD_TEXT, AT(files_hash), .is_nullable = true, .maximum = 128},
    {"force", FIELD_BOOL, AT(is_forced), .is_nullable = true},
    {0},
};
#undef AT
#define AT(member) offsetof(struct e2b_build, member)
const struct field e2b_build_fields[] = {
    {"fromImage", FIELD_TEXT, AT(image), .is_nullable = true, .maximum = 1000},
    {"fromTemplate", FIELD_TEXT, AT(template), .is_nullable = true, .maximum = 256},
    {"fromImageRegistry", FIELD_VALUE, AT(registry), .is_nullable = true},
    {"startCmd", FIELD_TEXT, AT(start), .is_nullable = true},
    {"readyCmd", FIELD_TEXT, AT(ready), .is_nullable = true},
    {"steps", FIELD_LIST, AT(steps), .is_nullable = true, .fields = step_fields,
     .item_size = sizeof(struct e2b_step), .maximum = RECIPE_STEPS_MOST},
    {"force", FIELD_BOOL, AT(is_forced), .is_nullable = true},
    {0},
};
#undef AT

/* What steps leave to those behind them. */
struct situation {
    struct call *call;
    const char *user, *directory; // NULL: the usual ones
    const char **env;             // "NAME=VALUE", NULL-terminated; new ones at the end
    size_t n_env;
};

static size_t count_args(const struct e2b_step *step)
{
    size_t count = 0;

    while (step->args && step->args[count])
        count++;
    return count;
}

static int need_args(const struct e2b_step *step, size_t least, size_t most, struct error *err)
{
    size_t count = count_args(step);

    if (count < least || count > most)
        return error_set(err, ERROR_INVALID, "%s: takes %zu to %zu arguments, not %zu", step->type,
                         least, most, count);
    return 0;
}

static int check_user(const char *name, struct error *err)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-:", name[i]))
            return error_set(err, ERROR_INVALID, "user '%.80s': is none", name);
    }
    return length > 0 && length <= 64 ? 0 : error_set(err, ERROR_INVALID, "user: is none");
}

static const char *arg(const struct e2b_step *step, size_t at)
{
    return at < count_args(step) && *step->args[at] ? step->args[at] : NULL;
}

/* Absolute; below the directory of the steps where it is not. A slash at its end stays. */
static int place_of(const struct situation *now, const char *path, const char **out,
                    struct error *err)
{
    struct e2b_user user;
    size_t length = strlen(path);

    e2b_user_find(now->call, now->user, &user);
    if (now->directory)
        user.home = now->directory;
    if (e2b_path(now->call, &user, path, out, err) < 0)
        return -1;
    bool is_directory = length == 0 || path[length - 1] == '/' || strcmp(path, ".") == 0;
    if (is_directory && strcmp(*out, "/") != 0)
        *out = call_print(now->call, "%s/", *out);
    return 0;
}

static int step_run(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                    struct error *err)
{
    const char *user = arg(step, 1) ? arg(step, 1) : now->user;

    if (need_args(step, 1, 2, err) < 0 || (user && check_user(user, err) < 0))
        return -1;
    out->command = around(now->call, user, now->directory, (const char *const *)now->env);
    out->command.argv = shell(now->call, step->args[0]);
    return 0;
}

/* "user", "user:group", "1000:1000": as chown has it; `user` need not be known by its name. */
static const char *owner_of(struct call *call, const char *name)
{
    size_t length = name ? strcspn(name, ":") : 0;
    const char *group = name && name[length] ? name + length + 1 : NULL;
    const char *user = name ? call_print(call, "%.*s", (int)length, name) : NULL;
    struct e2b_user found;

    if (user && strspn(user, "0123456789") == length)
        return group ? name : call_print(call, "%s:%s", user, user);
    e2b_user_find(call, user, &found);
    if (!group || (user && strcmp(group, user) == 0))
        return found.box_user && strchr(found.box_user, ':') ? found.box_user
               : found.box_user ? call_print(call, "%s:", found.box_user)
                                : "0:0";
    return name;
}

static int step_copy(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                     struct error *err)
{
    const char *owner = arg(step, 2) ? arg(step, 2) : now->user;
    const char *mode = arg(step, 3);

    if (need_args(step, 2, 4, err) < 0 || (owner && check_user(owner, err) < 0))
        return -1;
    if (mode && (strspn(mode, "01234567") != strlen(mode) || strlen(mode) > 5))
        return error_set(err, ERROR_INVALID, "mode '%.20s': must be octal digits", mode);
    if (!step->files_hash)
        return error_set(err, ERROR_INVALID, "filesHash: is needed for COPY");
    *out = (struct recipe_step){.upload = step->files_hash,
                                .source = step->args[0],
                                .owner = owner_of(now->call, owner),
                                .mode = mode};
    return place_of(now, step->args[1], &out->destination, err);
}

/* The directory is there from now on, and the user's where it was not. */
static int step_workdir(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                        struct error *err)
{
    const char *path;

    if (need_args(step, 1, 1, err) < 0 || place_of(now, step->args[0], &path, err) < 0)
        return -1;
    size_t length = strlen(path);
    if (length > 1 && path[length - 1] == '/')
        path = call_print(now->call, "%.*s", (int)length - 1, path);
    now->directory = path;
    const char **argv = call_alloc(now->call, 7 * sizeof *argv);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = "[ -d \"$1\" ] || { mkdir -p \"$1\" && chown \"$2\" \"$1\"; }";
    argv[3] = "workdir";
    argv[4] = path;
    argv[5] = owner_of(now->call, now->user);
    out->command = (struct command){.argv = argv, .directory = "/", .user = "0:0"};
    return 0;
}

static int step_user(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                     struct error *err)
{
    (void)out;
    if (need_args(step, 1, 1, err) < 0 || check_user(step->args[0], err) < 0)
        return -1;
    now->user = step->args[0];
    return 0;
}

static int set_variable(struct situation *now, const char *name, const char *value,
                        struct error *err)
{
    size_t length = strlen(name), at = 0;

    if (!length || strchr(name, '='))
        return error_set(err, ERROR_INVALID, "'%.80s' is no name of a variable", name);
    while (at < now->n_env &&
           (strncmp(now->env[at], name, length) != 0 || now->env[at][length] != '='))
        at++;
    if (at == now->n_env)
        now->n_env++;
    const char **env = call_alloc(now->call, (now->n_env + 1) * sizeof *env);
    for (size_t i = 0; i < now->n_env; i++)
        env[i] = i == at ? call_print(now->call, "%s=%s", name, value) : now->env[i];
    now->env = env;
    return 0;
}

static int step_env(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                    struct error *err)
{
    size_t count = count_args(step);

    (void)out;
    if (count == 0 || count % 2)
        return error_set(err, ERROR_INVALID, "ENV: takes names and values in pairs");
    if (count + 2 * now->n_env > 2000)
        return error_set(err, ERROR_INVALID, "ENV: at most 1000 variables");
    for (size_t i = 0; i < count; i += 2) {
        if (set_variable(now, step->args[i], step->args[i + 1], err) < 0)
            return -1;
    }
    return 0;
}

static const struct {
    const char *type;
    int (*read)(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                struct error *err);
    bool is_silent; // changes what follows, and no file
} kinds[] = {
    {"RUN", step_run, false},  {"COPY", step_copy, false}, {"WORKDIR", step_workdir, false},
    {"USER", step_user, true}, {"ENV", step_env, true},
};

static const char *label_of(struct call *call, const struct e2b_step *step)
{
    const char *label = call_print(call, "%.32s", step->type);

    for (size_t i = 0; step->args && step->args[i] && strlen(label) < 200; i++)
        label = call_print(call, "%s %.200s", label, step->args[i]);
    return label;
}

/* One that changes no file is a step all the same, so that numbers are those of the client: it does nothing. */
static int read_step(struct situation *now, const struct e2b_step *step, struct recipe_step *out,
                     struct error *err)
{
    size_t at = 0;

    while (at < sizeof kinds / sizeof kinds[0] && strcmp(kinds[at].type, step->type) != 0)
        at++;
    if (at == sizeof kinds / sizeof kinds[0])
        return error_set(err, ERROR_INVALID,
                         "type '%.32s': there are RUN, COPY, ENV, WORKDIR and USER", step->type);
    if (kinds[at].read(now, step, out, err) < 0)
        return -1;
    out->is_silent = kinds[at].is_silent;
    out->label = label_of(now->call, step);
    out->is_forced = step->is_forced;
    return 0;
}

// ---- what it starts from ----

/* Images of the vendor's that are a runtime here. */
static bool is_usual_image(const char *image)
{
    static const char *const usual[] = {"e2bdev/base", "e2bdev/code-interpreter", NULL};

    for (const char *const *at = usual; *at; at++) {
        size_t length = strlen(*at);
        if (strncmp(image, *at, length) == 0 && (!image[length] || image[length] == ':'))
            return true;
    }
    return false;
}

static int find_image(struct call *call, const struct e2b_build *build, struct recipe *out,
                      struct error *err)
{
    char *name = call_alloc(call, RUNTIME_REFERENCE_TEXT);

    if (build->registry)
        return error_set(err, ERROR_INVALID,
                         "fromImageRegistry: credentials are not taken from clients; an "
                         "administrator adds the image ('burrow runtime add NAME --from IMAGE')");
    if (is_usual_image(build->image)) {
        out->runtime = e2b_settings_of(call)->runtime;
        return 0;
    }
    if (runtime_of_image(call->core->runtimes, &call->actor, build->image, name, err) < 0)
        return error_wrap(err, "fromImage");
    out->runtime = name;
    return 0;
}

static int find_template(struct call *call, const struct e2b_build *build, struct situation *now,
                         struct e2b_about *about, struct recipe *out, struct error *err)
{
    struct e2b_template found;
    struct e2b_about base;

    if (e2b_template_find(call, build->template, &found, err) < 0)
        return error_wrap(err, "fromTemplate");
    out->runtime = found.runtime;
    out->snapshot = found.snapshot;
    if (!found.snapshot)
        return 0;
    e2b_about_read(call, found.metadata, &base);
    now->user = base.user;
    now->directory = base.directory;
    about->start = base.start;
    about->ready = base.ready;
    return 0;
}

static int find_base(struct call *call, const struct e2b_build *build, struct situation *now,
                     struct e2b_about *about, struct recipe *out, struct error *err)
{
    bool has_image = build->image && *build->image,
         has_template = build->template && *build->template;

    if (has_image == has_template)
        return error_set(err, ERROR_INVALID,
                         "give either fromImage or fromTemplate: what the template starts from");
    return has_image ? find_image(call, build, out, err)
                     : find_template(call, build, now, about, out, err);
}

int e2b_recipe(struct call *call, const struct e2b_build *build, struct e2b_about *about,
               struct recipe *out, struct error *err)
{
    const struct e2b_step *steps = build->steps.items;
    struct recipe_step *made = call_alloc(call, (build->steps.count + 1) * sizeof *made);
    struct situation now = {.call = call};

    *out = (struct recipe){.home = E2B_HOME, .user = "1000:1000", .limits = e2b_limits(about)};
    if (find_base(call, build, &now, about, out, err) < 0)
        return -1;
    for (size_t i = 0; i < build->steps.count; i++) {
        if (read_step(&now, &steps[i], &made[i], err) < 0)
            return error_wrap(err, "steps[%zu]", i);
        made[i].is_forced |= build->is_forced;
    }
    if (build->start && *build->start) {
        about->start = build->start;
        about->ready = NULL;
    }
    if (build->ready && *build->ready)
        about->ready = build->ready;
    about->user = now.user;
    about->directory = now.directory;
    out->steps = made;
    out->n_steps = build->steps.count;
    out->service = e2b_service(call, about);
    out->outcome.env = (const char *const *)now.env;
    out->front_data = e2b_kept_write(call, &(struct e2b_kept){.is_builder = true});
    return 0;
}
