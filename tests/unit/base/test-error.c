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
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
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
