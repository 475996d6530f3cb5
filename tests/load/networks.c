/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two thousand networks of sandboxes up and gone: what each step costs, and whether anything is left: interfaces, elements, chains, pins, connections.
 * In namespaces of its own. usage: load-networks [COUNT]; tests/load/networks runs it.
 */
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/gateway_impl.h"
#include "engine/gateway_nft.h"
#include "engine/gateway_wire.h"
#include "engine/network.h"
#include "engine/slot.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define PATIENCE_MS 120000

struct figure {
    const char *what;
    uint64_t *us;
};

static unsigned count = 2000;
static bool is_failed;

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void tell(const struct figure *figure)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += figure->us[i];
    qsort(figure->us, count, sizeof *figure->us, by_size);
    printf("%-34s p50 %5lu us   p99 %5lu us   %7.0f a second\n", figure->what,
           (unsigned long)figure->us[count / 2], (unsigned long)figure->us[count * 99 / 100],
           sum ? count * 1e6 / (double)sum : 0);
}

static void need(int result, const struct error *err)
{
    if (result < 0) {
        (void)fprintf(stderr, "load-networks: %s\n", err->text);
        exit(1);
    }
}

static void count_one(const struct nft_element *element, void *data)
{
    (void)element;
    ++*(unsigned *)data;
}

static void check_empty(struct gateway *gateway)
{
    static const char *const sets[] = {"class", "tags",    "marks",  "current",
                                       "bytes", "refused", "judged", "named"};
    for (unsigned i = 0; i < ARRAY_SIZE(sets); i++) {
        unsigned left = 0;
        (void)nft_list(gateway, sets[i], count_one, &left);
        printf("%s%u elements of %s are left\n", left ? "NOT OK: " : "", left, sets[i]);
        is_failed |= left > 0;
    }
}

/* The kernel dismantles namespaces beside everything else, many at once. */
static void await_gone(struct gateway *gateway)
{
    const struct timespec step = {.tv_nsec = 5000000};
    uint64_t begun = clock_monotonic_ms();
    unsigned left = 0;

    do {
        (void)nanosleep(&step, NULL);
        if (wire_count(gateway->ns_fd, &left) != 0)
            left = UINT32_MAX;
    } while (left > 2 && clock_monotonic_ms() < begun + PATIENCE_MS);
    uint64_t ms = clock_monotonic_ms() - begun + 1;
    printf("%-34s %lu ms for %u: %.0f a second\n", "dismantled by the kernel in", (unsigned long)ms,
           count, count * 1000.0 / (double)ms);
    is_failed |= left > 2;
}

static uint64_t since(uint64_t *at)
{
    uint64_t now = clock_monotonic_us();
    uint64_t passed = now - *at;
    *at = now;
    return passed;
}

/* One of each, `count` times over. */
static void raise_all(struct gateway *gateway, const struct policy_kernel *kernel, int *networks,
                      const struct figure *figures)
{
    const struct policy_kernel open = {.class = POLICY_CLASS_OPEN, .is_default_allow = true};
    struct error err = {0};
    autofd parent = -1;

    need(network_make_parent(&parent, &err), &err);
    for (unsigned i = 0; i < count; i++) {
        uint32_t index = 0;
        uint64_t at = clock_monotonic_us();
        need(network_create(parent, &networks[i], &err), &err);
        figures[0].us[i] = since(&at);
        need(gateway_wire(gateway, networks[i], &index, &err), &err);
        figures[1].us[i] = since(&at);
        need(gateway_claim(gateway, networks[i], index, i, &err), &err);
        figures[2].us[i] = since(&at);
        need(gateway_admit(gateway, i, &open, 1, &err), &err);
        figures[3].us[i] = since(&at);
        need(gateway_admit(gateway, i, kernel, 2, &err), &err);
        figures[4].us[i] = since(&at);
        need(gateway_pin(gateway, i, 0x5db80002, POLICY_TCP, 443, 5, &err), &err);
        figures[5].us[i] = since(&at);
    }
}

/* Some with a chain of their own, beside which all jumps are followed. */
static void change_some(struct gateway *gateway, const struct policy_kernel *kernel)
{
    struct error err = {0};
    uint64_t at = clock_monotonic_us();
    unsigned some = count / 10 + 1 < count ? count / 10 + 1 : count;

    for (unsigned i = 0; i < some; i++)
        need(gateway_admit(gateway, i, kernel, 3, &err), &err);
    printf("%-34s %lu us each, for %u\n", "changed to rules of their own",
           (unsigned long)(since(&at) / some), some);
}

static void end_all(struct gateway *gateway, const int *networks)
{
    struct error err = {0};
    uint64_t at = clock_monotonic_us();

    for (unsigned i = 0; i < count; i++) {
        (void)close(networks[i]);
        need(gateway_dismiss(gateway, i, &err), &err);
    }
    printf("%-34s %lu us each\n", "dismissed in", (unsigned long)(since(&at) / count));
    await_gone(gateway);
    check_empty(gateway);
}

/* What a policy with these rules is to the kernel. */
static struct policy_kernel compile(const char *const *rules)
{
    autopolicy policy = {.mode = POLICY_RULES};
    struct policy_kernel kernel = {0};
    struct error err = {0};

    for (; *rules; rules++)
        need(policy_add(&policy, POLICY_USER, true, *rules, &err), &err);
    policy_compile(&policy, &kernel);
    return kernel;
}

int main(int argc, char **argv)
{
    char dir[] = "/var/tmp/burrow-networks-XXXXXX";
    struct error err = {0};
    autoptr(gateway) gateway = NULL;

    if (argc > 1)
        count = (unsigned)atoi(argv[1]);
    if (count < 1 || count > SLOT_COUNT || !mkdtemp(dir) || unshare(CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "load-networks: needs root and a count up to %u\n", SLOT_COUNT);
        return 2;
    }
    autofree uint64_t *times = xcalloc((size_t)count * 6, sizeof *times);
    autofree int *networks = xcalloc(count, sizeof *networks);
    const struct figure figures[] = {
        {"a namespace", times},
        {"a wire to the gateway", times + count},
        {"an address (claim)", times + 2 * count},
        {"admitted, open (7 elements)", times + 3 * count},
        {"changed to names", times + 4 * count},
        {"one pin (1 element)", times + 5 * count},
    };
    struct policy_kernel names = compile((const char *const[]){"example.com", NULL});
    struct policy_kernel rules = compile((const char *const[]){"93.184.0.0/16:443", NULL});

    need(gateway_open(dir, NULL, &gateway, &err), &err);
    raise_all(gateway, &names, networks, figures);
    for (unsigned i = 0; i < ARRAY_SIZE(figures); i++)
        tell(&figures[i]);
    change_some(gateway, &rules);
    end_all(gateway, networks);
    need(gateway_remove(dir, &err), &err);
    (void)rmdir(dir);
    policy_kernel_clear(&names);
    policy_kernel_clear(&rules);
    printf("%s\n", is_failed ? "NOT OK" : "ok");
    return is_failed;
}
