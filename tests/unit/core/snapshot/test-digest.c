/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/snapshot/digest.c. The digests are sha256sum's. */
#include "core/snapshot/digest.h"

#include "base/auto.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

#define OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OF_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(a_digest_is_that_of_sha256sum)
{
    char text[DIGEST_TEXT];

    digest_of("", 0, text);
    CHECK_STR(text, OF_NOTHING);
    digest_of("abc", 3, text);
    CHECK_STR(text, OF_ABC);
}

TEST(pieces_make_the_digest_of_the_whole)
{
    struct digest digest = {0};
    char text[DIGEST_TEXT];

    digest_begin(&digest);
    digest_add(&digest, "a", 1);
    digest_add(&digest, "bc", 2);
    digest_end(&digest, text);
    CHECK_STR(text, OF_ABC);
    digest_clear(&digest); // again is fine
}

TEST(a_file_is_read_from_its_beginning_and_keeps_its_position)
{
    char text[DIGEST_TEXT];
    struct error err = {0};

    autofd fd = memfd_create("digest", MFD_CLOEXEC);
    CHECK_INT(write(fd, "abc", 3), 3);
    CHECK_OK(digest_file(fd, text, &err), err);
    CHECK_STR(text, OF_ABC);
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 3);
}
