/* SPDX-License-Identifier: Apache-2.0 */
/* The host's forwarding between gateways and its own interfaces, and giving that back; see gateway_impl.h. */
#include "base/fd.h"
#include "engine/gateway_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/stat.h>

#define SETTINGS "/proc/sys/net/ipv4/conf"
#define NOTES                                                                                      \
    "/run/burrow/forwarding" // and the network: names of interfaces whose forwarding was turned on by us

static bool is_ours(const char *name)
{
    return strncmp(name, "burrow", 6) == 0;
}

static int set_forwarding(const char *name, const char *value, struct error *err)
{
    char path[128];
    (void)snprintf(path, sizeof path, SETTINGS "/%s/forwarding", name);
    return fd_write_knob(AT_FDCWD, path, value, err);
}

static bool is_forwarding(const char *name)
{
    char path[128];
    char text[8];
    struct error ignored = {0};

    (void)snprintf(path, sizeof path, SETTINGS "/%s/forwarding", name);
    return fd_read_knob(AT_FDCWD, path, text, sizeof text, &ignored) == 0 && text[0] == '1';
}

/* Of this network namespace: a machine may have several hosts of gateways, as tests do. */
static void notes_path(char *path, size_t size)
{
    struct stat info = {0};
    (void)stat("/proc/thread-self/ns/net", &info);
    (void)snprintf(path, size, NOTES "-%llu", (unsigned long long)info.st_ino);
}

static bool is_noted(const char *name)
{
    char path[64];
    char line[64];

    notes_path(path, sizeof path);
    autofile notes = fopen(path, "re");
    while (notes && fgets(line, sizeof line, notes)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, name) == 0)
            return true;
    }
    return false;
}

static void note(const char *name)
{
    char path[64];
    notes_path(path, sizeof path);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)dprintf(fd, "%s\n", name);
}

/*
 * What came for nobody on this machine was dropped here, and still is, but for answers to sandboxes: the host becomes no router for its
 * neighbours.
 */
static int guard(const char *name, struct error *err)
{
    char script[512];
    (void)snprintf(script, sizeof script,
                   "add table ip burrow_guard\n"
                   "add set ip burrow_guard inner { type ifname; }\n"
                   "add chain ip burrow_guard forward { type filter hook forward priority filter; "
                   "policy accept; }\n"
                   "flush chain ip burrow_guard forward\n"
                   "add element ip burrow_guard inner { \"%s\" }\n"
                   "add rule ip burrow_guard forward iifname @inner oifname != \"burrow*\" drop\n",
                   name);
    return nft_run(-1, script, err);
}

static int open_one(const char *name, struct error *err)
{
    // Where it was turned on by us, the guard may have been flushed since.
    if (is_forwarding(name) && (is_ours(name) || !is_noted(name)))
        return 0;
    if (!is_ours(name) && guard(name, err) < 0)
        return -1;
    if (is_forwarding(name))
        return 0;
    if (set_forwarding(name, "1", err) < 0)
        return error_wrap(err, "turn on forwarding of the interface '%s'", name);
    if (!is_ours(name))
        note(name);
    return 0;
}

/* The interface by which a default route leaves, or the one that was named. */
static int find_uplinks(const struct gateway *gateway, char names[][IFNAMSIZ], unsigned most)
{
    autofile routes = fopen("/proc/thread-self/net/route", "re");
    char line[256];
    unsigned count = 0;

    if (*gateway->uplink) {
        (void)snprintf(names[0], IFNAMSIZ, "%s", gateway->uplink);
        return 1;
    }
    while (routes && count < most && fgets(line, sizeof line, routes)) {
        char name[IFNAMSIZ];
        unsigned long to = 1;
        if (sscanf(line, "%15s %lx", name, &to) == 2 && to == 0 && !is_ours(name))
            (void)snprintf(names[count++], IFNAMSIZ, "%s", name);
    }
    return (int)count;
}

int forwarding_open(const struct gateway *gateway, struct error *err)
{
    char own[GATEWAY_LINK_TEXT];
    char names[8][IFNAMSIZ];

    gateway_link_name(gateway, own);
    if (*gateway->uplink && if_nametoindex(gateway->uplink) == 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "this machine has no interface '%s', which the setting network-uplink "
                         "names: name one of those that 'ip link' lists",
                         gateway->uplink);
    if (open_one(own, err) < 0 || forward_policy_open(err) < 0)
        return -1;
    int count = find_uplinks(gateway, names, 8);
    for (int i = 0; i < count; i++) {
        if (open_one(names[i], err) < 0)
            return -1;
    }
    return 0;
}

bool forwarding_is_needed(void)
{
    struct if_nameindex *all = if_nameindex();
    bool found = false;

    for (struct if_nameindex *at = all; at && at->if_index && !found; at++)
        found = is_ours(at->if_name);
    if (all)
        if_freenameindex(all);
    return found;
}

void forwarding_close(void)
{
    struct error ignored = {0};
    char path[64];
    char line[64];

    if (forwarding_is_needed())
        return;
    notes_path(path, sizeof path);
    autofile notes = fopen(path, "re");
    while (notes && fgets(line, sizeof line, notes)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strchr(line, '/'))
            (void)set_forwarding(line, "0", &ignored);
    }
    if (notes)
        (void)nft_run(-1, "delete table ip burrow_guard\n", &ignored);
    (void)unlink(path);
}
