/* SPDX-License-Identifier: Apache-2.0 */
/* Program burrow-attacker: one attack from inside a box; see attacker.h. */
#include "attack/attacker.h"

int main(int argc, char **argv)
{
    return inside_main(NULL, argc, argv);
}
