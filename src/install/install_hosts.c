/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that packages come from; see install_hosts.h. */
#include "install/install_hosts.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define TEXT_MAX (256 << 10)
#define HOST_MAX 254

void install_hosts_clear(struct install_hosts *hosts)
{
    buffer_clear(&hosts->lines);
    free(hosts->registry);
}

// A file of the image as a box would see it. Its layers are strangers' where it is one of theirs: no link is followed.
static char *read_file(const struct runtime_image *image, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};

    for (size_t i = 0; i < image->n_layers; i++) {
        autobuffer text = {.maximum = TEXT_MAX};
        struct error ignored;
        autofd dir = open(image->layers[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        autofd fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 && fd_read_buffer(fd, &text, &ignored) == 0 && text.data)
            return take(text.data);
    }
    return NULL;
}

static bool is_known(const struct install_hosts *hosts, const char *name)
{
    autofree char *line_end = xasprintf(" %s\n", name);
    return hosts->lines.data && strstr(hosts->lines.data, line_end);
}

static int add_host(struct install_hosts *hosts, const char *name, struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char text[INET_ADDRSTRLEN];

    if (is_known(hosts, name))
        return 0;
    int code = getaddrinfo(name, NULL, &hints, &found);
    if (code)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the address of '%s', where packages come from, is not known: %s", name,
                         gai_strerror(code));
    int result = 0;
    for (struct addrinfo *at = found; at && result == 0; at = at->ai_next) {
        const struct in_addr address = ((const struct sockaddr_in *)at->ai_addr)->sin_addr;
        if (hosts->n_rules == INSTALL_HOSTS_RULES)
            break;
        hosts->rules[hosts->n_rules++] =
            (struct policy_kernel_rule){.is_allow = true,
                                        .is_operators = true,
                                        .address = ntohl(address.s_addr),
                                        .bits = 32,
                                        .protocols = POLICY_TCP};
        result = buffer_addf(&hosts->lines, err, "%s %s\n",
                             inet_ntop(AF_INET, &address, text, sizeof text), name);
    }
    freeaddrinfo(found);
    return result;
}

// Every "http://HOST" and "https://HOST" in a text.
static int add_hosts_in(struct install_hosts *hosts, const char *text, struct error *err)
{
    for (const char *at = text; (at = strstr(at, "://"));) {
        at += 3;
        size_t length = strcspn(at, "/: \t\r\n\"'");
        char name[HOST_MAX];
        if (length == 0 || length >= sizeof name)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (add_host(hosts, name, err) < 0)
            return -1;
    }
    return 0;
}

// Lines that are no comments.
static char *without_comments(char *text)
{
    autobuffer kept = {0};
    struct error ignored;
    char *rest = NULL;

    (void)buffer_add_text(&kept, "", &ignored);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (line[strspn(line, " \t")] != '#')
            (void)buffer_addf(&kept, &ignored, "%s\n", line);
    return take(kept.data);
}

static int find_apt(const struct runtime_image *image, struct install_hosts *out, struct error *err)
{
    static const char *const files[] = {"etc/apt/sources.list",
                                        "etc/apt/sources.list.d/debian.sources",
                                        "etc/apt/sources.list.d/ubuntu.sources"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        autofree char *text = read_file(image, files[i]);
        autofree char *kept = text ? without_comments(text) : NULL;
        if (kept && add_hosts_in(out, kept, err) < 0)
            return -1;
    }
    if (out->n_rules == 0)
        return error_refuse(err, ERROR_INVALID, "dependencies",
                            "dependencies: the runtime '%s:%s' has no apt sources", image->name,
                            image->tag);
    return 0;
}

int install_hosts_find(const struct runtime_image *image, const char *list, const char *registry,
                       struct install_hosts *out, struct error *err)
{
    bool has_apt = strncmp(list, "apt ", 4) == 0; // they come first
    bool has_npm = strncmp(list, "npm ", 4) == 0 || strstr(list, "\nnpm ");

    if (has_apt && find_apt(image, out, err) < 0)
        return -1;
    if (!has_npm)
        return 0;
    out->registry = registry ? xstrdup(registry) : read_file(image, "etc/burrow/npm-registry");
    if (!out->registry)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the npm registry is not known; name one with --npm-registry");
    out->registry[strcspn(out->registry, "\r\n")] = '\0';
    return add_hosts_in(out, out->registry, err);
}
