/* SPDX-License-Identifier: Apache-2.0 */
/* Users and paths of sandboxes as E2B's clients name them; see e2b_impl.h. */
#include "base/base64.h"
#include "core/seal.h"
#include "front/e2b/e2b_impl.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* By numbers, so that a runtime need not know the name. */
static const struct e2b_user known[] = {
    {"user", E2B_HOME, "1000:1000"},
    {"root", "/root", NULL},
};

void e2b_user_find(struct call *call, const char *name, struct e2b_user *out)
{
    *out = known[0];
    if (!name || !*name)
        return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i];
            return;
        }
    }
    *out = (struct e2b_user){.name = call_print(call, "%s", name),
                             .home = call_print(call, "/home/%s", name)};
    ((struct e2b_user *)out)->box_user = out->name;
}

static int refuse(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "user", "the user in 'Authorization' is none");
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
            return false;
    }
    return length > 0 && length <= 32;
}

int e2b_user_name(struct call *call, const char **out, struct error *err)
{
    static const char scheme[] = "Basic ";
    const char *text = call_header(call, "Authorization");
    size_t bad;

    *out = NULL;
    if (!text || strncasecmp(text, scheme, sizeof scheme - 1) != 0)
        return 0;
    text += sizeof scheme - 1;
    size_t length = strlen(text);
    if (length > 256)
        return refuse(err);
    char *name = call_alloc(call, base64_room(length) + 1);
    ssize_t used = base64_decode(text, length, name, &bad);
    if (used < 0)
        return refuse(err);
    name[used] = '\0';
    char *colon = strchr(name, ':');
    if (colon)
        *colon = '\0';
    if (*name && !is_name(name, strlen(name)))
        return refuse(err);
    *out = *name ? name : NULL;
    return 0;
}

void envd_user(struct call *call, const char *sandbox_id, const char *name, struct e2b_user *out)
{
    autofree char *text = seal_front_data(call->core, sandbox_id);
    struct e2b_kept kept;

    e2b_kept_parse(call, text, &kept);
    e2b_user_find(call, name && *name ? name : kept.user, out);
    out->directory = kept.directory;
}

const char *e2b_box_user(const struct e2b_user *user)
{
    return user->box_user ? user->box_user : "0:0";
}

static bool has_variable(const char *const *env, const char *name)
{
    size_t length = strlen(name);

    for (; env && *env; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return true;
    }
    return false;
}

const char *const *e2b_user_env(struct call *call, const struct sandbox_info *info,
                                const struct e2b_user *user, const struct field_list *envs)
{
    const struct text_pair usual[] = {{"HOME", user->home},
                                      {"USER", user->name},
                                      {"LOGNAME", user->name},
                                      {"E2B_SANDBOX", "true"}};
    const struct text_pair *pairs = envs->items;
    const size_t n_usual = sizeof usual / sizeof usual[0];
    const char **env = call_alloc(call, (n_usual + envs->count + 1) * sizeof *env);
    size_t count = 0;

    for (size_t i = 0; i < n_usual; i++) {
        if (!has_variable(info->command.env, usual[i].name))
            env[count++] = call_print(call, "%s=%s", usual[i].name, usual[i].value);
    }
    for (size_t i = 0; i < envs->count; i++)
        env[count++] = call_print(call, "%s=%s", pairs[i].name, pairs[i].value);
    return env;
}

/* Without "//", "." and "..", in place. */
static void clean(char *path)
{
    char *to = path;

    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t length = strcspn(at, "/");
        if (length == 2 && strncmp(at, "..", 2) == 0) {
            while (to > path && *--to != '/')
                ;
        } else if (length && !(length == 1 && *at == '.')) {
            *to++ = '/';
            memmove(to, at, length);
            to += length;
        }
        at += length;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

int e2b_path(struct call *call, const struct e2b_user *user, const char *path, const char **out,
             struct error *err)
{
    const char *from = path ? path : "";
    char *made;

    if (from[0] == '~' && from[1] && from[1] != '/')
        return error_refuse(err, ERROR_INVALID, "file",
                            "path '%.80s': the home of another user has to be named in full", from);
    if (from[0] == '/')
        made = call_print(call, "/%s", from);
    else if (!from[0] && user->directory)
        made = call_print(call, "/%s", user->directory);
    else
        made = call_print(call, "%s/%s", user->home, from[0] == '~' ? from + 1 : from);
    clean(made);
    *out = made;
    return 0;
}
