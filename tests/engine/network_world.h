/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of boxes with network: a host and an Internet of their own. The test's process moves to a network namespace that takes the
 * host's place; behind it is another with one machine that has many addresses and answers on each. Nothing leaves them.
 */
#pragma once
#include <stdint.h>

#define WORLD_HOST "93.184.0.1"   // the host's address there
#define WORLD_SERVER "93.184.0.2" // of the machine behind it
#define WORLD_OTHER "93.184.1.2"  // the same one's
#define WORLD_METADATA "169.254.169.254"
#define WORLD_LAN "10.9.9.9"
#define WORLD_PORT 8000 // TCP: says "hello", then echoes, to "more" without an end; UDP: echoes

/* At the beginning of each test: who answers ends with it, the rest with the program. */
void world_open(void);
/* Datagrams with this word that the machine has got, from any of ours. */
unsigned world_heard(const char *word);
/* Rules and interfaces that are left on the host, by name, one a line. */
const char *world_leftovers(void);
