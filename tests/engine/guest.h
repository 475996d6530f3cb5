/* SPDX-License-Identifier: Apache-2.0 */
/* The program that runs inside of boxes under test: `guest COMMAND ARGUMENT...`; what the files behind it share. */
#pragma once
#include <stdnoreturn.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv); // argv[0] is the command; returns the exit code
    const char *about;
};

extern const struct command hungry_commands[];  // guest_hungry.c: take memory, disk, CPU, processes
extern const struct command hostile_commands[]; // guest_hostile.c: go for PID 1
extern const struct command network_commands[]; // guest_network.c: connect, send, forge

/* Writes a line to stdout at once. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
noreturn void pause_for_ever(void);
