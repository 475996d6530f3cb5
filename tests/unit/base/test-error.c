/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/error.c. */
#include "base/error.h"
#include "test.h"

#include <errno.h>

TEST(an_error_reads_from_the_outside_in)
{
    struct error err = {0};
    errno = ENOENT;
    CHECK(error_sys(&err, "open %s", "memory.max") < 0);
    CHECK(error_wrap(&err, "limit box '%s'", "b1") < 0);
    CHECK_STR(err.text, "limit box 'b1': open memory.max: No such file or directory");
    CHECK_INT(err.reason, ERROR_SYSTEM);
    CHECK_INT(err.sys, ENOENT);
}

TEST(wrapping_keeps_noun_and_reason)
{
    struct error err = {0};
    error_refuse(&err, ERROR_NOT_BUILT, "runtime", "no runtime 'x'");
    error_wrap(&err, "start");
    CHECK_STR(err.noun, "runtime");
    CHECK_INT(err.reason, ERROR_NOT_BUILT);
    CHECK_STR(err.text, "start: no runtime 'x'");
}

TEST(a_text_that_is_too_long_is_cut_and_never_overruns)
{
    struct error err = {0};
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    error_set(&err, ERROR_INVALID, "%s", longer);
    error_wrap(&err, "%s", longer);
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
}

TEST(what_is_missing_is_named)
{
    struct error err = {0};

    CHECK_INT(error_missing(&err, "sandbox", "s1"), -1);
    CHECK_STR(err.text, "there is no sandbox 's1'");
    CHECK_INT(err.reason, ERROR_NOT_FOUND);
    CHECK(error_is_about(&err, "sandbox"));
}

TEST(every_reason_has_a_row_and_a_kind)
{
    for (unsigned i = ERROR_INVALID; i < ERROR_REASONS; i++) {
        struct error err = {.reason = (enum error_reason)i};
        enum error_reason kind = error_kind(&err);
        if (kind < ERROR_INVALID || kind > ERROR_SYSTEM || error_status(&err) < 400 ||
            error_exit_code(&err) < 1 || !error_reason_name(err.reason))
            test_fail(__FILE__, __LINE__, "reason %u has no row", i);
        CHECK(i > ERROR_SYSTEM || kind == err.reason);
        CHECK(error_is(&err, err.reason) && error_is(&err, kind));
        for (unsigned other = ERROR_NONE; other < i; other++)
            CHECK(strcmp(error_reason_name(other), error_reason_name(i)) != 0);
    }
}

TEST(a_reason_is_found_by_its_status)
{
    CHECK_INT(error_reason_of_status(400), ERROR_INVALID);
    CHECK_INT(error_reason_of_status(401), ERROR_UNAUTHORIZED);
    CHECK_INT(error_reason_of_status(404), ERROR_NOT_FOUND);
    CHECK_INT(error_reason_of_status(413), ERROR_TOO_LARGE);
    CHECK_INT(error_reason_of_status(418), ERROR_INVALID);
    CHECK_INT(error_reason_of_status(500), ERROR_SYSTEM);
    CHECK_INT(error_reason_of_status(503), ERROR_RESTARTING);
    CHECK_INT(error_reason_of_status(599), ERROR_SYSTEM);
}

TEST(what_the_kernel_says_to_burrow_is_never_the_callers_fault)
{
    for (int code = 1; code < 134; code++) {
        struct error err = {0};
        error_sys_code(&err, code, "mount");
        CHECK_INT(error_status(&err), 500);
        CHECK(error_is_fault(&err) && error_is(&err, ERROR_SYSTEM));
        CHECK_INT(err.sys, code);
    }
}

TEST(what_is_wrong_with_a_callers_path_is_told)
{
    static const struct {
        int code;
        enum error_reason reason;
    } rows[] = {
        {ENOENT, ERROR_NOT_FOUND}, {ENOTDIR, ERROR_NOT_FOUND}, {EACCES, ERROR_DENIED},
        {EEXIST, ERROR_CONFLICT},  {EISDIR, ERROR_CONFLICT},   {ELOOP, ERROR_INVALID},
        {EDQUOT, ERROR_DISK_FULL}, {ENOSPC, ERROR_DISK_FULL},  {EFBIG, ERROR_TOO_LARGE},
        {EIO, ERROR_SYSTEM},       {EMFILE, ERROR_SYSTEM},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        errno = rows[i].code;
        error_path(&err, "open '%s'", "x");
        CHECK_INT(err.reason, rows[i].reason);
    }
}
