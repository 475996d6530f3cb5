/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/base/sha256.c: the examples of FIPS 180-4, and every way to cut a text into pieces. */
#include "base/sha256.h"

#include "test.h"

#include <string.h>

static void hash(const void *data, size_t length, size_t piece, char text[SHA256_TEXT])
{
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t at = 0; at < length; at += piece)
        sha256_add(&sha, (const char *)data + at, piece < length - at ? piece : length - at);
    sha256_end(&sha, text);
}

TEST(known_texts_have_their_digests)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnop"
         "qrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[SHA256_TEXT];
        hash(known[i].text, strlen(known[i].text), 1000, text);
        CHECK_STR(text, known[i].digest);
    }
}

TEST(a_million_letters)
{
    static char letters[1000000];
    char text[SHA256_TEXT];

    memset(letters, 'a', sizeof letters);
    hash(letters, sizeof letters, sizeof letters, text);
    CHECK_STR(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(pieces_make_no_difference)
{
    char data[300], whole[SHA256_TEXT], pieces[SHA256_TEXT];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t length = 0; length <= sizeof data; length++) {
        hash(data, length, sizeof data, whole);
        for (size_t piece = 1; piece < 130; piece += 9) {
            hash(data, length, piece, pieces);
            CHECK_STR(pieces, whole);
        }
    }
}
