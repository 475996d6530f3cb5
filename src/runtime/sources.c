/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Debian's entries among apt's sources; see sources.h. */
#include "runtime/sources.h"

#include "base/fd.h"
#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (1 << 20)

struct entry {
    char *uri, *suite;
    char *signed_by;    // a path, or NULL
    bool has_other_key; // signed by something that is not a path: a fingerprint, a key in the text
    bool is_trusted;
    bool has_main;
};

struct entries {
    struct entry *items;
    size_t count;
};

static void entries_clear(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].uri);
        free(entries->items[i].suite);
        free(entries->items[i].signed_by);
    }
    free(entries->items);
}

// ---- reading ----

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; at && *at; at += strcspn(at, " \t")) {
        at += strspn(at, " \t");
        if (strcspn(at, " \t") == length && strncmp(at, word, length) == 0)
            return true;
    }
    return false;
}

static const char *only_path(const char *signed_by)
{
    return signed_by && signed_by[0] == '/' && !strpbrk(signed_by, " \t,]") ? signed_by : NULL;
}

// One entry for each address and suite, both lists of words.
static void add_entries(struct entries *to, const char *uris, const char *suites,
                        const char *components, const char *signed_by, bool is_trusted)
{
    for (const char *uri = uris + strspn(uris, " \t"); *uri;) {
        size_t uri_length = strcspn(uri, " \t");
        for (const char *suite = suites + strspn(suites, " \t"); *suite;) {
            size_t suite_length = strcspn(suite, " \t");
            size_t trimmed = uri_length;
            while (trimmed > 0 && uri[trimmed - 1] == '/')
                trimmed--;
            to->items = xrealloc(to->items, to->count + 1, sizeof *to->items);
            to->items[to->count++] = (struct entry){
                .uri = xstrndup(uri, trimmed),
                .suite = xstrndup(suite, suite_length),
                .signed_by = only_path(signed_by) ? xstrdup(signed_by) : NULL,
                .has_other_key = signed_by && !only_path(signed_by),
                .is_trusted = is_trusted,
                .has_main = has_word(components, "main"),
            };
            suite += suite_length;
            suite += strspn(suite, " \t");
        }
        uri += uri_length;
        uri += strspn(uri, " \t");
    }
}

// deb [signed-by=/path trusted=yes] uri suite component...
static void read_one_line(struct entries *to, char *line)
{
    char *rest = NULL, *signed_by = NULL;
    bool is_trusted = false;

    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t");
    if (strncmp(line, "deb", 3) != 0 || !isspace((unsigned char)line[3]))
        return;
    line += 3;
    line += strspn(line, " \t");
    if (*line == '[') {
        char *close = strchr(line, ']');
        if (!close)
            return;
        *close = '\0';
        for (char *word = strtok_r(line + 1, " \t", &rest); word;
             word = strtok_r(NULL, " \t", &rest)) {
            if (strncmp(word, "signed-by=", 10) == 0)
                signed_by = word + 10;
            if (strcmp(word, "trusted=yes") == 0)
                is_trusted = true;
        }
        line = close + 1;
    }
    char *uri = strtok_r(line, " \t", &rest), *suite = strtok_r(NULL, " \t", &rest);
    if (uri && suite)
        add_entries(to, uri, suite, rest ? rest : "", signed_by, is_trusted);
}

struct stanza {
    char *types, *uris, *suites, *components, *signed_by, *trusted, *enabled;
};

static char **find_field(struct stanza *stanza, const char *name)
{
    const struct {
        const char *name;
        char **field;
    } fields[] = {
        {"types", &stanza->types},         {"uris", &stanza->uris},
        {"suites", &stanza->suites},       {"components", &stanza->components},
        {"signed-by", &stanza->signed_by}, {"trusted", &stanza->trusted},
        {"enabled", &stanza->enabled},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strcasecmp(name, fields[i].name) == 0)
            return fields[i].field;
    return NULL;
}

static void end_stanza(struct entries *to, struct stanza *stanza)
{
    bool is_off = stanza->enabled && strcasecmp(stanza->enabled, "no") == 0;

    if (!is_off && has_word(stanza->types, "deb") && stanza->uris && stanza->suites)
        add_entries(to, stanza->uris, stanza->suites, stanza->components ? stanza->components : "",
                    stanza->signed_by, stanza->trusted && strcasecmp(stanza->trusted, "yes") == 0);
    free(stanza->types);
    free(stanza->uris);
    free(stanza->suites);
    free(stanza->components);
    free(stanza->signed_by);
    free(stanza->trusted);
    free(stanza->enabled);
    *stanza = (struct stanza){0};
}

static void read_deb822(struct entries *to, char *text)
{
    struct stanza stanza = {0};
    char **field = NULL;

    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t length = strlen(line);
        while (length > 0 && isspace((unsigned char)line[length - 1]))
            line[--length] = '\0';
        if (*line == '#')
            continue;
        if (length == 0) {
            end_stanza(to, &stanza);
            field = NULL;
        } else if (isspace((unsigned char)*line)) {
            if (field) {
                char *joined = xasprintf("%s %s", *field, line + strspn(line, " \t"));
                free(*field);
                *field = joined;
            }
        } else {
            char *colon = strchr(line, ':');
            if (colon)
                *colon = '\0';
            field = colon ? find_field(&stanza, line) : NULL;
            if (field) {
                free(*field);
                *field = xstrdup(colon + 1 + strspn(colon + 1, " \t"));
            }
        }
    }
    end_stanza(to, &stanza);
}

static int read_file(struct entries *to, const char *path, struct error *err)
{
    autobuffer text = {.maximum = FILE_MAX};
    size_t length = strlen(path);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "open '%s'", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "read '%s'", path);
    if (text.length == 0)
        return 0;
    if (length > 8 && strcmp(path + length - 8, ".sources") == 0) {
        read_deb822(to, text.data);
        return 0;
    }
    char *rest = NULL;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_one_line(to, line);
    return 0;
}

static int is_sources_file(const struct dirent *file)
{
    const char *dot = strrchr(file->d_name, '.');
    return dot && (strcmp(dot, ".list") == 0 || strcmp(dot, ".sources") == 0);
}

static int read_machine(const char *apt_dir, struct entries *to, struct error *err)
{
    autofree char *list = xasprintf("%s/sources.list", apt_dir);
    autofree char *parts = xasprintf("%s/sources.list.d", apt_dir);
    struct dirent **files = NULL;
    int result = read_file(to, list, err);
    int count = scandir(parts, &files, is_sources_file, alphasort);

    for (int i = 0; i < count; i++) {
        autofree char *path = xasprintf("%s/%s", parts, files[i]->d_name);
        if (result == 0)
            result = read_file(to, path, err);
        free(files[i]);
    }
    free(files);
    return result;
}

// ---- whose they are ----

// What apt's own copy of the Release file says: 1 Debian, 0 somebody else, -1 there is none.
static int known_origin(const char *lists_dir, const struct entry *entry)
{
    const char *host = strstr(entry->uri, "://");
    autofree char *name = xasprintf("%s_dists_%s_", host ? host + 3 : entry->uri, entry->suite);
    char head[1024];

    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    for (int i = 0; i < 2; i++) {
        autofree char *path = xasprintf("%s/%s%s", lists_dir, name, i ? "Release" : "InRelease");
        autofd fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t got = fd_read_full(fd, head, sizeof head - 1);
        head[got > 0 ? got : 0] = '\0';
        const char *origin = strstr(head, "Origin: ");
        return origin && strncmp(origin, "Origin: Debian\n", 15) == 0;
    }
    return -1;
}

static bool is_debians(const char *lists_dir, const struct entry *entry)
{
    int origin = known_origin(lists_dir, entry);
    const char *key = entry->signed_by ? strrchr(entry->signed_by, '/') + 1 : NULL;

    if (!entry->has_main || strncmp(entry->uri, "http", 4) != 0)
        return false;
    if (origin >= 0)
        return origin;
    return key ? strncmp(key, "debian-archive-", 15) == 0 : !entry->has_other_key;
}

// "-updates" of "bookworm-updates", "" of "bookworm"; NULL for suites we do not take (backports …).
static const char *known_part(const char *suite)
{
    static const char *const parts[] = {"-updates", "-security", ""};
    static const char *const names[] = {"bullseye", "bookworm", "trixie",  "forky",
                                        "sid",      "stable",   "testing", "oldstable"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(suite, names[i], strlen(names[i])) == 0)
            for (size_t j = 0; j < ARRAY_SIZE(parts); j++)
                if (strcmp(suite + strlen(names[i]), parts[j]) == 0)
                    return parts[j];
    return NULL;
}

static const char *part_of(const char *suite, const char *wanted)
{
    size_t length = strlen(wanted);
    const char *rest = suite + length;

    if (strncmp(suite, wanted, length) != 0)
        return NULL;
    return *rest == '\0' || strcmp(rest, "-updates") == 0 || strcmp(rest, "-security") == 0 ? rest
                                                                                            : NULL;
}

// ---- writing ----

static int add_line(struct buffer *out, const char *options, const char *uri, const char *suite,
                    const char *part, const char *const *components, struct error *err)
{
    autobuffer line = {0};

    if (buffer_addf(&line, err, "deb %s%s %s%s", options, uri, suite, part) < 0)
        return -1;
    for (; *components; components++)
        if (buffer_addf(&line, err, " %s", *components) < 0)
            return -1;
    if (buffer_add_text(&line, "\n", err) < 0)
        return -1;
    if (out->data && strstr(out->data, line.data))
        return 0; // the same entry twice
    return buffer_add_text(out, line.data, err);
}

static int add_matching(const struct entries *entries, const char *lists_dir, const char *suite,
                        const char *const *components, bool any_suite, struct buffer *out,
                        struct error *err)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->items[i];
        const char *part = any_suite ? known_part(entry->suite) : part_of(entry->suite, suite);
        char options[600] = "";

        if (!part || !is_debians(lists_dir, entry))
            continue;
        if (entry->is_trusted)
            (void)snprintf(options, sizeof options, "[trusted=yes] ");
        else if (entry->signed_by)
            (void)snprintf(options, sizeof options, "[signed-by=%.500s] ", entry->signed_by);
        if (add_line(out, options, entry->uri, suite, part, components, err) < 0)
            return -1;
    }
    return 0;
}

static bool has_main_suite(const struct buffer *out, const char *suite)
{
    autofree char *wanted = xasprintf(" %s ", suite);
    return out->length && strstr(out->data, wanted);
}

int sources_of_machine(const struct sources_place *place, const char *suite,
                       const char *const *components, struct buffer *out, struct error *err)
{
    const char *apt_dir = place->apt_dir ? place->apt_dir : "/etc/apt";
    const char *lists_dir = place->lists_dir ? place->lists_dir : "/var/lib/apt/lists";
    __attribute__((cleanup(entries_clear))) struct entries entries = {0};

    if (read_machine(apt_dir, &entries, err) < 0 ||
        add_matching(&entries, lists_dir, suite, components, false, out, err) < 0)
        return -1;
    if (!has_main_suite(out, suite) &&
        add_matching(&entries, lists_dir, suite, components, true, out, err) < 0)
        return -1;
    if (!has_main_suite(out, suite))
        return error_set(err, ERROR_UNAVAILABLE,
                         "this machine's apt sources name no Debian mirror; give one with --mirror "
                         "or BURROW_DEBIAN_MIRROR, or use the runtime host:latest");
    return 0;
}

static int check_url(const char *url, size_t length, struct error *err)
{
    bool is_http = strncmp(url, "http://", 7) == 0 && length > 7;
    bool is_https = strncmp(url, "https://", 8) == 0 && length > 8;

    if ((is_http || is_https) && strcspn(url, " \t\n[]'\"") >= length)
        return 0;
    return error_set(
        err, ERROR_INVALID,
        "mirror '%.*s' is not an address; write http://host/debian, and after a comma that "
        "of the security archive if there is one",
        (int)length, url);
}

int sources_of_mirror(const struct sources_place *place, const char *mirror, const char *suite,
                      const char *const *components, struct buffer *out, struct error *err)
{
    const char *keyring =
        place->keyring ? place->keyring : "/usr/share/keyrings/debian-archive-keyring.gpg";
    size_t length = strcspn(mirror, ",");
    const char *security = mirror[length] ? mirror + length + 1 : NULL;
    char options[600] = "";

    if (check_url(mirror, length, err) < 0 ||
        (security && check_url(security, strlen(security), err) < 0))
        return -1;
    if (access(keyring, R_OK) == 0)
        (void)snprintf(options, sizeof options, "[signed-by=%.500s] ", keyring);
    autofree char *uri = xstrndup(mirror, length);
    if (add_line(out, options, uri, suite, "", components, err) < 0 ||
        add_line(out, options, uri, suite, "-updates", components, err) < 0)
        return -1;
    return security ? add_line(out, options, security, suite, "-security", components, err) : 0;
}
