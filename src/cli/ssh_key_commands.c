/* SPDX-License-Identifier: Apache-2.0 */
/* burrow ssh-key: the public keys by which people log in to sandboxes. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/columns.h"
#include "cli/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536
#define LIST_MOST 1000 // as many as there may be

static const struct column key_columns[] = {{"FINGERPRINT", "fingerprint", COLUMN_TEXT},
                                            {"NAME", "name", COLUMN_TEXT},
                                            {"KIND", "kind", COLUMN_TEXT},
                                            {"OWNER", "owner", COLUMN_TEXT},
                                            {"ADDED", "createdAt", COLUMN_AGO},
                                            {"LAST USED", "usedAt", COLUMN_AGO},
                                            {"IN USE", "inUse", COLUMN_TRUTH},
                                            {0}};

// ---- add ----

/* The first there is, in the order in which ssh-keygen would rather make them. The caller frees it. */
static char *find_default(void)
{
    static const char *const names[] = {"ed25519", "ecdsa", "ed25519_sk", "ecdsa_sk", "rsa"};
    const char *home = getenv("HOME");

    for (size_t i = 0; home && i < ARRAY_SIZE(names); i++) {
        char *path = xasprintf("%s/.ssh/id_%s.pub", home, names[i]);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static int open_key(const char *path, struct burrow_error *err)
{
    if (strcmp(path, "-") == 0)
        return STDIN_FILENO;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    return errno == ENOENT ? say_fail(err, BURROW_NOT_FOUND, "there is no file '%s'", path)
                           : say_fail_sys(err, "read '%s'", path);
}

/* What is no public key for certain does not leave this machine. */
static int read_key(const char *path, struct buffer *text, struct burrow_error *err)
{
    struct error error = {0};
    int fd = open_key(path, err);

    if (fd < 0)
        return -1;
    int result = fd_read_buffer(fd, text, &error);
    if (fd != STDIN_FILENO)
        (void)close(fd);
    if (result < 0)
        return say_fail(err, BURROW_INVALID, "read '%s': %s", path, error.text);
    if (!text->length || memchr(text->data, '\0', text->length))
        return say_fail(err, BURROW_INVALID, "'%s' is no public SSH key", path);
    if (strstr(text->data, "PRIVATE KEY-----"))
        return say_fail(err, BURROW_INVALID,
                        "'%s' is a private key, which stays with you: its public half is in "
                        "'%s.pub'",
                        path, path);
    return 0;
}

static int add(struct invocation *invocation, struct burrow_error *err)
{
    const char *named = invocation_operand(invocation, 0);
    autofree char *found = named ? NULL : find_default();
    const char *path = named ? named : found;
    autobuffer key = {.maximum = FILE_MAX_BYTES};
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    if (!path)
        return say_fail(err, BURROW_NOT_FOUND,
                        "there is no public key in ~/.ssh: make one with ssh-keygen -t ed25519, "
                        "or name its file");
    if (read_key(path, &key, err) < 0)
        return -1;
    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "publicKey", key.data);
    say_put_text(&json, "name", invocation->name);
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "POST", "/ssh-keys", text.data, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    autofree char *name = say_clean(burrow_text(burrow_get(value, "name")));
    say_done("%s%s%s opens your sandboxes", burrow_text(burrow_get(value, "fingerprint")),
             *name ? " " : "", name);
    return 0;
}

// ---- list, remove ----

static int list(struct invocation *invocation, struct burrow_error *err)
{
    return columns_list(invocation, "/ssh-keys", LIST_MOST, key_columns, err);
}

struct search {
    const char *name;
    char *fingerprint; // of the first with this name
    unsigned count;
};

static int on_key(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    struct search *search = context;
    const char *name = burrow_text(burrow_get(item, "name"));

    (void)err;
    if (name && strcmp(name, search->name) == 0 && !search->count++)
        search->fingerprint = xstrdup(burrow_text(burrow_get(item, "fingerprint")));
    return 0;
}

/* A fingerprint, or the name of one key. The caller frees it. */
static int find_key(struct invocation *invocation, const char *word, char **out,
                    struct burrow_error *err)
{
    struct search search = {.name = word};

    if (strncmp(word, "SHA256:", 7) == 0) {
        *out = xstrdup(word);
        return 0;
    }
    int result = burrow_list(invocation->client, "/ssh-keys", LIST_MOST, on_key, &search, err);
    if (result == 0 && search.count == 0)
        result = say_fail(err, BURROW_NOT_FOUND, "there is no SSH key '%s'", word);
    else if (result == 0 && search.count > 1)
        result = say_fail(err, BURROW_CONFLICT,
                          "%u SSH keys are called '%s': name one by its fingerprint (burrow "
                          "ssh-key list)",
                          search.count, word);
    if (result < 0)
        free(search.fingerprint);
    else
        *out = search.fingerprint;
    return result;
}

static int remove_key(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *fingerprint = NULL;

    if (find_key(invocation, invocation->operands[0], &fingerprint, err) < 0)
        return -1;
    autofree char *path = burrow_path("/ssh-keys/%s", fingerprint, NULL);
    autofree char *sentence = xasprintf("%s is removed, and its connections are cut", fingerprint);
    return columns_act(invocation, "DELETE", path, NULL, sentence, err);
}

static const struct option_row add_rows[] = {
    OPTION("name", 'n', OPTION_TEXT, name, "NAME", "what lists call it (default: its comment)"),
    {0},
};
static const char *const examples[] = {"$ burrow ssh-key add",
                                       "$ burrow ssh-key add ~/.ssh/work.pub --name laptop",
                                       "$ ssh-add -L | head -n 1 | burrow ssh-key add -",
                                       "$ burrow ssh-key list",
                                       "$ burrow ssh-key remove laptop",
                                       NULL};

const struct cli_command ssh_key_commands[] = {
    {"ssh-key", "add create new", "[FILE]", "let a public key open your sandboxes",
     "FILE is a .pub file, or - for standard input; without it, the first of ~/.ssh/id_*.pub. The "
     "key opens what the API key that adds it does, and ends with that one. Adding one again with "
     "another --name renames it.",
     add_rows, examples, COMMAND_SERVER, add},
    {"ssh-key", "list ls", "", "list them, with when they were last used", NULL, NULL, examples,
     COMMAND_SERVER, list},
    {"ssh-key", "remove rm delete del", "KEY",
     "remove one, by its fingerprint or name, and cut its connections", NULL, NULL, examples,
     COMMAND_SERVER, remove_key},
    {0},
};
