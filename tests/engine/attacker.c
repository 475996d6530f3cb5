/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the attack; see attacker.h. */
#include "attacker.h"

int main(int argc, char **argv)
{
    static const struct inside_attack *const lists[] = {look_attacks, reach_attacks, write_attacks,
                                                        NULL};
    return inside_main(lists, argc, argv);
}
