/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/runtime/sources.c: which entries of apt are Debian's, and what becomes of them. */
#include "runtime/sources.h"

#include "base/fd.h"
#include "base/mem.h"
#include "test.h"

#include <fcntl.h>

struct machine {
    char dir[64];
};

// Of the test at hand: a failing one does not come to its cleanup, so the next one or the end does
// it.
static struct machine current;

__attribute__((destructor)) static void clear_current(void)
{
    struct error err;
    if (*current.dir)
        (void)fd_remove_tree(AT_FDCWD, current.dir, &err);
}

static void machine_clear(struct machine *machine)
{
    struct error err;
    (void)fd_remove_tree(AT_FDCWD, machine->dir, &err);
}
#define automachine __attribute__((cleanup(machine_clear))) struct machine

static struct machine make_machine(void)
{
    struct machine machine = {"/tmp/burrow-sources-XXXXXX"};
    struct error err = {0};

    clear_current();
    CHECK(mkdtemp(machine.dir));
    current = machine;
    autofree char *parts = xasprintf("%s/apt/sources.list.d", machine.dir);
    autofree char *lists = xasprintf("%s/lists", machine.dir);
    CHECK_OK(fd_make_dirs(parts, 0755, &err), err);
    CHECK_OK(fd_make_dirs(lists, 0755, &err), err);
    return machine;
}

static void put(const struct machine *machine, const char *name, const char *text)
{
    autofree char *path = xasprintf("%s/%s", machine->dir, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, text, strlen(text)) == 0);
}

static const char *const main_only[] = {"main", NULL};

static int find(const struct machine *machine, struct buffer *out, struct error *err)
{
    autofree char *apt = xasprintf("%s/apt", machine->dir);
    autofree char *lists = xasprintf("%s/lists", machine->dir);
    struct sources_place place = {.apt_dir = apt, .lists_dir = lists};

    return sources_of_machine(&place, "bookworm", main_only, out, err);
}

static void finds(const struct machine *machine, const char *want)
{
    autobuffer out = {0};
    struct error err = {0};

    CHECK_OK(find(machine, &out, &err), err);
    CHECK_STR(out.data, want);
}

TEST(deb822_stanzas_are_read)
{
    automachine machine = make_machine();
    put(&machine, "apt/sources.list.d/debian.sources",
        "Types: deb deb-src\n# a comment\nURIs: http://mirror.test/debian/\n"
        "Suites: bookworm bookworm-updates\n  bookworm-backports\nComponents: main contrib\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        "types: deb\nuris: http://mirror.test/debian-security\nsuites: bookworm-security\n"
        "components: main\n");
    finds(&machine, "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                    "http://mirror.test/debian bookworm main\n"
                    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                    "http://mirror.test/debian bookworm-updates main\n"
                    "deb http://mirror.test/debian-security bookworm-security main\n");
}

TEST(one_line_entries_are_read)
{
    automachine machine = make_machine();
    put(&machine, "apt/sources.list",
        "# deb http://old.test/debian bookworm main\n"
        "deb http://mirror.test/debian bookworm main non-free # here\n"
        "deb-src http://mirror.test/debian bookworm main\n"
        "deb [ arch=amd64 trusted=yes ] http://mirror.test/debian bookworm-updates main\n"
        "deb http://mirror.test/debian bookworm main\n");
    finds(&machine, "deb http://mirror.test/debian bookworm main\n"
                    "deb [trusted=yes] http://mirror.test/debian bookworm-updates main\n");
}

TEST(entries_of_other_vendors_are_left_out)
{
    automachine machine = make_machine();
    put(&machine, "apt/sources.list",
        "deb http://mirror.test/debian bookworm main\n"
        "deb [signed-by=/etc/apt/keyrings/docker.gpg] https://docker.test/linux/debian bookworm "
        "stable\n"
        "deb [signed-by=/usr/share/keyrings/vendor.gpg] https://vendor.test/debian bookworm main\n"
        "deb [signed-by=0123456789ABCDEF] https://other.test/debian bookworm main\n"
        "deb https://origin.test/stable/debian bookworm main\n"
        "deb cdrom:[Debian] bookworm main\n");
    put(&machine, "apt/sources.list.d/off.sources",
        "Enabled: no\nTypes: deb\nURIs: http://off.test/debian\nSuites: bookworm\nComponents: "
        "main\n");
    put(&machine, "apt/sources.list.d/saved.list.save",
        "deb http://save.test/debian bookworm main\n");
    put(&machine, "lists/origin.test_stable_debian_dists_bookworm_InRelease",
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: Vendor\nLabel: x\n");
    finds(&machine, "deb http://mirror.test/debian bookworm main\n");
}

TEST(what_apt_knows_of_the_origin_decides)
{
    automachine machine = make_machine();
    put(&machine, "apt/sources.list",
        "deb [signed-by=/etc/apt/keyrings/own.gpg] http://inside.test/debian bookworm main\n");
    put(&machine, "lists/inside.test_debian_dists_bookworm_InRelease",
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: Debian\nLabel: Debian\n");
    finds(&machine,
          "deb [signed-by=/etc/apt/keyrings/own.gpg] http://inside.test/debian bookworm main\n");
}

TEST(a_machine_of_another_suite_lends_its_mirror)
{
    automachine machine = make_machine();
    put(&machine, "apt/sources.list",
        "deb http://mirror.test/debian trixie main\n"
        "deb http://mirror.test/debian trixie-updates main\n"
        "deb http://mirror.test/debian-security trixie-security main\n"
        "deb http://mirror.test/debian trixie-backports main\n"
        "deb http://vendor.test/ stable-x main\n");
    finds(&machine, "deb http://mirror.test/debian bookworm main\n"
                    "deb http://mirror.test/debian bookworm-updates main\n"
                    "deb http://mirror.test/debian-security bookworm-security main\n");
}

TEST(a_machine_without_debian_is_told_the_way_out)
{
    automachine machine = make_machine();
    autobuffer out = {0};
    struct error err = {0};

    put(&machine, "apt/sources.list", "deb http://archive.test/ubuntu noble main\n");
    CHECK(find(&machine, &out, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK_STR(err.text,
              "this machine's apt sources name no Debian mirror; give one with --mirror or "
              "BURROW_DEBIAN_MIRROR, or use the runtime host:latest");
}

TEST(a_named_mirror_may_have_a_security_archive)
{
    struct sources_place place = {.keyring = "/nonexistent"};
    autobuffer one = {0}, two = {0};
    struct error err = {0};

    CHECK_OK(sources_of_mirror(&place, "http://m.test/debian", "bookworm", main_only, &one, &err),
             err);
    CHECK_STR(one.data, "deb http://m.test/debian bookworm main\n"
                        "deb http://m.test/debian bookworm-updates main\n");
    CHECK_OK(sources_of_mirror(&place, "http://m.test/debian,https://s.test/sec", "bookworm",
                               main_only, &two, &err),
             err);
    CHECK_STR(two.data, "deb http://m.test/debian bookworm main\n"
                        "deb http://m.test/debian bookworm-updates main\n"
                        "deb https://s.test/sec bookworm-security main\n");
}

TEST(a_mirror_that_is_no_address_is_refused)
{
    static const char *const bad[] = {
        "",           "m.test",      "file:///x",
        "http://",    "http://a b/", "http://a/\ndeb http://b/ x main",
        "http://a/,x"};
    struct sources_place place = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        autobuffer out = {0};
        struct error err = {0};
        CHECK(sources_of_mirror(&place, bad[i], "bookworm", main_only, &out, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(out.length == 0);
    }
}
