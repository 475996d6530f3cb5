/* SPDX-License-Identifier: Apache-2.0 */
/* The user grammar, and user files that a guest wrote. */
#include "base/auto.h"
#include "base/fd.h"
#include "init/users.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

static char root_dir[64];

static void sweep(void)
{
    struct error err;
    (void)fd_remove_tree(AT_FDCWD, root_dir, &err);
}

static int make_root(void)
{
    struct error err;
    if (!root_dir[0])
        (void)atexit(sweep);
    else
        (void)fd_remove_tree(AT_FDCWD, root_dir, &err);
    (void)snprintf(root_dir, sizeof root_dir, "/tmp/burrow-users-XXXXXX");
    CHECK(mkdtemp(root_dir) != NULL);
    int fd = open(root_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && mkdirat(fd, "etc", 0755) == 0);
    return fd;
}

static void put(int root, const char *name, const char *text)
{
    autofd fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, text, strlen(text)) == 0);
}

static int make_usual(void)
{
    int root = make_root();
    put(root, "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\n"
        "# a comment\n"
        "short:x:5\n"
        "agent:x:1000:1000:An Agent,,,:/home/agent:/bin/sh\n"
        "agent:x:0:0:a second line must not count:/:/bin/sh\n"
        "twin:x:1000:7:same number:/twin:/bin/sh\n"
        "relative:x:1001:1001::home:/bin/sh\n"
        "large:x:65536:1000::/:/bin/sh\n"
        "signed:x:-1:1000::/:/bin/sh\n"
        "nothing:x::::/:/bin/sh\n"
        "0x0:x:0:0::/:/bin/sh\n"
        "1234:x:0:0::/:/bin/sh\n"
        "last:x:65535:65535::/last:/bin/sh");
    put(root, "etc/group",
        "root:x:0:\n"
        "agent:x:1000:\n"
        "wheel:x:10:root,agent\n"
        "docker:x:11:agent,,root\n"
        "docker2:x:11:agent\n"
        "prefix:x:12:agent2,agen\n"
        "bad:x:0x5:agent\n"
        "staff:x:50:\n");
    return root;
}

static int find(int root, const char *text, struct user_info *out, char *message)
{
    return users_find_in(root, text, out, message, 300);
}

TEST(names_and_numbers_are_found_exactly)
{
    autofd root = make_usual();
    char message[300];
    static const struct {
        const char *text;
        uint32_t uid, gid, n_groups;
        const char *name, *home;
    } rows[] = {
        {"root", 0, 0, 2, "root", "/root"},
        {"0", 0, 0, 2, "root", "/root"},
        {"agent", 1000, 1000, 2, "agent", "/home/agent"},
        {"1000", 1000, 1000, 2, "agent", "/home/agent"},
        {"twin", 1000, 7, 0, "twin", "/twin"},
        {"relative", 1001, 1001, 0, "relative", "/"},
        {"last", 65535, 65535, 0, "last", "/last"},
        {"4000", 4000, 4000, 0, "", "/"},
        {"1234", 1234, 1234, 0, "", "/"},
        {"agent:staff", 1000, 50, 0, "agent", "/home/agent"},
        {"agent:0", 1000, 0, 0, "agent", "/home/agent"},
        {"4000:4001", 4000, 4001, 0, "", "/"},
        {"0:65535", 0, 65535, 0, "root", "/root"},
        {"0:root", 0, 0, 0, "root", "/root"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct user_info info = {0};
        if (find(root, rows[i].text, &info, message) < 0)
            test_fail(__FILE__, __LINE__, "'%s': %s", rows[i].text, message);
        CHECK_INT(info.uid, rows[i].uid);
        CHECK_INT(info.gid, rows[i].gid);
        CHECK_INT(info.n_groups, rows[i].n_groups);
        CHECK_STR(info.name, rows[i].name);
        CHECK_STR(info.home, rows[i].home);
    }
}

TEST(anything_else_is_an_error_and_leaves_the_result_alone)
{
    autofd root = make_usual();
    char message[300];
    static const char *const texts[] = {
        "",
        " ",
        "0x0",
        " 1",
        "1 ",
        "1:",
        ":0",
        ":",
        "1:2:3",
        "-1",
        "+1",
        "4294967295",
        "4294967296",
        "65536",
        "99999",
        "00",
        "01",
        "1.0",
        "1e3",
        "0:-1",
        "0:65536",
        "0: 1",
        "nobody",
        "agent:nobody",
        "Agent",
        "agent\n",
        "root\n0",
        "large",
        "signed",
        "nothing",
        "short",
        "-",
        "--root",
        "root ",
        "ag*",
        "agent:bad",
        "18446744073709551616",
        "1\t",
        "\xff",
        "#",
        "agent:",
        "root:x:0",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct user_info info = {.uid = 77, .gid = 78};
        message[0] = '\0';
        if (find(root, texts[i], &info, message) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken as %u:%u", texts[i], info.uid, info.gid);
        CHECK(message[0] != '\0');
        CHECK_INT(info.uid, 77);
        CHECK_INT(info.gid, 78);
    }
}

TEST(errors_say_what_was_meant_and_where_it_was_looked_for)
{
    autofd root = make_usual();
    struct user_info info;
    char message[300];
    CHECK(find(root, "nobody", &info, message) < 0);
    CHECK_STR(message, "no user 'nobody' in the sandbox's /etc/passwd");
    CHECK(find(root, "agent:nobody", &info, message) < 0);
    CHECK_STR(message, "no group 'nobody' in the sandbox's /etc/group");
    CHECK(find(root, "large", &info, message) < 0);
    CHECK_STR(message, "user 'large' has an id that is no number from 0 to 65535");
    CHECK(find(root, "0x0", &info, message) < 0);
    CHECK_STR(message, "user '0x0' is neither a name nor a number from 0 to 65535, nor two of "
                       "them as user:group");
}

TEST(a_box_without_user_files_still_knows_numbers)
{
    autofd root = make_root();
    struct user_info info = {0};
    char message[300];
    CHECK(find(root, "0", &info, message) == 0);
    CHECK_INT(info.uid + info.gid, 0);
    CHECK_STR(info.home, "/");
    CHECK(find(root, "1000:1001", &info, message) == 0);
    CHECK_INT(info.gid, 1001);
    CHECK(find(root, "root", &info, message) < 0);
    CHECK_STR(message, "open '/etc/passwd': No such file or directory");
}

TEST(hostile_user_files_are_never_waited_for_or_followed_out)
{
    autofd root = make_root();
    struct user_info info = {0};
    char message[300], large[70000];
    CHECK(mkfifoat(root, "etc/passwd", 0666) == 0);
    CHECK(find(root, "root", &info, message) < 0);
    CHECK(strstr(message, "is a FIFO") != NULL);
    CHECK(find(root, "0", &info, message) == 0);
    CHECK(unlinkat(root, "etc/passwd", 0) == 0);

    // the machine's own file must not be read through a link
    CHECK(symlinkat("/etc/passwd", root, "etc/passwd") == 0);
    CHECK(find(root, "root", &info, message) < 0);
    CHECK(unlinkat(root, "etc/passwd", 0) == 0);
    CHECK(symlinkat("../../../../../../etc/hostname", root, "etc/passwd") == 0);
    CHECK(find(root, "root", &info, message) < 0);
    CHECK(unlinkat(root, "etc/passwd", 0) == 0);
    CHECK(symlinkat("/usr/passwd", root, "etc/passwd") == 0);
    CHECK(mkdirat(root, "usr", 0755) == 0);
    put(root, "usr/passwd", "root:x:0:0::/linked:/bin/sh\n");
    CHECK(find(root, "root", &info, message) == 0);
    CHECK_STR(info.home, "/linked");

    autofd fd = openat(root, "usr/passwd", O_WRONLY | O_CLOEXEC);
    CHECK(ftruncate(fd, INT64_C(1) << 40) == 0);
    CHECK(find(root, "root", &info, message) < 0);
    CHECK_STR(message, "'/etc/passwd' is larger than 1048576 bytes");

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    memcpy(large, "root:x:0:0::/", 13);
    memcpy(large + sizeof large - 5, ":sh\n", 4);
    put(root, "usr/passwd", large); // a home too long to be one
    CHECK(find(root, "root", &info, message) == 0);
    CHECK_STR(info.home, "/");
}

TEST(more_groups_than_fit_is_an_error_and_a_given_group_the_way_out)
{
    autofd root = make_root();
    struct user_info info = {0};
    char message[300], groups[4096];
    size_t used = 0;
    put(root, "etc/passwd", "a:x:1:1::/:/bin/sh\n");
    for (int i = 0; i < USERS_MAX_GROUPS + 1; i++)
        used += (size_t)snprintf(groups + used, sizeof groups - used, "g%d:x:%d:a\n", i, 100 + i);
    put(root, "etc/group", groups);
    CHECK(find(root, "a", &info, message) < 0);
    CHECK_STR(message, "user 'a' is in more than 64 groups");
    CHECK(find(root, "a:g7", &info, message) == 0);
    CHECK_INT(info.gid, 107);
    CHECK_INT(info.n_groups, 0);
}
