/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/runtime/runtimes.c, with real runtimes: host:latest, and builds that fail or hang. */
#include "core/runtime/runtimes.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "../core_rig.h"
#include "runtime/build.h"
#include "runtime/tool.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct runtimes *open_runtimes(char data_dir[160])
{
    struct runtimes *runtimes = NULL;
    struct error err = {0};

    (void)snprintf(data_dir, 160, "%s", fixture_fresh());
    CHECK_OK(runtimes_open(data_dir, "base:latest", &runtimes, &err), err);
    return runtimes;
}

static void rebuild(const char *data_dir, const char *name)
{
    struct runtime_build_options options = {
        .data_dir = data_dir, .is_forced = true, .cancel_fd = -1};
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse(name, &reference, &err), err);
    CHECK_OK(catalog_load(data_dir, NULL, &catalog, &err), err);
    CHECK_OK(catalog_find(catalog, &reference, &definition, &err), err);
    CHECK_OK(runtime_build(definition, &options, NULL, &err), err);
}

static struct image *get(struct runtimes *runtimes, const char *reference)
{
    struct image *image = NULL;
    struct error err = {0};

    CHECK_OK(image_get(runtimes, reference, &image, &err), err);
    return image;
}

TEST(all_share_one_open_runtime)
{
    char data_dir[160];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);

    CHECK(!runtimes_is_ready(runtimes, "host"));
    autoptr(image) one = get(runtimes, "host");
    autoptr(image) other = get(runtimes, "host:latest");
    CHECK(one == other);
    CHECK(runtimes_is_ready(runtimes, "host:latest"));
    CHECK_STR(image_runtime(one)->name, "host");
}

TEST(a_rebuilt_runtime_is_opened_again_and_the_old_one_stays_while_held)
{
    char data_dir[160], layer[300];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);
    autoptr(image) old = get(runtimes, "host");

    rebuild(data_dir, "host");
    autoptr(image) fresh = get(runtimes, "host");
    CHECK(fresh != old);
    CHECK(strcmp(image_runtime(fresh)->layers[0], image_runtime(old)->layers[0]) != 0);
    CHECK(access(image_runtime(old)->layers[0], F_OK) == 0);
    (void)snprintf(layer, sizeof layer, "%s", image_runtime(old)->layers[0]);
    image_free(take(old));
    rebuild(data_dir, "host"); // sweeps what nobody holds
    CHECK(access(layer, F_OK) < 0);
}

TEST(an_image_outlives_the_table_it_came_from)
{
    char data_dir[160];
    struct runtimes *runtimes = open_runtimes(data_dir);
    autoptr(image) image = get(runtimes, "host");

    runtimes_free(runtimes);
    CHECK(access(image_runtime(image)->layers[0], F_OK) == 0);
}

TEST(unknown_and_impossible_names_are_errors)
{
    char data_dir[160];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);
    struct image *image = NULL;
    struct error err = {0};

    CHECK(image_get(runtimes, "nothing:here", &image, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(image_get(runtimes, "a/b", &image, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(!runtimes_is_ready(runtimes, "a/b"));
    CHECK(!image);
}

struct asking {
    struct runtimes *runtimes;
    const char *reference;
    struct image *image;
    struct error err;
};

static void *ask(void *data)
{
    struct asking *asking = data;

    (void)image_get(asking->runtimes, asking->reference, &asking->image, &asking->err);
    return NULL;
}

#define ASKERS 8
static void ask_at_once(struct runtimes *runtimes, const char *reference,
                        struct asking asking[ASKERS])
{
    pthread_t threads[ASKERS];

    for (int i = 0; i < ASKERS; i++) {
        asking[i] = (struct asking){.runtimes = runtimes, .reference = reference};
        CHECK(pthread_create(&threads[i], NULL, ask, &asking[i]) == 0);
    }
    for (int i = 0; i < ASKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

TEST(threads_that_ask_at_once_get_the_same_one)
{
    char data_dir[160];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);
    struct asking asking[ASKERS];

    ask_at_once(runtimes, "host", asking);
    for (int i = 0; i < ASKERS; i++) {
        CHECK_INT(error_kind(&asking[i].err), ERROR_NONE);
        CHECK(asking[i].image == asking[0].image);
    }
    for (int i = 0; i < ASKERS; i++)
        image_free(asking[i].image);
}

// ---- builds ----

static void need_tools(void)
{
    char path[256];

    if (geteuid() != 0)
        SKIP("needs root");
    if (tool_find("mmdebstrap", path, sizeof path) < 0)
        SKIP("needs mmdebstrap");
}

// A runtime whose packages come from a port of this machine.
static void define(const char *data_dir, const char *name, unsigned port)
{
    char path[300], text[400];
    struct error err = {0};

    (void)snprintf(path, sizeof path, "%s/catalog", data_dir);
    CHECK_OK(fd_make_dirs(path, 0755, &err), err);
    autofd dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "%s.yaml", name);
    int length = snprintf(
        text, sizeof text,
        "name: %s\ntags: [latest]\ndescription: none\nbuild:\n  kind: debian\n  suite: bookworm\n"
        "  packages: []\n  mirror: http://127.0.0.1:%u/debian\n",
        name, port);
    CHECK_OK(fd_replace_file(dir_fd, path, text, (size_t)length, 0644, &err), err);
}

static unsigned count(const char *text, const char *word)
{
    unsigned found = 0;

    for (const char *at = text; (at = strstr(at, word)); at++)
        found++;
    return found;
}

// What is logged from now on; log_stop gives it back.
static int log_start(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);

    CHECK(fd >= 0);
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, fd);
    return fd;
}

static char *log_stop(int fd)
{
    autobuffer text = {.maximum = 1 << 20};
    struct error err = {0};

    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, 2);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(fd_read_buffer(fd, &text, &err), err);
    (void)close(fd);
    return text.data ? take(text.data) : strdup("");
}

TEST(a_build_happens_once_for_all_who_wait_and_fails_for_all)
{
    char data_dir[160];
    struct asking asking[ASKERS];

    need_tools();
    struct runtimes *runtimes = open_runtimes(data_dir);
    define(data_dir, "refused", 1); // nobody listens there
    int fd = log_start();
    runtimes_prefetch(runtimes, "refused");
    ask_at_once(runtimes, "refused", asking);
    bool is_ready = runtimes_is_ready(runtimes, "refused");
    runtimes_free(runtimes); // waits for the opener's last line
    autofree char *log = log_stop(fd);
    unsigned attempts = count(log, "building runtime");
    CHECK(attempts >= 1 &&
          attempts <= 2); // the last to ask may be later than the failure of the first
    for (int i = 0; i < ASKERS; i++) {
        CHECK_INT(error_kind(&asking[i].err), ERROR_UNAVAILABLE);
        CHECK(strstr(asking[i].err.text, "build runtime 'refused:latest'"));
    }
    CHECK(!is_ready);
    CHECK(strstr(log, "runtime not ready"));
}

// A port that takes connections and says nothing.
static int listen_silently(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

TEST(closing_gives_up_a_build_and_leaves_nothing_of_it)
{
    char data_dir[160], path[300];
    unsigned port;

    need_tools();
    autofd silent = listen_silently(&port);
    struct runtimes *runtimes = open_runtimes(data_dir);
    define(data_dir, "hanging", port);
    int fd = log_start();
    runtimes_prefetch(runtimes, "hanging");
    autofd connection = accept4(silent, NULL, NULL, SOCK_CLOEXEC); // apt is there: the build hangs
    CHECK(connection >= 0);
    CHECK(!runtimes_is_ready(runtimes, "hanging"));
    runtimes_free(runtimes);
    free(log_stop(fd));
    (void)snprintf(path, sizeof path, "%s/runtimes/.building-hanging-latest", data_dir);
    CHECK(access(path, F_OK) < 0);
    char byte;
    while (read(connection, &byte, 1) > 0) // its other end is closed: apt is gone
        continue;
}

TEST(a_program_that_builds_does_not_keep_the_callers_sockets_open)
{
    char data_dir[160], byte;
    unsigned port;
    int ends[2];

    need_tools();
    autofd silent = listen_silently(&port);
    CHECK(pipe(ends) == 0); // not close-on-exec either
    struct runtimes *runtimes = open_runtimes(data_dir);
    define(data_dir, "hanging", port);
    int fd = log_start();
    runtimes_prefetch(runtimes, "hanging");
    autofd connection = accept4(silent, NULL, NULL, SOCK_CLOEXEC);
    (void)close(ends[1]);
    CHECK_INT(read(ends[0], &byte, 1), 0); // would wait for the build
    (void)close(ends[0]);
    runtimes_free(runtimes);
    free(log_stop(fd));
}

static void write_definition(const char *data_dir, const char *description)
{
    char path[300], text[300];

    (void)snprintf(path, sizeof path, "%s/catalog", data_dir);
    CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
    (void)snprintf(path, sizeof path, "%s/catalog/mine.yaml", data_dir);
    (void)snprintf(text, sizeof text, "name: mine\ndescription: %s\nbuild: {kind: host}\n",
                   description);
    FILE *file = fopen(path, "we"); // in place, as people do
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* "" where the catalog has none of that name. */
static void read_description(struct runtimes *runtimes, char out[64])
{
    const struct runtime_reference mine = {.name = "mine", .tag = "latest"};
    const struct runtime_definition *definition = NULL;
    autoptr(catalog) catalog = NULL;
    struct error err = {0};

    CHECK_OK(runtimes_catalog(runtimes, &catalog, &err), err);
    if (catalog_find(catalog, &mine, &definition, &err) == 0)
        (void)snprintf(out, 64, "%s", definition->description);
    else
        out[0] = '\0';
}

TEST(the_catalog_is_as_its_files_are)
{
    char data_dir[160], path[300], found[64];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);

    read_description(runtimes, found);
    CHECK_STR(found, "");
    for (char letter = 'a'; letter < 'k'; letter++) { // of one size, and perhaps of one time
        const char text[] = {letter, letter, '\0'};
        write_definition(data_dir, text);
        read_description(runtimes, found);
        CHECK_STR(found, text);
    }
    (void)snprintf(path, sizeof path, "%s/catalog/mine.yaml", data_dir);
    CHECK(unlink(path) == 0);
    read_description(runtimes, found);
    CHECK_STR(found, "");
}

TEST(a_catalog_that_has_not_changed_is_not_read_again)
{
    char data_dir[160];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);
    autoptr(catalog) one = NULL;
    autoptr(catalog) other = NULL;
    struct error err = {0};

    CHECK_OK(runtimes_catalog(runtimes, &one, &err), err);
    CHECK_OK(runtimes_catalog(runtimes, &other, &err), err);
    CHECK(one == other);
}

TEST(a_catalog_with_a_file_that_this_machine_could_not_read_is_read_again)
{
    char data_dir[160], path[300];
    autoptr(runtimes) runtimes = open_runtimes(data_dir);
    autoptr(catalog) one = NULL;
    autoptr(catalog) other = NULL;
    struct error err = {0};

    (void)snprintf(path, sizeof path, "%s/catalog", data_dir);
    CHECK_OK(fd_make_dirs(path, 0755, &err), err);
    (void)snprintf(path, sizeof path, "%s/catalog/mine.yaml", data_dir);
    CHECK(symlink("/usr", path) == 0); // opens, has not changed lately, and cannot be read
    CHECK_OK(runtimes_catalog(runtimes, &one, &err), err);
    CHECK_OK(runtimes_catalog(runtimes, &other, &err), err);
    CHECK(catalog_is_unsure(one) && catalog_fault_at(one, 0));
    CHECK(one != other);
}
