/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of burrow-egress: a gateway, boxes that are nothing but a network namespace on it, and the client that the server has. Told what to do by lines on its
 * standard input; answers each with lines, the last of which begins with "ok" or "error".
 *
 * usage: driver DATA-DIRECTORY PROGRAM RESOLVERS PROXY
 */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/egress.h"
#include "engine/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 8
#define SECRETS 8

struct driver {
    struct gateway *gateway;
    struct egress *egress;
    const char *data_dir;
    uint32_t generation;
};

static int complain(const struct error *err)
{
    (void)printf("error %s\n", err->text);
    return -1;
}

static char *read_all(const char *path)
{
    autofile file = fopen(path, "re");
    char *text = xcalloc(1, 1 << 20);

    if (file)
        (void)fread(text, 1, (1 << 20) - 1, file);
    return text;
}

/* The process that holds a box's namespaces, with the gateway as resolver. */
static _Noreturn void hold(const char *resolver_file, int ready)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(resolver_file, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0)
        _exit(1);
    (void)write(ready, "r", 1);
    for (;;)
        (void)pause();
}

static int make_box(struct driver *driver, unsigned slot)
{
    struct error err = {0};
    char path[512], byte;
    int ready[2];
    uint32_t gateway = gateway_address(driver->gateway),
             address = gateway_box_address(driver->gateway, slot), index;

    (void)snprintf(path, sizeof path, "%s/resolv.conf", driver->data_dir);
    autofile file = fopen(path, "we");
    (void)fprintf(file, "nameserver %u.%u.%u.%u\n", gateway >> 24, gateway >> 16 & 255,
                  gateway >> 8 & 255, gateway & 255);
    (void)fflush(file);
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        hold(path, ready[1]);
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        (void)printf("error the box did not start\n");
        return -1;
    }
    (void)close(ready[0]);
    (void)snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    autofd network = open(path, O_RDONLY | O_CLOEXEC);
    if (gateway_wire(driver->gateway, network, &index, &err) < 0 ||
        gateway_claim(driver->gateway, network, index, slot, &err) < 0)
        return complain(&err);
    (void)printf("ok %d %u.%u.%u.%u\n", pid, address >> 24, address >> 16 & 255, address >> 8 & 255,
                 address & 255);
    return 0;
}

/* Lines of host, header, value and placeholder with tabs between. */
static size_t read_secrets(char *text, struct egress_secret *out)
{
    size_t count = 0;

    for (char *line; (line = strsep(&text, "\n")) && count < SECRETS;) {
        if (!*line)
            continue;
        out[count].host = strsep(&line, "\t");
        out[count].header = strsep(&line, "\t");
        out[count].value = strsep(&line, "\t");
        out[count++].placeholder = line;
    }
    return count;
}

static int set_box(struct driver *driver, unsigned slot, const char *policy_file,
                   const char *secrets_file)
{
    autofree char *text = read_all(policy_file);
    autofree char *secret_text = secrets_file ? read_all(secrets_file) : xstrdup("");
    struct egress_secret secrets[SECRETS];
    struct policy_kernel kernel;
    autopolicy policy = {0};
    struct error err = {0};
    const struct egress_box box = {
        .slot = slot,
        .generation = ++driver->generation,
        .policy = text,
        .secrets = secrets,
        .n_secrets = read_secrets(secret_text, secrets),
    };

    if (policy_read(text, &policy, &err) < 0 || egress_set(driver->egress, &box, &err) < 0)
        return complain(&err);
    policy_compile(&policy, &kernel);
    int result = gateway_admit(driver->gateway, slot, &kernel, driver->generation, &err);
    policy_kernel_clear(&kernel);
    if (result < 0)
        return complain(&err);
    (void)printf("ok %u\n", driver->generation);
    return 0;
}

static void tell_refusals(struct driver *driver, int wait_ms)
{
    struct pollfd fd = {.fd = egress_fd(driver->egress), .events = POLLIN};
    struct egress_refusal refusal;
    int got = 0;

    (void)poll(&fd, 1, wait_ms);
    while ((got = egress_next_refusal(driver->egress, &refusal)) > 0)
        (void)printf("refusal\t%u\t%s\t%s\t%u.%u.%u.%u\t%u\t%s\t%s\t%s\t%u\t%d\t%s\t%s\n",
                     refusal.slot, egress_refusal_name((enum egress_refusal_kind)refusal.kind),
                     refusal.name, refusal.address >> 24, refusal.address >> 16 & 255,
                     refusal.address >> 8 & 255, refusal.address & 255, refusal.port,
                     policy_protocol_name((enum policy_protocol)refusal.protocol),
                     policy_tier_name((enum policy_tier)refusal.tier), refusal.rule, refusal.count,
                     refusal.would_deny, refusal.reason, refusal.remedy);
    (void)printf(got < 0 ? "ok gone\n" : "ok\n");
}

static void tell_counters(struct driver *driver, unsigned slot)
{
    struct egress_counters counters;
    struct error err = {0};

    if (egress_counters(driver->egress, slot, &counters, &err) < 0)
        (void)complain(&err);
    else
        (void)printf("ok %llu %llu %llu %llu\n", (unsigned long long)counters.lookups,
                     (unsigned long long)counters.refused_lookups,
                     (unsigned long long)counters.connections,
                     (unsigned long long)counters.refused_connections);
}

static void tell_certificate(struct driver *driver, const char *path)
{
    autobuffer pem = {0};
    struct error err = {0};

    if (egress_certificate(driver->egress, &pem, &err) < 0) {
        (void)complain(&err);
        return;
    }
    autofile file = fopen(path, "we");
    (void)fwrite(pem.data, 1, pem.length, file);
    (void)printf("ok\n");
}

static void say(int result, const struct error *err)
{
    if (result < 0)
        (void)complain(err);
    else
        (void)printf("ok\n");
}

/* False: it is over. */
static bool obey(struct driver *driver, char **words, size_t count)
{
    unsigned slot = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : 0;
    struct error err = {0};

    if (strcmp(words[0], "box") == 0)
        (void)make_box(driver, slot);
    else if (strcmp(words[0], "set") == 0)
        (void)set_box(driver, slot, words[2], count > 3 ? words[3] : NULL);
    else if (strcmp(words[0], "remove") == 0)
        say(egress_remove(driver->egress, slot, &err), &err);
    else if (strcmp(words[0], "refusals") == 0)
        tell_refusals(driver, (int)slot);
    else if (strcmp(words[0], "counters") == 0)
        tell_counters(driver, slot);
    else if (strcmp(words[0], "certificate") == 0)
        tell_certificate(driver, words[1]);
    else if (strcmp(words[0], "restore") == 0)
        say(egress_restore(driver->egress, &err), &err);
    else if (strcmp(words[0], "stop") == 0) {
        (void)egress_stop(driver->data_dir, &err);
        (void)gateway_remove(driver->data_dir, &err);
        (void)printf("ok\n");
        return false;
    } else {
        (void)printf("error there is no '%s'\n", words[0]);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct driver driver = {.data_dir = argc > 1 ? argv[1] : NULL};
    struct error err = {0};
    char line[1024], *words[WORDS];

    if (argc != 5)
        return 2;
    const struct egress_settings settings = {
        .data_dir = argv[1], .program = argv[2], .resolvers = argv[3], .proxy = argv[4]};
    if (gateway_open(argv[1], NULL, &driver.gateway, &err) < 0 ||
        egress_open(&settings, &driver.egress, &err) < 0) {
        (void)complain(&err);
        return 1;
    }
    (void)printf("ok %u\n", gateway_address(driver.gateway));
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        size_t count = 0;
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (char *word; count < WORDS && (word = strsep(&rest, " "));)
            words[count++] = word;
        if (!obey(&driver, words, count))
            break;
        (void)fflush(stdout);
    }
    (void)fflush(stdout);
    egress_free(driver.egress);
    gateway_free(driver.gateway);
    return 0;
}
