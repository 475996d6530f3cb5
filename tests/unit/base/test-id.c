/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/id.c. */
#include "base/id.h"
#include "test.h"

enum { MANY = 2000 };

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(ids_are_valid_and_never_the_same)
{
    static char ids[MANY][ID_TEXT];
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(strlen(id_make(ids[i])), ID_LENGTH);
        CHECK(id_is_valid(ids[i]));
    }
    qsort(ids, MANY, sizeof *ids, compare);
    for (int i = 1; i < MANY; i++)
        CHECK(strcmp(ids[i - 1], ids[i]) != 0);
}

TEST(every_place_of_an_id_takes_every_letter)
{
    unsigned seen[ID_LENGTH][256] = {{0}};
    for (int i = 0; i < MANY; i++) {
        char id[ID_TEXT];
        id_make(id);
        for (int place = 0; place < ID_LENGTH; place++)
            seen[place][(unsigned char)id[place]] = 1;
    }
    for (int place = 0; place < ID_LENGTH; place++) {
        unsigned letters = 0;
        for (int letter = 0; letter < 256; letter++)
            letters += seen[place][letter];
        CHECK_INT(letters, 32);
    }
}

TEST(what_is_spelled_otherwise_is_no_id)
{
    CHECK(id_is_valid("0123456789abcdefghjkmnpqrs"));
    CHECK(!id_is_valid(""));
    CHECK(!id_is_valid("0123456789abcdefghjkmnpqr"));
    CHECK(!id_is_valid("0123456789abcdefghjkmnpqrst"));
    CHECK(!id_is_valid("0123456789ABCDEFGHJKMNPQRS"));
    CHECK(!id_is_valid("0123456789abcdefghijkmnpqr")); // i
    CHECK(!id_is_valid("../../../../../../etc/pass"));
}
