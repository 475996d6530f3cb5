/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening and removing a gateway; see gateway.h. */
#include "engine/gateway.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/gateway_impl.h"
#include "engine/gateway_wire.h"
#include "engine/network.h"
#include "engine/slot.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define RUN_DIR "/run/burrow"
#define VERSION 3 // of the rules: another number for another content
#define BACKLOG 4096
#define OWN_INTERFACES 2 // loopback and the uplink: no box

/* Where a gateway is kept: a directory for each data directory, with the namespace as a file. */
struct place {
    char name[48]; // the data directory's, as in /run/burrow
    char dir[96];
    char pin[128];
    char settings[128];
};

static int find_place(const char *data_dir, struct place *place, struct error *err)
{
    struct stat info;

    if (stat(data_dir, &info) < 0)
        return error_sys(err, "look at '%s'", data_dir);
    (void)snprintf(place->name, sizeof place->name, "burrow-%llx-%llx",
                   (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    (void)snprintf(place->dir, sizeof place->dir, RUN_DIR "/%s", place->name);
    (void)snprintf(place->pin, sizeof place->pin, "%s/gateway", place->dir);
    (void)snprintf(place->settings, sizeof place->settings, "%s/gateway.settings", place->dir);
    return 0;
}

const char *gateway_write_address(uint32_t address, char text[GATEWAY_ADDRESS_TEXT])
{
    (void)snprintf(text, GATEWAY_ADDRESS_TEXT, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
                   address >> 8 & 255, address & 255);
    return text;
}

uint32_t gateway_address(const struct gateway *gateway)
{
    return gateway->base + 1;
}

uint32_t gateway_box_address(const struct gateway *gateway, unsigned slot)
{
    return gateway->base + GATEWAY_FIRST_BOX + slot;
}

int gateway_slot_of(const struct gateway *gateway, uint32_t address)
{
    uint32_t first = gateway_box_address(gateway, 0);
    return address >= first && address - first < SLOT_COUNT ? (int)(address - first) : -1;
}

int gateway_namespace(const struct gateway *gateway)
{
    return gateway->ns_fd;
}

void gateway_free(struct gateway *gateway)
{
    if (!gateway)
        return;
    while (gateway->n_idle > 0)
        closep(&gateway->idle[--gateway->n_idle]);
    closep(&gateway->ns_fd);
    lock_clear(&gateway->lock);
    free(gateway);
}

int gateway_check_addresses(const char *text, uint32_t *base, unsigned *bits, struct error *err)
{
    char copy[GATEWAY_ADDRESS_TEXT];
    struct in_addr address;
    const char *slash = strchr(text, '/');
    char *end = NULL;

    (void)snprintf(copy, sizeof copy, "%.*s", slash ? (int)(slash - text) : 0, text);
    *bits = slash ? (unsigned)strtoul(slash + 1, &end, 10) : 0;
    if (!slash || *end || end == slash + 1 || inet_pton(AF_INET, copy, &address) != 1)
        return error_set(err, ERROR_INVALID,
                         "network-addresses '%.80s' is no network of IPv4: use one like %s", text,
                         GATEWAY_ADDRESSES);
    if (*bits < 8 || *bits > GATEWAY_MOST_BITS)
        return error_set(err, ERROR_INVALID,
                         "network-addresses '%.80s' must be a /8 to /%d: sandboxes need 16384 "
                         "addresses",
                         text, GATEWAY_MOST_BITS);
    *base = ntohl(address.s_addr) & ~(UINT32_MAX >> *bits);
    return 0;
}

/* Settings are the last that is written of one that works, and the first that goes. */
static int read_settings(const struct place *place, struct gateway *gateway)
{
    char text[128];
    struct error ignored = {0};
    unsigned version = 0;

    if (fd_read_knob(AT_FDCWD, place->settings, text, sizeof text, &ignored) < 0 ||
        sscanf(text, "%u %" SCNx32 " %u %u %15s", &version, &gateway->base, &gateway->bits,
               &gateway->number, gateway->uplink) != 5)
        return -1;
    if (strcmp(gateway->uplink, "-") == 0)
        gateway->uplink[0] = '\0';
    return version == VERSION ? 0 : -1;
}

static int write_settings(const struct place *place, const struct gateway *gateway,
                          struct error *err)
{
    char text[128];
    autofd dir = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open '%s'", place->dir);
    (void)snprintf(text, sizeof text, "%u %" PRIx32 " %u %u %s\n", VERSION, gateway->base,
                   gateway->bits, gateway->number, *gateway->uplink ? gateway->uplink : "-");
    return fd_replace_file(dir, "gateway.settings", text, strlen(text), 0600, err);
}

static bool is_namespace(int fd)
{
    struct statfs info;
    return fstatfs(fd, &info) == 0 && info.f_type == NSFS_MAGIC;
}

/* One that is whole, and connected. */
static bool open_whole(const struct place *place, struct gateway *gateway)
{
    closep(&gateway->ns_fd);
    gateway->ns_fd = open(place->pin, O_RDONLY | O_CLOEXEC);
    return gateway->ns_fd >= 0 && is_namespace(gateway->ns_fd) &&
           read_settings(place, gateway) == 0 && gateway_is_connected(gateway);
}

static int write_in(int ns_fd, const char *path, const char *value)
{
    struct error ignored = {0};
    autofd own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(ns_fd, CLONE_NEWNET) < 0)
        return -1;
    int result = fd_write_knob(AT_FDCWD, path, value, &ignored);
    if (setns(own, CLONE_NEWNET) < 0)
        abort(); // this thread would go on in a network that is not its own
    return result;
}

static int set_up_namespace(struct gateway *gateway, struct error *err)
{
    static const struct {
        const char *path, *value;
        bool is_needed;
    } settings[] = {
        {"/proc/sys/net/ipv4/ip_forward", "1", true},
        // who sends with an address that is not its own is not heard
        {"/proc/sys/net/ipv4/conf/all/rp_filter", "1", true},
        {"/proc/sys/net/ipv4/conf/default/rp_filter", "1", true},
        {"/proc/sys/net/ipv4/conf/all/accept_redirects", "0", false},
        {"/proc/sys/net/ipv4/conf/all/send_redirects", "0", false},
        {"/proc/sys/net/ipv4/conf/default/send_redirects", "0", false},
        {"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1", false},
        {"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", false},
        // a socket of a program in it may have any port
        {"/proc/sys/net/ipv4/ip_local_port_range", "1024 65535", false},
    };
    automessages messages = {0};

    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        if (write_in(gateway->ns_fd, settings[i].path, settings[i].value) < 0 &&
            settings[i].is_needed)
            return error_set(err, ERROR_UNAVAILABLE,
                             "a sandbox with network needs forwarding, and '%s' cannot be set "
                             "here: in a container, run burrow where /proc/sys can be written",
                             settings[i].path);
    }
    message_add_address(&messages, 1, gateway_address(gateway), 32);
    int code = netlink_ask(gateway->ns_fd, NETLINK_ROUTE, &messages, NULL, NULL);
    if (code)
        return error_sys_code(err, code, "give the network of sandboxes an address");
    return gateway_load_rules(gateway, err);
}

static int pin(const struct place *place, int ns_fd, struct error *err)
{
    char path[64];
    autofd file = open(place->pin, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return error_sys(err, "make '%s'", place->pin);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ns_fd);
    if (mount(path, place->pin, NULL, MS_BIND, NULL) < 0)
        return error_sys(err, "keep the network of sandboxes as '%s'", place->pin);
    return 0;
}

static void unpin(const struct place *place)
{
    while (umount2(place->pin, MNT_DETACH) == 0)
        ; // as often as it was made
    (void)unlink(place->pin);
}

/* Whatever there is of it, whole or not. */
static void take_down(const struct place *place)
{
    struct gateway old = {.ns_fd = -1};

    if (read_settings(place, &old) == 0)
        gateway_disconnect(&old);
    gateway_disconnect_named(place->name);
    (void)unlink(place->settings);
    unpin(place);
}

static int build(const struct place *place, struct gateway *gateway, struct error *err)
{
    closep(&gateway->ns_fd);
    if (network_create(-1, &gateway->ns_fd, err) < 0 || set_up_namespace(gateway, err) < 0 ||
        pin(place, gateway->ns_fd, err) < 0)
        return -1;
    if (gateway_connect(gateway, place->name, err) < 0)
        return -1;
    if (write_settings(place, gateway, err) < 0) {
        gateway_disconnect(gateway);
        return -1;
    }
    return 0;
}

static bool is_in_use(struct gateway *gateway)
{
    unsigned count = 0;
    return wire_count(gateway->ns_fd, &count) == 0 && count > OWN_INTERFACES;
}

/* What was asked for, as far as it was. */
static bool is_as_wanted(const struct gateway *gateway, const struct gateway *wanted,
                         const struct gateway_options *options)
{
    if (options && options->addresses &&
        (gateway->base != wanted->base || gateway->bits != wanted->bits))
        return false;
    return !options || !options->uplink || strcmp(gateway->uplink, options->uplink) == 0;
}

static int read_options(const struct gateway_options *options, struct gateway *out,
                        struct error *err)
{
    const char *addresses = options && options->addresses ? options->addresses : GATEWAY_ADDRESSES;
    const char *uplink = options && options->uplink ? options->uplink : "";

    if (strlen(uplink) >= IFNAMSIZ || strpbrk(uplink, "/ \t\n\"\\"))
        return error_set(err, ERROR_INVALID, "network-uplink '%.80s' is no name of an interface",
                         uplink);
    *out = (struct gateway){.ns_fd = -1};
    (void)snprintf(out->uplink, sizeof out->uplink, "%s", uplink);
    return gateway_check_addresses(addresses, &out->base, &out->bits, err);
}

static int lock_place(const struct place *place, int *out, struct error *err)
{
    char path[128];

    if (fd_make_dirs(place->dir, 0700, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/gateway.lock", place->dir);
    autofd fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return error_sys(err, "lock '%s'", path);
    }
    *out = take_fd(fd);
    return 0;
}

/* All but rules of the host. */
static bool has_end(const struct place *place, struct gateway *gateway)
{
    char name[GATEWAY_LINK_TEXT];

    if (gateway->ns_fd < 0 || !is_namespace(gateway->ns_fd) || read_settings(place, gateway) < 0)
        return false;
    gateway_link_name(gateway, name);
    return if_nametoindex(name) != 0;
}

/* Under the lock: one that is there and fits, or else a new one. */
static int open_or_build(const struct place *place, const struct gateway *wanted,
                         const struct gateway_options *options, struct gateway *gateway,
                         struct error *err)
{
    struct error ignored = {0};

    if (!open_whole(place, gateway) && has_end(place, gateway))
        (void)gateway_reconnect(gateway, &ignored);
    if (open_whole(place, gateway)) {
        if (is_as_wanted(gateway, wanted, options))
            return 0;
        if (is_in_use(gateway))
            return error_refuse(err, ERROR_CONFLICT, "network",
                                "the network of sandboxes has other addresses or another uplink "
                                "than the settings say, and sandboxes use it: end them first");
    }
    take_down(place);
    closep(&gateway->ns_fd);
    gateway->base = wanted->base;
    gateway->bits = wanted->bits;
    (void)snprintf(gateway->uplink, sizeof gateway->uplink, "%s", wanted->uplink);
    if (build(place, gateway, err) < 0) {
        take_down(place);
        return -1;
    }
    return 0;
}

static struct gateway *make_handle(void)
{
    struct gateway *gateway = xnew(struct gateway);
    lock_init(&gateway->lock, LOCK_ENGINE);
    gateway->ns_fd = -1;
    return gateway;
}

int gateway_open(const char *data_dir, const struct gateway_options *options, struct gateway **out,
                 struct error *err)
{
    autoptr(gateway) gateway = make_handle();
    struct gateway wanted;
    struct place place;
    autofd lock = -1;

    if (read_options(options, &wanted, err) < 0 || find_place(data_dir, &place, err) < 0)
        return -1;
    if (!open_whole(&place, gateway) || !is_as_wanted(gateway, &wanted, options)) {
        if (lock_place(&place, &lock, err) < 0 ||
            open_or_build(&place, &wanted, options, gateway, err) < 0)
            return error_wrap(err, "set up the network of sandboxes");
    }
    *out = take(gateway);
    return 0;
}

int gateway_find(const char *data_dir, struct gateway **out, struct error *err)
{
    autoptr(gateway) gateway = make_handle();
    struct place place;

    if (find_place(data_dir, &place, err) < 0)
        return -1;
    if (!open_whole(&place, gateway))
        return error_refuse(err, ERROR_NOT_FOUND, "network", "'%.200s' has no network", data_dir);
    *out = take(gateway);
    return 0;
}

int gateway_remove(const char *data_dir, struct error *err)
{
    struct place place;
    autofd lock = -1;

    if (find_place(data_dir, &place, err) < 0)
        return -1;
    if (access(place.pin, F_OK) < 0 && access(place.settings, F_OK) < 0)
        return 0;
    if (lock_place(&place, &lock, err) < 0)
        return -1;
    take_down(&place);
    return 0;
}

int gateway_listen(struct gateway *gateway, enum gateway_listener which, int *fd, struct error *err)
{
    static const struct {
        uint16_t port;
        int type;
    } listeners[] = {
        [GATEWAY_DNS_UDP] = {53, SOCK_DGRAM},
        [GATEWAY_DNS_TCP] = {53, SOCK_STREAM},
        [GATEWAY_FLOWS] = {GATEWAY_FLOWS_PORT, SOCK_STREAM},
        [GATEWAY_HOST] = {GATEWAY_HOST_PORT, SOCK_STREAM},
    };
    const int on = 1;
    int type = listeners[which].type;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(listeners[which].port),
                                  .sin_addr.s_addr = htonl(gateway_address(gateway))};
    autofd sock = netlink_socket_in(gateway->ns_fd, AF_INET, type | SOCK_NONBLOCK, 0);

    if (sock < 0)
        return error_sys(err, "make a socket in the network of sandboxes");
    if (type == SOCK_STREAM)
        (void)setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(sock, (const struct sockaddr *)&address, sizeof address) < 0 ||
        (type == SOCK_STREAM && listen(sock, BACKLOG) < 0)) {
        if (errno == EADDRINUSE)
            return error_refuse(err, ERROR_CONFLICT, "network",
                                "port %u of the network of sandboxes has a listener already",
                                listeners[which].port);
        return error_sys(err, "listen in the network of sandboxes");
    }
    *fd = take_fd(sock);
    return 0;
}
