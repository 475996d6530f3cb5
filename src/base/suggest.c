/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest known word; see suggest.h. */
#include "base/suggest.h"

#include <string.h>

enum { LONGEST = 32 };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Letters changed, added, dropped or swapped with their neighbour (optimal string alignment). */
static unsigned distance_between(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    unsigned d[LONGEST + 1][LONGEST + 1];

    if (rows > LONGEST || columns > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= rows; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= columns; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= rows; i++) {
        for (size_t j = 1; j <= columns; j++) {
            unsigned changed = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1, changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1, changed);
        }
    }
    return d[rows][columns];
}

void suggestion_consider(struct suggestion *suggestion, const char *known)
{
    unsigned distance = distance_between(suggestion->wanted, known);
    size_t enough = strlen(suggestion->wanted) / 3 + 1; // a third of it may be wrong

    if (distance > enough || distance >= strlen(known))
        return;
    if (suggestion->nearest && distance >= suggestion->distance)
        return;
    suggestion->nearest = known;
    suggestion->distance = distance;
}
