/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of coding agents; see mcp_install.h. */
#include "cli/mcp_install.h"

#include "base/auto.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/endpoint.h"
#include "cli/say.h"
#include "data/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)16 << 20)
#define NAME "burrow"
#define TABLE "[mcp_servers." NAME "]"

/* A coding agent: where it looks, and how it wants servers to be written. */
static const struct agent {
    const char *name;
    const char *home;                     // a variable that names where its own file is; NULL: none
    const char *home_file;                // below that
    const char *user_file, *project_file; // below the home directory; below the project
    const char *member;                   // of its JSON; NULL: it is TOML
    const char *variable;                 // how it names one of the environment
} agents[] = {
    {"claude", "CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json", ".mcp.json", "mcpServers",
     "${BURROW_API_KEY}"},
    {"cursor", NULL, NULL, ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers",
     "${env:BURROW_API_KEY}"},
    {"vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json", ".config/Code/User/mcp.json",
     ".vscode/mcp.json", "servers", "${env:BURROW_API_KEY}"},
    {"codex", "CODEX_HOME", "config.toml", ".codex/config.toml", ".codex/config.toml", NULL, NULL},
};

struct install {
    const struct agent *agent;
    const char *url;           // of the server; NULL: as burrow finds one
    const char *option, *said; // how that is said: "--url"; NULL: not at all
    char program[PATH_MAX];
    char path[PATH_MAX]; // of the file
};

static int find_agent(const char *name, const struct agent **out, struct burrow_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(agents); i++) {
        if (name && strcmp(agents[i].name, name) == 0) {
            *out = &agents[i];
            return 0;
        }
    }
    return say_fail(err, BURROW_INVALID, "%s%s%s: name claude, cursor, vscode or codex",
                    name ? "there is no configuration for '" : "for which client", name ? name : "",
                    name ? "'" : "");
}

static int find_places(struct install *install, bool is_project, struct burrow_error *err)
{
    const struct agent *agent = install->agent;
    const char *own = agent->home ? getenv(agent->home) : NULL, *home = getenv("HOME");
    const char *file = agent->user_file;
    ssize_t length = readlink("/proc/self/exe", install->program, sizeof install->program - 1);

    install->program[length > 0 ? length : 0] = '\0';
    if (own && *own == '/') {
        home = own;
        file = agent->home_file;
    }
    if (!is_project && (!home || *home != '/'))
        return say_fail(err, BURROW_LOCAL,
                        "HOME does not say where your files are; use --project for those of this "
                        "directory");
    (void)snprintf(install->path, sizeof install->path, "%s%s%s", is_project ? "" : home,
                   is_project ? "" : "/", is_project ? agent->project_file : file);
    return 0;
}

// ---- JSON ----

static void indent(struct buffer *out, unsigned depth)
{
    struct error ignored;

    (void)buffer_add_text(out, "\n", &ignored);
    for (unsigned i = 0; i < depth; i++)
        (void)buffer_add_text(out, "  ", &ignored);
}

static void put_string(struct buffer *out, const char *text, size_t length)
{
    struct json_writer json;
    struct error ignored;

    json_writer_init(&json, out);
    json_exact(&json, text, length);
    (void)json_writer_finish(&json, &ignored);
}

/* As people write it: a member a line. Numbers and strings as they were. */
static void put_pretty(struct buffer *out, const struct data_value *value, unsigned depth)
{
    bool is_map = value->kind == VALUE_MAP;
    struct json_writer json;
    struct error ignored;

    if ((!is_map && value->kind != VALUE_LIST) || !value->first) {
        json_writer_init(&json, out);
        json_value(&json, value);
        (void)json_writer_finish(&json, &ignored);
        return;
    }
    (void)buffer_add_text(out, is_map ? "{" : "[", &ignored);
    for (const struct data_value *child = value->first; child; child = child->next) {
        indent(out, depth + 1);
        if (is_map) {
            put_string(out, child->key, child->key_length);
            (void)buffer_add_text(out, ": ", &ignored);
        }
        put_pretty(out, child, depth + 1);
        if (child->next)
            (void)buffer_add_text(out, ",", &ignored);
    }
    indent(out, depth);
    (void)buffer_add_text(out, is_map ? "}" : "]", &ignored);
}

static void put_text(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_string(json, text);
}

/* What starts `burrow mcp`. */
static void put_entry(struct json_writer *json, const struct install *install)
{
    json_map_begin(json);
    put_text(json, "type", "stdio");
    put_text(json, "command", install->program);
    json_key(json, "args");
    json_list_begin(json);
    json_string(json, "mcp");
    if (install->option) {
        json_string(json, install->option);
        json_string(json, install->said);
    }
    json_list_end(json);
    if (install->url) {
        json_key(json, "env");
        json_map_begin(json);
        put_text(json, "BURROW_API_KEY", install->agent->variable);
        json_map_end(json);
    }
    json_map_end(json);
}

/* The file's own map of servers with ours in it, in place of what was called so before. */
static void put_servers(struct json_writer *json, const struct data_value *servers,
                        const struct install *install)
{
    bool is_there = false;

    json_map_begin(json);
    for (const struct data_value *v = servers ? servers->first : NULL; v; v = v->next) {
        bool is_own = strcmp(v->key, NAME) == 0;
        is_there |= is_own;
        json_key_exact(json, v->key, v->key_length);
        if (is_own)
            put_entry(json, install);
        else
            json_value(json, v);
    }
    if (!is_there) {
        json_key(json, NAME);
        put_entry(json, install);
    }
    json_map_end(json);
}

static void put_all(struct json_writer *json, const struct data_value *root,
                    const struct install *install)
{
    const char *member = install->agent->member;
    bool is_there = false;

    json_map_begin(json);
    for (const struct data_value *v = root ? root->first : NULL; v; v = v->next) {
        bool is_own = strcmp(v->key, member) == 0;
        is_there |= is_own;
        json_key_exact(json, v->key, v->key_length);
        if (is_own)
            put_servers(json, v, install);
        else
            json_value(json, v);
    }
    if (!is_there) {
        json_key(json, member);
        put_servers(json, NULL, install);
    }
    json_map_end(json);
}

static int fail_file(const struct install *install, const char *why, struct burrow_error *err)
{
    return say_fail(err, BURROW_INVALID,
                    "'%s' %s; nothing was written. Mend it, or add by hand what 'burrow mcp "
                    "install %s' prints",
                    install->path, why, install->agent->name);
}

static int make_json(const struct install *install, const struct buffer *before,
                     struct buffer *after, struct burrow_error *err)
{
    const struct json_limits limits = {.bytes = FILE_MAX_BYTES, .memory = 8 * FILE_MAX_BYTES};
    autoptr(data_document) document = NULL;
    autoptr(data_document) made = NULL;
    autobuffer text = {0};
    autofree char *why = NULL;
    struct json_writer json;
    struct error error = {0};

    if (before->length &&
        json_read("", before->data, before->length, &limits, &document, &error) < 0) {
        why = xasprintf("is not JSON (%s)", error.text);
        return fail_file(install, why, err);
    }
    const struct data_value *root = document ? document->root : NULL;
    const struct data_value *servers = value_get(root, install->agent->member);
    if ((root && root->kind != VALUE_MAP) || (servers && servers->kind != VALUE_MAP)) {
        why = xasprintf("is not as %s has it: %s must be an object", install->agent->name,
                        root->kind != VALUE_MAP ? "all of it" : install->agent->member);
        return fail_file(install, why, err);
    }
    json_writer_init(&json, &text);
    put_all(&json, root, install);
    if (json_writer_finish(&json, &error) < 0 ||
        json_read("", text.data, text.length, &limits, &made, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    put_pretty(after, made->root, 0);
    return buffer_add_text(after, "\n", &error) < 0 ? say_fail(err, BURROW_LOCAL, "%s", error.text)
                                                    : 0;
}

// ---- TOML ----

static void put_table(const struct install *install, struct buffer *out)
{
    struct error ignored;

    (void)buffer_add_text(out, TABLE "\ncommand = ", &ignored);
    put_string(out, install->program, strlen(install->program));
    (void)buffer_add_text(out, "\nargs = [\"mcp\"", &ignored);
    if (install->option) {
        (void)buffer_addf(out, &ignored, ", \"%s\", ", install->option);
        put_string(out, install->said, strlen(install->said));
    }
    (void)buffer_add_text(out, "]\n", &ignored);
    if (install->url)
        (void)buffer_add_text(out, "env_vars = [\"BURROW_API_KEY\"]\n", &ignored);
}

/* Behind a text of one line that begins at `at`, or at the end of its line. */
static const char *skip_string(const char *at, const char *end)
{
    const char quote = *at++;

    for (; at < end && *at != '\n' && *at != quote; at++)
        at += quote == '"' && *at == '\\' && at + 1 < end;
    return at < end && *at == quote ? at + 1 : at;
}

/* A name as it is meant, without blanks and quotation marks, up to `stop` outside of those, which is returned; NULL: there is none. A point
 * between marks divides nothing, and becomes a line break, which no name has. */
static const char *read_name(const char *at, const char *end, char stop, char *out, size_t size)
{
    size_t used = 0;

    while (at < end && *at != stop && *at != '#' && *at != '\n') {
        bool is_quoted = *at == '"' || *at == '\'';
        const char *next = is_quoted ? skip_string(at, end) : at + 1;
        for (; at < next; at++)
            if (!strchr(" \t\r\"'", *at) && used + 1 < size)
                out[used++] = *at == '.' && is_quoted ? '\n' : *at;
    }
    out[used] = '\0';
    return at < end && *at == stop ? at : NULL;
}

static bool is_ours(const char *name)
{
    static const char ours[] = "mcp_servers." NAME;
    size_t length = sizeof ours - 1;

    return strncmp(name, ours, length) == 0 && (!name[length] || name[length] == '.');
}

/* TOML as far as is needed to leave it alone: which table a line belongs to, and whether a text or a list of several lines is open there. */
struct toml {
    char table[256];
    char text;      // the quotation mark of that text; 0: none
    unsigned depth; // of brackets
    bool is_own;
};

static bool is_mark(const char *at, const char *end, char quote)
{
    return end - at >= 3 && at[0] == quote && at[1] == quote && at[2] == quote;
}

/* Behind the text of several lines, if it ends in this one; two more marks may belong to it. */
static const char *skip_text(struct toml *toml, const char *at, const char *end)
{
    for (; at < end && !is_mark(at, end, toml->text); at++)
        at += toml->text == '"' && *at == '\\' && at + 1 < end;
    if (at >= end)
        return end;
    at += 3;
    for (int i = 0; i < 2 && at < end && *at == toml->text; i++)
        at++;
    toml->text = 0;
    return at;
}

/* What this line opens and closes. */
static void read_values(struct toml *toml, const char *at, const char *end)
{
    while (at < end && (toml->text || *at != '#')) {
        if (toml->text) {
            at = skip_text(toml, at, end);
        } else if (is_mark(at, end, '"') || is_mark(at, end, '\'')) {
            toml->text = *at;
            at += 3;
        } else if (*at == '"' || *at == '\'') {
            at = skip_string(at, end);
        } else {
            toml->depth += *at == '[' || *at == '{';
            toml->depth -= (*at == ']' || *at == '}') && toml->depth;
            at++;
        }
    }
}

/* Our table is left out, to be written anew. What says the same in another form is not understood, and would be there twice. */
static int take_line(const struct install *install, struct toml *toml, const char *at,
                     const char *end, struct burrow_error *err)
{
    char key[128], name[sizeof toml->table + sizeof key];

    if (!toml->text && !toml->depth) {
        at += strspn(at, " \t");
        if (at < end && *at == '[') {
            at += 1 + (end - at > 1 && at[1] == '[');
            if (!read_name(at, end, ']', toml->table, sizeof toml->table))
                return fail_file(install, "is not TOML (a table's name has no ']')", err);
            toml->is_own = is_ours(toml->table);
            return 0;
        }
        const char *equals = read_name(at, end, '=', key, sizeof key);
        (void)snprintf(name, sizeof name, "%s%s%s", toml->table, *toml->table ? "." : "", key);
        if (equals && !toml->is_own && (is_ours(name) || strcmp(name, "mcp_servers") == 0))
            return fail_file(install, "has servers in a form that is not changed here", err);
        at = equals ? equals : at;
    }
    read_values(toml, at, end);
    return 0;
}

static int make_toml(const struct install *install, const struct buffer *before,
                     struct buffer *after, struct burrow_error *err)
{
    const char *at = before->data ? before->data : "", *end = at + before->length;
    struct toml toml = {0};
    struct error ignored;

    if (!utf8_is_valid(at, before->length) || memchr(at, 0, before->length))
        return fail_file(install, "is not TOML (it is not UTF-8)", err);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        size_t length = (size_t)(next - at);
        if (take_line(install, &toml, at, next, err) < 0)
            return -1;
        if (!toml.is_own)
            (void)buffer_add(after, at, length, &ignored);
        at = next;
    }
    if (toml.text || toml.depth)
        return fail_file(install, "is not TOML (a text or a list has no end)", err);
    if (after->length && after->data[after->length - 1] != '\n')
        (void)buffer_add_text(after, "\n", &ignored);
    if (after->length > 1 && after->data[after->length - 2] != '\n')
        (void)buffer_add_text(after, "\n", &ignored);
    put_table(install, after);
    return 0;
}

// ---- files ----

static int read_file(const struct install *install, struct buffer *out, struct burrow_error *err)
{
    autofd fd = open(install->path, O_RDONLY | O_CLOEXEC);
    char piece[65536];
    ssize_t got = 0;
    struct error full;

    out->maximum = FILE_MAX_BYTES;
    if (fd < 0)
        return errno == ENOENT ? 0 : say_fail_sys(err, "read '%s'", install->path);
    while ((got = read(fd, piece, sizeof piece)) > 0) {
        if (buffer_add(out, piece, (size_t)got, &full) < 0)
            return fail_file(install, "has more than 16 MiB", err);
    }
    return got < 0 ? say_fail_sys(err, "read '%s'", install->path) : 0;
}

static int make_parents(const char *path, struct burrow_error *err)
{
    autofree char *copy = xstrdup(path);

    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            return say_fail_sys(err, "make the directory '%s'", copy);
        *slash = '/';
    }
    return 0;
}

/* All or nothing, with the rights that the file had; a link stays one. */
static int write_file(const struct install *install, const struct buffer *text,
                      struct burrow_error *err)
{
    char real[PATH_MAX];
    struct stat before;
    const char *target = realpath(install->path, real) ? real : install->path;
    autofree char *fresh = xasprintf("%s.burrow-new", target);
    mode_t mode = stat(target, &before) == 0 ? before.st_mode & 07777 : 0600;

    if (make_parents(target, err) < 0)
        return -1;
    (void)unlink(fresh);
    autofd fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0 || write(fd, text->data, text->length) != (ssize_t)text->length ||
        fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(fresh, target) < 0) {
        int result = say_fail_sys(err, "write '%s'", target);
        (void)unlink(fresh);
        return result;
    }
    return 0;
}

/* The server that was named, to be named to the client too. */
static void choose_server(const struct invocation *invocation, struct install *install)
{
    const char *variable = getenv("BURROW_URL");

    install->url = invocation->url;
    if (!install->url && !invocation->context && !invocation->data_dir && variable && *variable)
        install->url = variable;
    install->option = install->url           ? "--url"
                      : invocation->context  ? "--context"
                      : invocation->data_dir ? "--data"
                                             : NULL;
    install->said = install->url          ? install->url
                    : invocation->context ? invocation->context
                    : install->option     ? endpoint_data_dir(invocation)
                                          : NULL;
}

int mcp_install(struct invocation *invocation, struct burrow_error *err)
{
    struct install install = {0};
    autobuffer before = {0};
    autobuffer after = {0};

    choose_server(invocation, &install);
    if (find_agent(invocation_operand(invocation, 1), &install.agent, err) < 0 ||
        find_places(&install, invocation->is_project, err) < 0)
        return -1;
    if (invocation->is_written && read_file(&install, &before, err) < 0)
        return -1;
    if ((install.agent->member ? make_json : make_toml)(&install, &before, &after, err) < 0)
        return -1;
    if (!invocation->is_written) {
        say_note("for '%s'; --write puts it there", install.path);
        (void)fwrite(after.data, 1, after.length, stdout);
        return 0;
    }
    if (write_file(&install, &after, err) < 0)
        return -1;
    const char *key = getenv("BURROW_API_KEY");
    if (install.url && (!key || !*key))
        say_note("its key is that of BURROW_API_KEY, which is not set here");
    say_done("wrote '%s'; start %s again to see its tools", install.path, install.agent->name);
    return 0;
}
