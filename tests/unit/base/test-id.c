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

TEST(an_id_is_random_but_for_what_says_that_it_is_a_uuid)
{
    unsigned seen[ID_UUID_TEXT][256] = {{0}};
    for (int i = 0; i < MANY; i++) {
        char id[ID_TEXT], uuid[ID_UUID_TEXT];
        CHECK(id_to_uuid(id_make(id), uuid) != NULL);
        for (int place = 0; place < ID_UUID_TEXT - 1; place++)
            seen[place][(unsigned char)uuid[place]] = 1;
    }
    for (int place = 0; place < ID_UUID_TEXT - 1; place++) {
        unsigned letters = 0;
        for (int letter = 0; letter < 256; letter++)
            letters += seen[place][letter];
        bool is_fixed = place == 8 || place == 13 || place == 14 || place == 18 || place == 23;
        CHECK_INT(letters, is_fixed ? 1 : place == 19 ? 4 : 16);
    }
}

TEST(an_id_and_its_uuid_are_one_identity)
{
    char id[ID_TEXT], back[ID_TEXT], uuid[ID_UUID_TEXT];

    for (int i = 0; i < MANY; i++) {
        CHECK_STR(id_to_uuid(id_make(id), uuid), uuid);
        CHECK(id_from_uuid(uuid, back));
        CHECK_STR(back, id);
    }
    CHECK(id_from_uuid("00000000-0000-0000-0000-000000000001", id));
    CHECK_STR(id, "00000000000000000000000001");
    CHECK(id_from_uuid("ffffffff-ffff-ffff-ffff-ffffffffffff", id));
    CHECK_STR(id, "7zzzzzzzzzzzzzzzzzzzzzzzzz");
}

TEST(what_is_no_uuid_in_lower_case_has_no_id)
{
    char id[ID_TEXT], uuid[ID_UUID_TEXT];

    CHECK(!id_from_uuid("", id));
    CHECK(!id_from_uuid("709BDA30-1c5f-4f0e-9a3b-52c1d0a7e9f4", id));
    CHECK(!id_from_uuid("709bda30-1c5f-4f0e-9a3b-52c1d0a7e9f", id));
    CHECK(!id_from_uuid("709bda30-1c5f-4f0e-9a3b-52c1d0a7e9f44", id));
    CHECK(!id_from_uuid("709bda3001c5f04f0e09a3b052c1d0a7e9f4", id));
    CHECK(!id_from_uuid("709bda30-1c5f-4f0e-9a3b-52c1d0a7e9g4", id));
    CHECK(id_to_uuid("8zzzzzzzzzzzzzzzzzzzzzzzzz", uuid) == NULL);
    CHECK(id_to_uuid("x", uuid) == NULL);
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
