/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that attacks a box from inside in tests: all that burrow-attacker can, and what only tests have a use for, because it
 * needs an image made for it, takes long, or is looked at from outside.
 */
#pragma once
#include "attack/attacker.h"

extern const struct inside_attack look_attacks[];  // attacker_look.c: what can be seen
extern const struct inside_attack reach_attacks[]; // attacker_reach.c: who can be reached
extern const struct inside_attack
    write_attacks[]; // attacker_write.c: what can be changed or used up
