/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the two texts of a snapshot's archive. What is written is read back, what is read costs no more than it is long. */
#include "base/mem.h"
#include "core/snapshot/archive_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char checksum[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void require(bool is_true)
{
    if (!is_true)
        __builtin_trap();
}

/* A line of any name comes back as it was, and once. */
static void check_sum_line(const char *path)
{
    autobuffer text = {.maximum = SNAPSHOT_CHECKSUMS_MAX};
    struct checksums checksums = {0};
    struct error err = {0};

    require(checksums_add(&text, checksum, path, &err) == 0);
    if (checksums_read(&text, &checksums, &err) == 0) {
        require(checksums.count == 1 && checksums.n_used == 0);
        require(checksums_use(&checksums, checksum, path));
        require(!checksums_use(&checksums, checksum, path));
        require(checksums.n_used == 1);
    } else {
        require(!*path);
    }
    checksums_clear(&checksums);
}

static void check_about_line(const char *value)
{
    autobuffer text = {.maximum = SNAPSHOT_ABOUT_MAX};
    struct error err = {0};
    autostrings lines = {0};

    require(about_begin(&text, &err) == 0 && about_add(&text, "name", value, &err) == 0);
    require(about_read(&text, &lines, &err) == 0 && lines.count == 2);
    require(strcmp(about_get(&lines, "name"), value) == 0);
    require(!about_get(&lines, "tag"));
}

static void read_checksums(const uint8_t *data, size_t size)
{
    autobuffer text = {.maximum = SNAPSHOT_CHECKSUMS_MAX};
    struct checksums checksums = {0};
    struct error err = {0};

    if (size)
        require(buffer_add(&text, data, size, &err) == 0);
    if (checksums_read(&text, &checksums, &err) == 0)
        require(checksums.count <= size / 68);
    else
        require(error_is(&err, ERROR_INVALID) && err.noun && strcmp(err.noun, "archive") == 0);
    (void)checksums_use(&checksums, checksum, "files/a");
    checksums_clear(&checksums);
}

static void read_about(const uint8_t *data, size_t size)
{
    autobuffer text = {.maximum = SNAPSHOT_ABOUT_MAX};
    autostrings lines = {0};
    struct error err = {0};
    const char *value;

    if (size)
        require(buffer_add(&text, data, size, &err) == 0);
    if (about_read(&text, &lines, &err) < 0) {
        require(error_is(&err, ERROR_INVALID) && err.noun && strcmp(err.noun, "archive") == 0);
        return;
    }
    for (size_t at = 1; (value = about_next(&lines, "env", &at));)
        require(strlen(value) < size && at <= lines.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup(size ? (const char *)data : "", size);

    if (size > 65536)
        return 0;
    read_about(data, size);
    read_checksums(data, size);
    check_about_line(text);
    check_sum_line(text);
    return 0;
}
