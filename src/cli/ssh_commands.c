/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow ssh, ssh-proxy, ssh-config: the user's own ssh, through the server's API. It works where no port of SSH is open, needs no key but the API's,
 * and knows the server by the keys that the API tells.
 */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "cli/contexts.h"
#include "cli/endpoint.h"
#include "cli/listing.h"
#include "cli/invocation.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOMAIN ".burrow" // of the names that ssh-config is for
#define ALIAS "burrow"   // what the server is called in the file of its keys
#define WORDS_MAX 256

// ---- words for a shell ----

/* `text` as one word. The caller frees it. */
static char *quote_word(const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-";
    autobuffer out = {0};
    struct error error = {0};

    if (*text && !text[strspn(text, plain)])
        return xstrdup(text);
    int result = buffer_addf(&out, &error, "'");
    for (; result == 0 && *text; text++)
        result =
            *text == '\'' ? buffer_addf(&out, &error, "'\\''") : buffer_add(&out, text, 1, &error);
    return result == 0 && buffer_addf(&out, &error, "'") == 0 ? take(out.data) : xstrdup("''");
}

/* The same, in a place where ssh looks for tokens such as %h. */
static char *quote_token(const char *text)
{
    autofree char *doubled = xcalloc(2, strlen(text) + 1);
    char *to = doubled;

    for (; *text; text++) {
        if (*text == '%')
            *to++ = '%';
        *to++ = *text;
    }
    return quote_word(doubled);
}

// ---- what the server says ----

/* A word of others in ssh's configuration, and among its arguments: nothing that begins another line, or an option. */
static bool is_plain(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

    return *word && *word != '-' && !word[strspn(word, plain)];
}

/* *out lives as long as the answer. */
static int find_id(struct invocation *invocation, const char *sandbox,
                   struct burrow_answer **answer, const char **out, struct burrow_error *err)
{
    if (burrow_sandbox_get(invocation->client, sandbox, answer, err) < 0)
        return -1;
    const char *id = burrow_text(burrow_get(burrow_answer_value(*answer), "id"));
    if (!id || !is_plain(id))
        return say_fail(err, BURROW_PROTOCOL, "the server did not tell the sandbox's id");
    *out = id;
    return 0;
}

/* How a process that knows nothing of this one finds the same server. The caller frees it. */
static int write_where(const struct invocation *invocation, char **out, struct burrow_error *err)
{
    const char *url = invocation->url, *variable = getenv("BURROW_URL");
    autocontext context = {0};

    if (!url && !invocation->context && !invocation->data_dir && variable && *variable)
        url = variable;
    int found = url || invocation->data_dir ? 0 : contexts_find(invocation->context, &context, err);
    if (found < 0)
        return -1;
    autofree char *word = quote_token(url     ? url
                                      : found ? context.name
                                              : endpoint_data_dir(invocation));
    *out = xasprintf("%s %s", url ? "--url" : found ? "--context" : "--data", word);
    return 0;
}

/* "burrow ssh-proxy … SANDBOX" for ssh's ProxyCommand; `sandbox` stands as it is given. The caller frees it. */
static int write_proxy(const struct invocation *invocation, const char *sandbox, char **out,
                       struct burrow_error *err)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    autofree char *where = NULL;

    if (length < 0)
        return say_fail_sys(err, "find out where burrow is: read '/proc/self/exe'");
    self[length] = '\0';
    if (write_where(invocation, &where, err) < 0)
        return -1;
    autofree char *program = quote_token(self);
    *out = xasprintf("%s ssh-proxy %s %s", program, where, sandbox);
    return 0;
}

static int put_host_keys(const struct burrow_value *keys, struct buffer *to,
                         struct burrow_error *err)
{
    struct error error = {0};

    for (const struct burrow_value *each = burrow_first(keys); each; each = burrow_next(each)) {
        const char *line = burrow_text(each);
        if (!line || strpbrk(line, "\r\n"))
            return say_fail(err, BURROW_PROTOCOL, "the server told a host key that is none");
        if (buffer_addf(to, &error, ALIAS " %s\n", line) < 0)
            return say_fail(err, BURROW_LOCAL, "%s", error.text);
    }
    return to->length ? 0 : say_fail(err, BURROW_PROTOCOL, "the server told no host key");
}

/* Writes down by which keys this server is known; *out is the file, which the caller frees. */
static int pin_server(struct invocation *invocation, char **out, struct burrow_error *err)
{
    autofree char *top = contexts_dir();
    autofree char *directory = top ? xasprintf("%s/ssh", top) : NULL;
    char digest[SHA256_TEXT], name[32];
    struct sha256 sha;
    autobuffer text = {0};
    struct error error = {0};
    autoanswer answer = NULL;

    if (!directory)
        return say_fail(err, BURROW_LOCAL, "there is no place for the server's keys: set HOME");
    if (burrow_ask(invocation->client, "GET", "/ssh", NULL, &answer, err) < 0 ||
        put_host_keys(burrow_get(burrow_answer_value(answer), "hostKeys"), &text, err) < 0)
        return -1;
    const char *url = burrow_url(invocation->client);
    sha256_init(&sha);
    sha256_add(&sha, url, strlen(url));
    sha256_end(&sha, digest);
    (void)snprintf(name, sizeof name, "known_hosts-%.12s", digest);
    if (fd_make_dirs(directory, 0700, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    autofd fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return say_fail_sys(err, "open '%s'", directory);
    if (fd_replace_file(fd, name, text.data, text.length, 0600, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    *out = xasprintf("%s/%s", directory, name);
    return 0;
}

// ---- ssh ----

struct words {
    char *items[WORDS_MAX]; // owned
    unsigned count;
};

static void words_clear(struct words *words)
{
    for (unsigned i = 0; i < words->count; i++)
        free(words->items[i]);
}

/* Takes the word. What is too much is dropped here and refused by is_full. */
static void add_word(struct words *words, char *word)
{
    if (words->count < WORDS_MAX - 1)
        words->items[words->count++] = word;
    else
        free(word);
}

static void add_option(struct words *words, char *option)
{
    add_word(words, xstrdup("-o"));
    add_word(words, option);
}

/* Spaces in a file's name end it, for ssh, unless they are in quotes. */
static char *file_option(const char *name, const char *path)
{
    return strpbrk(path, " \t") ? xasprintf("%s=\"%s\"", name, path)
                                : xasprintf("%s=%s", name, path);
}

static void add_forwards(struct words *words, const struct invocation *invocation)
{
    for (size_t i = 0; i < invocation->local_forwards.count; i++) {
        add_word(words, xstrdup("-L"));
        add_word(words, xstrdup(invocation->local_forwards.items[i]));
    }
    for (size_t i = 0; i < invocation->dynamic_forwards.count; i++) {
        add_word(words, xstrdup("-D"));
        add_word(words, xstrdup(invocation->dynamic_forwards.items[i]));
    }
    if (invocation->has_tty)
        add_word(words, xstrdup("-t"));
    if (invocation->has_no_command)
        add_word(words, xstrdup("-N"));
}

static int write_command(struct invocation *invocation, const char *id, struct words *words,
                         struct burrow_error *err)
{
    autofree char *known = NULL;
    autofree char *proxy = NULL;
    autofree char *sandbox = quote_token(id);

    if (pin_server(invocation, &known, err) < 0 ||
        write_proxy(invocation, sandbox, &proxy, err) < 0)
        return -1;
    add_word(words, xstrdup("ssh"));
    add_option(words, xasprintf("ProxyCommand=%s", proxy));
    add_option(words, file_option("UserKnownHostsFile", known));
    add_option(words, xstrdup("GlobalKnownHostsFile=/dev/null"));
    add_option(words, xstrdup("HostKeyAlias=" ALIAS));
    add_option(words, xstrdup("StrictHostKeyChecking=yes"));
    add_forwards(words, invocation);
    add_word(words, xstrdup("-l"));
    add_word(words, xstrdup(id));
    add_word(words, xasprintf("%s" DOMAIN, id));
    for (char **word = invocation->words; word && *word; word++)
        add_word(words, xstrdup(*word));
    if (words->count == WORDS_MAX - 1)
        return say_fail(err, BURROW_INVALID, "the command has more than %d words", WORDS_MAX / 2);
    return 0;
}

static void show(const struct words *words)
{
    for (unsigned i = 0; i < words->count; i++) {
        autofree char *word = quote_word(words->items[i]);
        (void)printf("%s%s", i ? " " : "", word);
    }
    (void)printf("\n");
}

static int run_ssh(struct invocation *invocation, struct words *words, struct burrow_error *err)
{
    // Not as an option, which others on the machine see; and for the server that an option of ssh-proxy names.
    if (invocation->api_key &&
        (setenv("BURROW_API_KEY", invocation->api_key, 1) < 0 || unsetenv("BURROW_URL") < 0))
        return say_fail_sys(err, "hand the key on");
    endpoint_give_signals_back();
    (void)execvp("ssh", words->items);
    if (errno == ENOENT)
        return say_fail(err, BURROW_LOCAL,
                        "there is no ssh on this machine: install openssh-client; 'burrow attach' "
                        "works without it");
    return say_fail_sys(err, "run ssh");
}

static int ssh(struct invocation *invocation, struct burrow_error *err)
{
    __attribute__((cleanup(words_clear))) struct words words = {0};
    autoanswer answer = NULL;
    const char *id;

    if (find_id(invocation, invocation->operands[0], &answer, &id, err) < 0)
        return -1;
    if (write_command(invocation, id, &words, err) < 0)
        return -1;
    if (!invocation->is_shown)
        return run_ssh(invocation, &words, err);
    show(&words);
    return 0;
}

// ---- ssh-proxy ----

static int ssh_proxy(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *sandbox = xstrdup(invocation->operands[0]);
    size_t length = strlen(sandbox), tail = sizeof DOMAIN - 1;

    if (length > tail && strcmp(sandbox + length - tail, DOMAIN) == 0)
        sandbox[length - tail] = '\0';
    return burrow_ssh_relay(invocation->client, sandbox, STDIN_FILENO, STDOUT_FILENO, err);
}

// ---- ssh-config ----

static int ssh_config(struct invocation *invocation, struct burrow_error *err)
{
    const char *one = invocation_operand(invocation, 0);
    autofree char *known = NULL;
    autofree char *proxy = NULL;
    autoanswer answer = NULL;
    const char *id = "sandbox";

    if (one && find_id(invocation, one, &answer, &id, err) < 0)
        return -1;
    if (one && !is_plain(one))
        return say_fail(err, BURROW_INVALID,
                        "'%.80s' cannot be part of a host's name: use the sandbox's id", one);
    if (pin_server(invocation, &known, err) < 0 ||
        write_proxy(invocation, one ? one : "'%n'", &proxy, err) < 0)
        return -1;
    (void)printf("Host %s" DOMAIN "\n", one ? one : "*");
    (void)printf("    User %s\n", id);
    (void)printf("    ProxyCommand %s\n", proxy);
    (void)printf("    UserKnownHostsFile \"%s\"\n", known);
    (void)printf("    GlobalKnownHostsFile /dev/null\n"
                 "    HostKeyAlias " ALIAS "\n"
                 "    StrictHostKeyChecking yes\n");
    if (invocation->api_key)
        say_note("the key is not written down: have it in BURROW_API_KEY, or in 'burrow context'");
    return 0;
}

static const struct option_row ssh_rows[] = {
    OPTION("show", 0, OPTION_FLAG, is_shown, NULL, "print the command instead of running it"),
    OPTION("local", 'L', OPTION_LIST, local_forwards, "PORT:HOST:PORT",
           "lead a port of this machine into the sandbox (repeatable)"),
    OPTION("dynamic", 'D', OPTION_LIST, dynamic_forwards, "PORT",
           "a SOCKS proxy on this machine that connects from the sandbox (repeatable)"),
    OPTION("tty", 't', OPTION_FLAG, has_tty, NULL, "a terminal also for a command"),
    OPTION("no-command", 'N', OPTION_FLAG, has_no_command, NULL, "only what is led there"),
    {0},
};
static const char *const ssh_examples[] = {
    "$ burrow ssh work", "$ burrow ssh work 'ls -la /workspace'",
    "$ burrow ssh -N -L 8080:localhost:80 work", "$ burrow ssh work --show", NULL};
static const char *const config_examples[] = {"$ burrow ssh-config >> ~/.ssh/config",
                                              "$ scp report.txt work.burrow:", NULL};

const struct cli_command ssh_commands[] = {
    {"", "ssh", "SANDBOX", "log in to a sandbox with your own ssh, or run a command by it",
     "Goes through the server's API: no port of SSH need be open, and the API key is all that is "
     "asked for. The server is known by the keys that the API tells. The exit code is ssh's.",
     ssh_rows, ssh_examples,
     COMMAND_SERVER | COMMAND_WORDS | COMMAND_WORDS_OPTIONAL | COMMAND_NO_JSON | COMMAND_RUNNING,
     ssh},
    {"", "ssh-proxy", "SANDBOX", "carry a connection of SSH between standard input and a sandbox",
     "For ssh's ProxyCommand; 'burrow ssh' and 'burrow ssh-config' use it. " DOMAIN
     " at the end of the name does not count.",
     NULL, config_examples, COMMAND_SERVER | COMMAND_NO_JSON, ssh_proxy},
    {"", "ssh-config", "[SANDBOX]", "print what makes plain ssh, scp and editors find sandboxes",
     "For ~/.ssh/config: every NAME" DOMAIN " or ID" DOMAIN
     " is a sandbox of this server then, or, with SANDBOX, that one.",
     NULL, config_examples, COMMAND_SERVER | COMMAND_NO_JSON, ssh_config},
    {0},
};
