/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest can learn about the host is what SECURITY.md says it is: no file more, and none less. */
#include "threat_fixture.h"

#include "base/mem.h"

#include <fnmatch.h>
#include <glob.h>

extern const char security_blob_start[] __attribute__((visibility("hidden")));

#define SECTION "\n## What a guest can learn about the host\n"
#define MAX_PATTERNS 128

/* Of the box alone, and so no fact about the host. */
static const char *const private_paths[] = {
    "/proc/self/*", "/proc/sysvipc/*", "/proc/sys/net/*", "/proc/sys/user/*", "/sys/*",
};

struct patterns {
    char *list[MAX_PATTERNS];
    unsigned count;
};

/* Every path in the first column of the section's table. */
static void read_patterns(struct patterns *patterns)
{
    const char *section = strstr(security_blob_start, SECTION);
    CHECK(section);
    const char *end = strstr(section + 1, "\n## ");
    CHECK(end);
    for (const char *line = section; (line = strstr(line, "\n| `/")) && line < end;) {
        const char *column_end = strstr(line + 2, " | ");
        CHECK(column_end);
        for (const char *at = line; (at = strstr(at, "`/")) && at < column_end;) {
            const char *close = strchr(at + 1, '`');
            CHECK(close && patterns->count < MAX_PATTERNS);
            patterns->list[patterns->count++] = strndup(at + 1, (size_t)(close - at - 1));
            at = close + 1;
        }
        line = column_end;
    }
    CHECK(patterns->count > 20);
}

static bool is_told(const struct patterns *patterns, const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(private_paths); i++) {
        if (fnmatch(private_paths[i], path, 0) == 0)
            return true;
    }
    for (unsigned i = 0; i < patterns->count; i++) {
        if (fnmatch(patterns->list[i], path, 0) == 0)
            return true;
    }
    return false;
}

static bool gives_a_byte(const char *path)
{
    char byte;
    autofd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && read(fd, &byte, 1) == 1;
}

/* Whether this machine's kernel has anything of that name to read. */
static bool is_on_host(const char *pattern)
{
    glob_t found = {0};
    bool is_there = false;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; !is_there && i < found.gl_pathc; i++)
            is_there = gives_a_byte(found.gl_pathv[i]);
    }
    globfree(&found);
    return is_there;
}

static bool is_among(const char *pattern, const char *readable)
{
    autofree char *copy = xstrdup(readable);
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (fnmatch(pattern, line, 0) == 0)
            return true;
    }
    return false;
}

BOX_TEST(what_a_guest_can_read_about_the_host_is_what_is_said)
{
    struct patterns patterns = {0};
    struct outcome outcome = RUN(launch_attacker(), "/attacker", "readable");
    unsigned wrong = 0;

    CHECK_INT(outcome.exit.code, 0);
    read_patterns(&patterns);
    for (unsigned i = 0; i < patterns.count; i++) {
        if (is_among(patterns.list[i], outcome.output) || !is_on_host(patterns.list[i]))
            continue;
        printf("# in SECURITY.md, but not readable in a sandbox: %s\n", patterns.list[i]);
        wrong++;
    }
    char *rest = outcome.output;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!*line || is_told(&patterns, line))
            continue;
        printf("# readable in a sandbox, but not in SECURITY.md: %s\n", line);
        wrong++;
    }
    CHECK_INT(wrong, 0);
}

NOTHING_IS_LEFT_TEST
