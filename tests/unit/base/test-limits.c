/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and their ceilings, and how large this machine is. */
#include "base/limits.h"
#include "base/machine.h"
#include "test.h"

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

TEST(a_limit_above_its_ceiling_is_refused_with_both_figures_and_the_setting)
{
    const struct limits most = {22 * GIB, 2000, 100 * GIB, 30000};
    const struct {
        struct limits asked;
        const char *noun, *text;
    } cases[] = {
        {{.memory_bytes = 500 * GIB},
         "memory",
         "memory 500Gi is more than this server gives one sandbox (22Gi): ask for less or raise "
         "--max-memory"},
        {{.cpu_millicores = 1000000},
         "cpu",
         "cpu 1000 is more than this server gives one sandbox (2): ask for less or raise "
         "--max-cpu"},
        {{.disk_bytes = 900 * GIB},
         "disk",
         "disk 900Gi is more than this server gives one sandbox (100Gi): ask for less or raise "
         "--max-disk"},
        {{.max_processes = 30001},
         "max-processes",
         "max-processes 30001 is more than this server gives one sandbox (30000): ask for less or "
         "raise --most-processes"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        CHECK(limits_check_most(&cases[i].asked, &most, "this server", true, &err) < 0);
        CHECK_INT(err.reason, ERROR_INVALID);
        CHECK_STR(err.noun, cases[i].noun);
        CHECK_STR(err.text, cases[i].text);
    }
}

TEST(what_is_at_its_ceiling_or_has_none_is_fine)
{
    const struct limits most = {.memory_bytes = GIB};
    struct limits asked = {.memory_bytes = GIB, .cpu_millicores = 1024000};
    struct error err = {0};

    CHECK_OK(limits_check_most(&asked, &most, "this machine", false, &err), err);
    asked.memory_bytes++;
    CHECK(limits_check_most(&asked, &most, "this machine", false, &err) < 0);
    CHECK(strstr(err.text, "raise") == NULL);
    struct limits lowered = limits_lower_to(&asked, &most);
    CHECK_INT(lowered.memory_bytes, GIB);
    CHECK_INT(lowered.cpu_millicores, 1024000);
    asked.memory_bytes = 0;
    lowered = limits_lower_to(&asked, &most);
    CHECK_INT(lowered.memory_bytes, 0);
}

TEST(the_host_keeps_a_part_of_its_memory_and_processes_but_never_half)
{
    const struct {
        int64_t memory, processes, memory_left, processes_left;
    } cases[] = {
        {24105 * MIB, 32768, 22 * GIB, 28672},
        {512 * GIB, 4194304, 510 * GIB, 3670016},
        {1024 * MIB, 4096, 768 * MIB, 3072},
        {256 * MIB, 1000, 128 * MIB, 500},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct limits whole = {.memory_bytes = cases[i].memory,
                                     .cpu_millicores = 4000,
                                     .max_processes = cases[i].processes};
        const struct limits room = machine_leave_room(&whole);
        CHECK_INT(room.memory_bytes, cases[i].memory_left);
        CHECK_INT(room.max_processes, cases[i].processes_left);
        CHECK_INT(room.cpu_millicores, 4000);
    }
}

TEST(the_machine_has_a_size)
{
    const struct limits whole = machine_size();

    CHECK(whole.memory_bytes > 64 * MIB);
    CHECK(whole.cpu_millicores >= 1000 && whole.cpu_millicores % 1000 == 0);
    CHECK(whole.max_processes > 100);
    CHECK_INT(whole.disk_bytes, 0);
}
