/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in boxes under test, and what they say; see box_fixture.h. */
#include "box_fixture.h"

#include "base/fd.h"
#include "engine/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PROCESSES 16384
#define MAX_WORDS 64

static struct outputs {
    int fds[2]; // memory files, or 0
    char *text[2];
} outputs[MAX_PROCESSES];
static uint32_t last_id;

static void forget_output(struct outputs *o)
{
    for (int i = 0; i < 2; i++) {
        if (o->fds[i] > 0)
            (void)close(o->fds[i]);
        free(o->text[i]);
    }
    *o = (struct outputs){0};
}

void forget_outputs(void)
{
    for (uint32_t i = 0; i < MAX_PROCESSES; i++)
        forget_output(&outputs[i]);
    last_id = 0;
}

uint32_t next_id(void)
{
    return ++last_id;
}

static int open_spool(struct outputs *o, int index)
{
    o->fds[index] = memfd_create("spool", MFD_CLOEXEC);
    CHECK(o->fds[index] > 0);
    return o->fds[index];
}

uint32_t start_argv(struct box *box, const struct process_spec *how, const char *const *argv)
{
    static const char *const no_env[] = {NULL};
    struct process_spec spec = how ? *how : (struct process_spec){0};
    struct error err = {0};

    spec.id = next_id();
    CHECK(spec.id < MAX_PROCESSES);
    spec.command.argv = argv;
    spec.command.env = spec.command.env ? spec.command.env : no_env;
    spec.stdin_fd = spec.stdin_fd ? spec.stdin_fd : -1;
    spec.output = OUTPUT_SPOOL;
    spec.stdout_fd = spec.stdout_fd ? spec.stdout_fd : open_spool(&outputs[spec.id], 0);
    spec.stderr_fd = spec.stderr_fd ? spec.stderr_fd : open_spool(&outputs[spec.id], 1);
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    return spec.id;
}

void split_words(char *text, const char **argv)
{
    unsigned count = 0;
    argv[count++] = "guest";
    for (char *at = strtok(text, " "); at && count < MAX_WORDS - 1; at = strtok(NULL, " "))
        argv[count++] = at;
    argv[count] = NULL;
}

uint32_t start(struct box *box, const struct process_spec *how, const char *command)
{
    char text[1024];
    const char *argv[MAX_WORDS];
    CHECK(strlen(command) < sizeof text);
    (void)strcpy(text, command);
    split_words(text, argv);
    return start_argv(box, how, argv);
}

struct process_exit finish(struct box *box, uint32_t id)
{
    struct process_exit exit = {0};
    struct error err = {0};
    CHECK_OK(box_wait(box, id, PATIENCE_MS, &exit, &err), err);
    CHECK_INT(exit.id, id);
    return exit;
}

struct process_exit run_as(struct box *box, const struct process_spec *how, const char *command)
{
    return finish(box, start(box, how, command));
}

struct process_exit run(struct box *box, const char *command)
{
    return run_as(box, NULL, command);
}

void run_well(struct box *box, const char *command)
{
    struct process_exit exit = run(box, command);
    if (exit.cause != CAUSE_EXIT || exit.code != 0)
        test_fail(__FILE__, __LINE__, "'%s' ended with %d (%s), saying '%s'", command, exit.code,
                  exit.text, errors_of(last_id));
}

static const char *read_spool(uint32_t id, int index)
{
    struct outputs *o = &outputs[id];
    struct stat info = {0};
    if (o->fds[index] <= 0)
        return "";
    CHECK(fstat(o->fds[index], &info) == 0);
    free(o->text[index]);
    o->text[index] = calloc(1, (size_t)info.st_size + 1);
    CHECK(pread(o->fds[index], o->text[index], (size_t)info.st_size, 0) == info.st_size);
    return o->text[index];
}

const char *output_of(uint32_t id)
{
    return read_spool(id, 0);
}

const char *errors_of(uint32_t id)
{
    return read_spool(id, 1);
}

const char *last_output(void)
{
    return output_of(last_id);
}

size_t output_size(uint32_t id)
{
    struct stat info = {0};
    CHECK(fstat(outputs[id].fds[0], &info) == 0);
    return (size_t)info.st_size;
}

void await_output(uint32_t id, const char *text)
{
    int64_t end = now_ms() + PATIENCE_MS;
    while (!strstr(output_of(id), text)) {
        if (now_ms() > end)
            test_fail(__FILE__, __LINE__, "process %u said '%s' and never '%s'", id, output_of(id),
                      text);
        nap();
    }
}

uint32_t start_ready(struct box *box, const struct process_spec *how, const char *command)
{
    uint32_t id = start(box, how, command);
    await_output(id, "ready\n");
    return id;
}

const char *processes_in(struct box *box)
{
    run_well(box, "ps");
    return last_output();
}

static int take_count(void *data, const void *bytes, size_t length, struct error *err)
{
    if (length >= sizeof(uint64_t))
        memcpy(data, bytes, sizeof(uint64_t));
    return 0;
}

uint64_t count_in(struct box *box, const char *path)
{
    uint64_t count = 0;
    struct files_item item;
    struct error err = {0};
    int conv = -1;
    CHECK_OK(box_files(box, NULL, NULL, &conv, &err), err);
    int result = files_read(conv, path, 0, sizeof count, &item, take_count, &count, NULL, &err);
    (void)close(conv);
    CHECK_OK(result, err);
    return count;
}
