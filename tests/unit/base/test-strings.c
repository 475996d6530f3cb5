/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/base/strings.c: lists come back as they were. */
#include "base/strings.h"

#include "test.h"

static void check_round(const char *const *items, const char *want)
{
    autofree char *packed = strings_pack(items);
    autostrings back = {0};
    size_t count = 0;

    CHECK_STR(packed, want);
    strings_unpack(packed, &back);
    for (; items && items[count]; count++)
        CHECK_STR(back.items[count], items[count]);
    CHECK_INT(back.count, count);
    CHECK(!back.items[count]);

    autofree const char *const *list = strings_list(packed);
    for (size_t i = 0; i < count; i++)
        CHECK_STR(list[i], items[i]);
    CHECK(!list[count]);
}

TEST(a_list_comes_back_as_it_was)
{
    check_round(NULL, "");
    check_round((const char *const[]){NULL}, "");
    check_round((const char *const[]){"", NULL}, "\n");
    check_round((const char *const[]){"sh", "-c", "", "echo 1", NULL}, "sh\n-c\n\necho 1\n");
    check_round((const char *const[]){"a\nb", "\\", "\n\n", "\\n", "c\\", NULL},
                "a\\\nb\n\\\\\n\\\n\\\n\n\\\\n\nc\\\\\n");
}

TEST(what_was_packed_by_nobody_is_read_without_harm)
{
    autostrings none = {0}, cut = {0}, odd = {0};

    strings_unpack(NULL, &none);
    CHECK_INT(none.count, 0);
    CHECK(!none.items[0]);
    strings_unpack("a\nb", &cut);
    CHECK_INT(cut.count, 2);
    CHECK_STR(cut.items[1], "b");
    strings_unpack("a\\", &odd);
    CHECK_INT(odd.count, 1);
    CHECK_STR(odd.items[0], "a\\");

    CHECK(!strings_list(NULL));
    autofree const char *const *cut_list = strings_list("a\nb");
    CHECK_STR(cut_list[1], "b");
    CHECK(!cut_list[2]);
    autofree const char *const *odd_list = strings_list("a\\");
    CHECK_STR(odd_list[0], "a\\");
}

TEST(names_are_set_replaced_and_removed)
{
    autostrings env = {0};

    strings_set(&env, "A", NULL);
    CHECK_INT(env.count, 0);
    strings_set(&env, "A", "1");
    strings_set(&env, "AB", "x=y");
    strings_add(&env, "NOVALUE");
    CHECK_STR(env.items[0], "A=1");
    CHECK_STR(env.items[1], "AB=x=y");
    CHECK_STR(env.items[2], "NOVALUE");
    strings_set(&env, "A", "2");
    CHECK_INT(env.count, 3);
    CHECK_STR(env.items[0], "A=2");
    strings_set(&env, "A", NULL);
    CHECK_INT(env.count, 2);
    CHECK_STR(env.items[0], "AB=x=y");
    CHECK(!env.items[2]);
    strings_set(&env, "C", "");
    CHECK_STR(env.items[2], "C=");
}

TEST(lists_grow)
{
    autostrings list = {0}, back = {0};

    for (int i = 0; i < 1000; i++) {
        char item[16];
        (void)snprintf(item, sizeof item, "N%d=%d", i, i);
        strings_add(&list, item);
    }
    strings_set(&list, "N500", NULL);
    autofree char *packed = strings_pack((const char *const *)list.items);
    strings_unpack(packed, &back);
    CHECK_INT(back.count, 999);
    CHECK_STR(back.items[998], "N999=999");
}

TEST(pairs_are_merged_over_those_that_are_there)
{
    const char *const over[] = {"A=new", "C=a=b", NULL};
    autostrings env = {0};

    strings_add(&env, "A=old");
    strings_add(&env, "B=");
    strings_merge(&env, over);
    strings_merge(&env, NULL);
    CHECK_INT(env.count, 3);
    CHECK_STR(env.items[0], "A=new");
    CHECK_STR(env.items[1], "B=");
    CHECK_STR(env.items[2], "C=a=b");
}

TEST(an_environment_is_made_of_names_and_values)
{
    const char *const good[] = {"A=", "B=1=2", NULL}, *const bare[] = {"A=1", "B", NULL},
                      *const unnamed[] = {"=1", NULL};
    struct error err = {0};

    CHECK_OK(strings_check_env(good, &err), err);
    CHECK_OK(strings_check_env(NULL, &err), err);
    CHECK(strings_check_env(bare, &err) < 0);
    CHECK_STR(err.text, "environment entry 'B' is not NAME=VALUE");
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK(strings_check_env(unnamed, &err) < 0);
}
