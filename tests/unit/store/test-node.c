/* SPDX-License-Identifier: Apache-2.0 */
/* Which node this is (src/store/node.c), and what that means: rows of other nodes are left alone. */
#include "base/id.h"
#include "base/mem.h"
#include "fixture.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_data_directory_gets_one_identity_for_good)
{
    char first[ID_TEXT];

    fixture_fresh();
    (void)snprintf(first, sizeof first, "%s", store_node(fixture_open()));
    CHECK(id_is_valid(first));
    CHECK_STR(store_node(fixture_open()), first);
    fixture_fresh();
    CHECK(strcmp(store_node(fixture_open()), first) != 0);
}

// What a process of its own calls the node.
static pid_t ask(int out)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct store *store = NULL;
        struct error err = {0};
        const char *node =
            store_open(fixture_directory(), &store, &err) < 0 ? err.text : store_node(store);
        (void)!write(out, node, ID_LENGTH);
        _exit(0);
    }
    return pid;
}

TEST(processes_that_start_at_once_agree_on_it)
{
    pid_t pids[4];
    char said[4][ID_TEXT] = {0};
    int ends[2];

    fixture_fresh();
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 4; i++)
        pids[i] = ask(ends[1]);
    for (int i = 0; i < 4; i++) {
        CHECK(read(ends[0], said[i], ID_LENGTH) == ID_LENGTH);
        CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK(id_is_valid(said[0]));
    for (int i = 1; i < 4; i++)
        CHECK_STR(said[i], said[0]);
}

TEST(an_identity_that_is_none_is_refused)
{
    struct store *store = NULL;
    struct error err = {0};

    fixture_fresh();
    autofree char *path = xasprintf("%s/node", fixture_directory());
    FILE *file = fopen(path, "w");
    CHECK(file && fputs("nonsense\n", file) >= 0 && fclose(file) == 0);
    CHECK(store_open(fixture_directory(), &store, &err) < 0);
    CHECK_INT(err.kind, ERROR_INVALID);
    CHECK(strstr(err.text, path));
}

TEST(the_store_knows_what_it_takes_on_the_disk)
{
    struct stat status;

    CHECK(!store_exists(fixture_fresh()));
    struct store *store = fixture_store();
    CHECK(store_exists(fixture_directory()));
    CHECK(stat(fixture_path(), &status) == 0);
    CHECK(store_disk_bytes(store) > (uint64_t)status.st_blocks * 512);
}
