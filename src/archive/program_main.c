/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-archive: unpacks or makes one archive for the server, without any right.
 * usage: burrow-archive unpack|pack any|tar.gz|zip|tar.zst|tar|zst|layer MAX-BYTES MAX-ENTRIES     fd 0: records, fd 1: the archive
 */
#include "archive/archive_filter.h"
#include "archive/program.h"
#include "archive/records.h"
#include "base/auto.h"
#include "base/confine.h"
#include "base/mem.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define MEMORY_BYTES ((uint64_t)256 << 20) // address space beyond what the libraries take
#define LIBRARY_BYTES ((uint64_t)128 << 20)
#define CPU_SECONDS 60                       // and a second more for each
#define BYTES_PER_SECOND ((uint64_t)4 << 20) // of content

void program_send(uint16_t type, const void *data, size_t length)
{
    struct iovec part = {(void *)data, length};
    if (files_frame_send(PROGRAM_CONVERSATION, type, 0, &part, 1) < 0)
        _exit(1); // nobody is there to be told
}

static void send_error(const struct error *err)
{
    struct files_failure failure = {.sys = err->sys, .kind = err->reason};
    struct iovec parts[] = {{&failure, sizeof failure}, {(void *)err->text, strlen(err->text) + 1}};
    (void)files_frame_send(PROGRAM_CONVERSATION, FILES_ERROR, 0, parts, ARRAY_SIZE(parts));
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

static int read_arguments(struct program *program, int argc, char **argv, struct error *err)
{
    static const char *const formats[] = {"any", "tar.gz", "zip",  "tar.zst",
                                          "tar", "zst",    "layer"}; // by enum archive_format
    if (argc != 5)
        return error_set(err, ERROR_INVALID, "burrow-archive is started by burrow's server");
    program->is_unpacking = strcmp(argv[1], "unpack") == 0;
    size_t format = 0;
    while (format < ARRAY_SIZE(formats) && strcmp(argv[2], formats[format]) != 0)
        format++;
    program->format = (enum archive_format)format;
    if ((!program->is_unpacking && strcmp(argv[1], "pack") != 0) || format == ARRAY_SIZE(formats) ||
        !read_number(argv[3], &program->max_bytes) || !read_number(argv[4], &program->max_entries))
        return error_set(err, ERROR_INVALID, "arguments that burrow-archive does not know");
    return 0;
}

/* Afterwards fd 0 is only spoken with and fd 1 only read and sought in, or written to, up to max_bytes. */
static int give_up_rights(const struct program *program, struct error *err)
{
    struct confinement left = {
        .memory_bytes = MEMORY_BYTES + LIBRARY_BYTES,
        .cpu_seconds = CPU_SECONDS + program->max_bytes / BYTES_PER_SECOND,
        .file_bytes = program->is_unpacking ? 0 : program->max_bytes,
    };

    left.rules = archive_filter(program->is_unpacking, &left.n_rules);
    return confine(&left, err);
}

static int prepare(struct program *program, int argc, char **argv, struct error *err)
{
    (void)signal(SIGXFSZ, SIG_IGN); // a write that is too long shall fail, not kill
    if (read_arguments(program, argc, argv, err) < 0 || program_warm_up(err) < 0)
        return -1;
    return give_up_rights(program, err);
}

/* fd 0 is the server's socket, or this was started by hand. */
static bool has_server(void)
{
    struct stat info;
    return fstat(PROGRAM_CONVERSATION, &info) == 0 && S_ISSOCK(info.st_mode);
}

int main(int argc, char **argv)
{
    struct program *program = xnew(struct program);
    struct error err = {0};
    if (!has_server()) {
        (void)fputs("burrow-archive is started by burrow's server\n", stderr);
        return 2;
    }
    int result = prepare(program, argc, argv, &err);
    if (result == 0) {
        program_send(RECORDS_READY, NULL, 0);
        result =
            program->is_unpacking ? program_unpack(program, &err) : program_pack(program, &err);
    }
    if (result < 0)
        send_error(&err);
    else
        program_send(FILES_END, &program->total, sizeof program->total);
    _exit(result < 0); // what runs at a usual exit has no business here
}
