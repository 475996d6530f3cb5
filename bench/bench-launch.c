/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long launching takes, ours and others', in one run; see bench.h. Started by
 * bench/run. */
#include "bench.h"

#include "base/auto.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static volatile sig_atomic_t is_stopped;

static void on_signal(int signal)
{
    is_stopped = 1;
}

bool bench_is_stopped(void)
{
    return is_stopped;
}

uint64_t bench_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_sleep_ms(unsigned ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&span, NULL);
}

static const struct {
    const char *name;
    int (*run)(const struct bench *bench, struct error *err);
    const char *help;
} commands[] = {
    {"launch", bench_launch, "time of one run, all rows in turn"},
    {"sustained", bench_sustained, "library runs a second, with refill and teardown"},
    {"memory", bench_memory, "memory of a parked box"},
    {"steps", bench_steps, "where the time of a cold launch goes"},
    {"throughput", bench_throughput, "bytes a second through pipelines"},
    {"detach", bench_detach, "sweeps the data directory and lets go of volume and control groups"},
};

enum { PEERS = 1, ROOT, DATA, ROUNDS, GAP, SECONDS, WORKERS, BOXES, BYTES, HOST_USR, NETWORK };
static const struct option options[] = {
    {"peers", required_argument, NULL, PEERS},     {"root", required_argument, NULL, ROOT},
    {"usr", no_argument, NULL, HOST_USR},          {"network", no_argument, NULL, NETWORK},
    {"data", required_argument, NULL, DATA},       {"rounds", required_argument, NULL, ROUNDS},
    {"gap-ms", required_argument, NULL, GAP},      {"seconds", required_argument, NULL, SECONDS},
    {"workers", required_argument, NULL, WORKERS}, {"boxes", required_argument, NULL, BOXES},
    {"bytes", required_argument, NULL, BYTES},     {0},
};

static bool set_option(struct bench *bench, int option, const char *value)
{
    unsigned *const numbers[] = {
        [ROUNDS] = &bench->rounds,   [GAP] = &bench->gap_ms,  [SECONDS] = &bench->seconds,
        [WORKERS] = &bench->workers, [BOXES] = &bench->boxes,
    };
    const char **const texts[] = {
        [PEERS] = &bench->peers, [ROOT] = &bench->root, [DATA] = &bench->data_dir};

    if (option == HOST_USR)
        bench->has_host_usr = true;
    else if (option == NETWORK)
        bench->has_network = true;
    else if (option == BYTES)
        bench->bytes = strtoull(value, NULL, 10);
    else if (option > 0 && (size_t)option < ARRAY_SIZE(texts))
        *texts[option] = value;
    else if (option > 0 && (size_t)option < ARRAY_SIZE(numbers))
        *numbers[option] = (unsigned)strtoul(value, NULL, 10);
    else
        return false;
    return true;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: bench-launch COMMAND [options], see bench/run\n");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        (void)fprintf(stderr, "  %-12s %s\n", commands[i].name, commands[i].help);
    return 2;
}

static void prepare_process(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct rlimit files;

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; // a thousand boxes have a few fds each
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

int main(int argc, char **argv)
{
    struct bench bench = {.rounds = 50,
                          .gap_ms = 50,
                          .seconds = 30,
                          .workers = 2,
                          .boxes = 1000,
                          .bytes = 1ULL << 30};
    struct error err = {0};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!set_option(&bench, option, optarg))
            return usage();
    }
    prepare_process();
    for (size_t i = 0; optind < argc && i < ARRAY_SIZE(commands); i++) {
        if (strcmp(argv[optind], commands[i].name) != 0)
            continue;
        if (commands[i].run(&bench, &err) == 0)
            return is_stopped ? 130 : 0;
        (void)fprintf(stderr, "bench-launch: %s\n", err.text);
        return 1;
    }
    return usage();
}
