/* SPDX-License-Identifier: Apache-2.0 */
/* Archives made by the real burrow-archive, read back by it and by other people's programs. Needs root. */
#include "archive/packer.h"
#include "archive_fixture.h"
#include "base/auto.h"
#include "base/fd.h"

#include <sys/stat.h>

static void add_record(struct packer *packer, const char *path, uint32_t mode, const char *text)
{
    struct error err = {0};
    bool is_file = S_ISREG(mode);
    struct files_item item = {.path = path,
                              .target = S_ISLNK(mode) ? text : "",
                              .mode = mode,
                              .uid = 1000,
                              .mtime_ns = 1700000000123456789,
                              .size = is_file ? strlen(text) : 0};
    CHECK_OK(packer_item(packer, &item, &err), err);
    if (item.size)
        CHECK_OK(packer_data(packer, text, item.size, &err), err);
}

static void add_tree(struct packer *packer, bool is_reversed)
{
    static const struct {
        const char *path;
        uint32_t mode;
        const char *text;
    } records[] = {
        {"a", S_IFDIR | 0750, ""},
        {"a/run", S_IFREG | 04755, "#!/bin/sh\n"},
        {"a/z", S_IFREG | 0600, ""},
        {"a-b", S_IFREG | 0644, "between"},
        {"gr\xc3\xbc\xc3\x9f", S_IFREG | 0644, "utf-8"},
        {"link", S_IFLNK | 0777, "../a/run"},
    };
    size_t count = ARRAY_SIZE(records);
    for (size_t i = 0; i < count; i++) {
        size_t at = is_reversed ? count - 1 - i : i;
        add_record(packer, records[at].path, records[at].mode, records[at].text);
    }
}

static void finish(struct packer *packer, struct buffer *out)
{
    autobuffer none = {0};
    autofd fd = file_of(&none);
    struct error err = {0};
    uint64_t size = 0;
    CHECK_OK(packer_finish(packer, fd, &size, &err), err);
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 0);
    CHECK_OK(fd_read_buffer(fd, out, &err), err);
    CHECK_INT(out->length, size);
}

static void pack_tree(const struct archive_task *task, bool is_reversed, struct buffer *out)
{
    autobuffer none = {0};
    autoptr(packer) packer = packer_new(task, file_of(&none));
    add_tree(packer, is_reversed);
    finish(packer, out);
}

TEST(what_is_packed_comes_out_as_it_was_in_the_order_of_names)
{
    struct archive_task task = plain_task();
    for (task.format = ARCHIVE_TAR_GZIP; task.format <= ARCHIVE_ZIP; task.format++) {
        autobuffer archive = {0};
        autounpacked out;
        pack_tree(&task, false, &archive);
        unpack(&task, &archive, &out);
        CHECK_INT(out.result, 0);
        CHECK_STR(out.text.data, "040750 a\n"
                                 "100755 a/run: #!/bin/sh\n\n"
                                 "100600 a/z\n"
                                 "100644 a-b: between\n"
                                 "100644 gr\xc3\xbc\xc3\x9f: utf-8\n"
                                 "120777 link -> ../a/run\n");
        CHECK_INT(out.last_mtime_ns, 1700000000000000000);
    }
}

TEST(the_same_files_make_the_same_archive)
{
    struct archive_task task = plain_task();
    for (task.format = ARCHIVE_TAR_GZIP; task.format <= ARCHIVE_ZIP; task.format++) {
        autobuffer first = {0}, second = {0};
        pack_tree(&task, false, &first);
        pack_tree(&task, true, &second);
        CHECK_INT(first.length, second.length);
        CHECK(memcmp(first.data, second.data, first.length) == 0);
    }
}

/* What another program says about an archive on its stdin. */
static void ask_python(const char *script, const struct buffer *archive, char *text, size_t size)
{
    char command[1200];
    autofd fd = file_of(archive);
    if (access("/usr/bin/python3", X_OK) < 0)
        SKIP("no python3 to read archives with");
    (void)snprintf(command, sizeof command, "/usr/bin/python3 -c \"%s\" < /proc/%d/fd/%d", script,
                   (int)getpid(), fd);
    FILE *pipe = popen(command, "re");
    CHECK(pipe);
    size_t got = fread(text, 1, size - 1, pipe);
    text[got] = '\0';
    CHECK_INT(pclose(pipe), 0);
}

#define MANY 600

/* Most of them travel together, some alone. */
static size_t length_of(unsigned number)
{
    return number % 300 == 9 ? 150000 : number % 30 == 1 ? 20000 + number : number % 3;
}

static void pack_many(const struct archive_task *task, bool is_reversed, struct buffer *out)
{
    autobuffer none = {0};
    autoptr(packer) packer = packer_new(task, file_of(&none));
    static char text[150001];
    char name[20];
    for (unsigned i = 0; i < MANY; i++) {
        unsigned number = is_reversed ? MANY - 1 - i : i;
        (void)snprintf(name, sizeof name, "f%04u", number);
        memset(text, 'a' + (int)(number % 26), sizeof text);
        text[length_of(number)] = '\0';
        add_record(packer, name, S_IFREG | 0644, text);
    }
    finish(packer, out);
}

TEST(small_and_large_files_in_any_order_keep_their_bytes)
{
    struct archive_task task = plain_task();
    autobuffer first = {0}, second = {0};
    char text[100];
    task.format = ARCHIVE_TAR;
    pack_many(&task, false, &first);
    pack_many(&task, true, &second);
    CHECK_INT(first.length, second.length);
    CHECK(memcmp(first.data, second.data, first.length) == 0);
    ask_python(
        "import sys, tarfile, io\n"
        "t = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), mode='r:')\n"
        "length = lambda i: 150000 if i % 300 == 9 else 20000 + i if i % 30 == 1 else i % 3\n"
        "n = 0\n"
        "for i, m in enumerate(t):\n"
        "    n += m.name == f'f{i:04}' and t.extractfile(m).read() == bytes([97 + i % 26]) * "
        "length(i)\n"
        "print(n, i + 1)\n",
        &first, text, sizeof text);
    CHECK_STR(text, "600 600\n");
}

TEST(other_programs_read_our_tar)
{
    struct archive_task task = plain_task();
    autobuffer archive = {0};
    char text[2000];
    task.format = ARCHIVE_TAR_GZIP;
    pack_tree(&task, false, &archive);
    ask_python("import sys, tarfile, io\n"
               "t = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), mode='r:gz')\n"
               "for m in t: print(m.name.encode(), oct(m.mode), m.type.decode(), m.size, "
               "m.linkname, m.uid, int(m.mtime))\n",
               &archive, text, sizeof text);
    CHECK_STR(text, "b'a' 0o750 5 0  0 1700000000\n"
                    "b'a/run' 0o755 0 10  0 1700000000\n"
                    "b'a/z' 0o600 0 0  0 1700000000\n"
                    "b'a-b' 0o644 0 7  0 1700000000\n"
                    "b'gr\\xc3\\xbc\\xc3\\x9f' 0o644 0 5  0 1700000000\n"
                    "b'link' 0o777 2 0 ../a/run 0 1700000000\n");
}

TEST(other_programs_read_our_zip)
{
    struct archive_task task = plain_task();
    autobuffer archive = {0};
    char text[2000];
    task.format = ARCHIVE_ZIP;
    pack_tree(&task, false, &archive);
    ask_python("import sys, zipfile, io\n"
               "z = zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n"
               "assert z.testzip() is None\n"
               "for m in z.infolist(): print(m.filename.encode(), oct(m.external_attr >> 16), "
               "z.read(m))\n",
               &archive, text, sizeof text);
    CHECK_STR(text, "b'a/' 0o40750 b''\n"
                    "b'a/run' 0o100755 b'#!/bin/sh\\n'\n"
                    "b'a/z' 0o100600 b''\n"
                    "b'a-b' 0o100644 b'between'\n"
                    "b'gr\\xc3\\xbc\\xc3\\x9f' 0o100644 b'utf-8'\n"
                    "b'link' 0o120777 b'../a/run'\n");
}

TEST(nothing_makes_an_empty_archive)
{
    struct archive_task task = plain_task();
    for (task.format = ARCHIVE_TAR_GZIP; task.format <= ARCHIVE_ZIP; task.format++) {
        autobuffer archive = {0}, none = {0};
        autounpacked out;
        autoptr(packer) packer = packer_new(&task, file_of(&none));
        finish(packer, &archive);
        CHECK(archive.length > 0);
        unpack(&task, &archive, &out);
        CHECK_INT(out.result, 0);
        CHECK_INT(out.records, 0);
    }
}

TEST(long_and_odd_names_survive)
{
    struct archive_task task = plain_task();
    char path[3000];
    for (size_t i = 0; i < sizeof path - 1; i++)
        path[i] = i % 200 == 199 ? '/' : 'n';
    path[sizeof path - 1] = '\0';
    for (task.format = ARCHIVE_TAR_GZIP; task.format <= ARCHIVE_ZIP; task.format++) {
        autobuffer archive = {0}, none = {0};
        autounpacked out;
        autoptr(packer) packer = packer_new(&task, file_of(&none));
        add_record(packer, "latin \xfc", S_IFREG | 0644, "1");
        add_record(packer, "new\nline", S_IFREG | 0644, "2");
        add_record(packer, path, S_IFREG | 0644, "3");
        add_record(packer, "zlink", S_IFLNK | 0777, path);
        finish(packer, &archive);
        unpack(&task, &archive, &out);
        CHECK_OK(out.result, out.err);
        CHECK(strstr(out.text.data, "100644 latin \xfc: 1\n"));
        CHECK(strstr(out.text.data, "100644 new\nline: 2\n"));
        CHECK(strstr(out.text.data, path));
        CHECK_INT(out.records, 4);
    }
}

TEST(an_archive_larger_than_allowed_is_not_made)
{
    struct archive_task task = plain_task();
    size_t length = 200000;
    char *noise = malloc(length);
    uint32_t seed = 1;
    CHECK(noise);
    for (size_t i = 0; i < length; i++)
        noise[i] = (char)('!' + ((seed = seed * 1664525 + 1013904223) >> 24) % 90);
    noise[length - 1] = '\0';
    task.max_bytes = length;
    for (task.format = ARCHIVE_TAR_GZIP; task.format <= ARCHIVE_ZIP; task.format++) {
        autobuffer none = {0};
        autofd fd = file_of(&none);
        struct error err = {0};
        uint64_t size;
        struct archive_task small = task;
        autoptr(packer) packer = packer_new(&small, file_of(&none));
        add_record(packer, "noise", S_IFREG | 0644, noise);
        small.max_bytes = 50000;
        CHECK(packer_finish(packer, fd, &size, &err) < 0);
        CHECK(error_is(&err, ERROR_LIMIT) || error_is(&err, ERROR_INVALID));
        CHECK_STR(err.noun, "archive");
    }
    free(noise);
}

TEST(more_files_than_allowed_are_refused)
{
    struct archive_task task = plain_task();
    autobuffer none = {0};
    struct error err = {0};
    autoptr(packer) packer = packer_new(&task, file_of(&none));
    struct files_item item = {.path = "a", .target = "", .mode = S_IFDIR | 0755};
    for (unsigned i = 0; i < task.max_entries; i++)
        CHECK_OK(packer_item(packer, &item, &err), err);
    CHECK(packer_item(packer, &item, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.noun, "archive");
}
