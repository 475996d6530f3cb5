/* SPDX-License-Identifier: Apache-2.0 */
/* burrow fs: files in a sandbox. Listings are printed page by page, so that an endless one costs no memory. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/copy_command.h"
#include "cli/invocation.h"
#include "cli/progress_bar.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- ls ----

struct file_listing {
    bool is_long, is_json;
    bool is_first; // nothing was printed yet
};

static char kind_letter(const char *kind)
{
    if (strcmp(kind, "directory") == 0)
        return 'd';
    return strcmp(kind, "link") == 0 ? 'l' : strcmp(kind, "file") == 0 ? '-' : '?';
}

static void mode_text(const char *kind, const char *octal, char out[11])
{
    unsigned mode = (unsigned)strtoul(octal, NULL, 8);

    out[0] = kind_letter(kind);
    for (int i = 0; i < 9; i++)
        out[1 + i] = mode & (0400u >> i) ? "rwxrwxrwx"[i] : '-';
    out[10] = '\0';
}

/* JSON is printed as it comes, too. */
static int on_file(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    struct file_listing *listing = context;
    const char *kind = value_text(item, "kind");
    char mode[11], size[SAY_TEXT];

    if (listing->is_json) {
        autobuffer text = {0};
        struct json_writer json;
        json_writer_init(&json, &text);
        say_put(&json, NULL, item);
        if (say_finish(&json, err) < 0)
            return -1;
        (void)putchar(listing->is_first ? '[' : ',');
        say_json_part(text.data);
        listing->is_first = false;
        return ferror(stdout) ? say_fail_sys(err, "write to standard output") : 0;
    }
    autofree char *name = say_clean(value_text(item, "path"));
    bool is_directory = strcmp(kind, "directory") == 0;
    if (listing->is_long) {
        autofree char *target = say_clean(value_text(item, "target"));
        mode_text(kind, value_text(item, "mode"), mode);
        autofree char *time = say_clean(value_text(item, "modifiedAt"));
        char *middle = strchr(time, 'T');
        if (middle)
            *middle = ' ';
        (void)printf("%s %5lld %5lld %10s  %.19s  ", mode,
                     (long long)burrow_integer(burrow_get(item, "uid"), 0),
                     (long long)burrow_integer(burrow_get(item, "gid"), 0),
                     say_size(burrow_integer(burrow_get(item, "sizeBytes"), 0), size), time);
        (void)printf("%s%s%s%s%s%s\n", is_directory ? say_begin(SAY_BLUE) : "", name,
                     is_directory ? "/" : "", is_directory ? say_begin(SAY_PLAIN) : "",
                     *target ? " -> " : "", target);
    } else {
        (void)printf("%s%s%s%s\n", is_directory ? say_begin(SAY_BLUE) : "", name,
                     is_directory ? "/" : "", is_directory ? say_begin(SAY_PLAIN) : "");
    }
    return ferror(stdout) || fflush(stdout) != 0 ? say_fail_sys(err, "write to standard output")
                                                 : 0;
}

/* What is no directory, as ls has it: itself. */
static int list_file(struct invocation *invocation, const char *sandbox, const char *path,
                     struct file_listing *listing, struct burrow_error *err)
{
    autofree char *target =
        burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s", sandbox, path, NULL);
    struct burrow_error failure;
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", target, NULL, &answer, &failure) < 0 ||
        strcmp(value_text(burrow_answer_value(answer), "kind"), "directory") == 0)
        return -1;
    return on_file(listing, burrow_answer_value(answer), err);
}

/* SANDBOX:PATH does too, as everywhere else that both are named. */
int file_commands_list(struct invocation *invocation, struct burrow_error *err)
{
    const char *path = invocation_operand(invocation, 1);
    const char *colon = path ? NULL : strchr(invocation->operands[0], ':');
    autofree char *sandbox =
        colon ? xstrndup(invocation->operands[0], (size_t)(colon - invocation->operands[0]))
              : xstrdup(invocation->operands[0]);
    struct file_listing listing = {
        .is_long = invocation->is_long, .is_json = invocation->is_json, .is_first = true};
    if (!path)
        path = colon && colon[1] ? colon + 1 : ".";
    autofree char *target =
        burrow_path("/sandboxes/%s/files/list?limit=1000&path=%s&recursive=%s", sandbox, path,
                    invocation->is_recursive ? "true" : "false", NULL);

    int result = burrow_list(invocation->client, target, 0, on_file, &listing, err);
    if (result < 0 && err->status == 409 && listing.is_first)
        result = list_file(invocation, sandbox, path, &listing, err);
    if (invocation->is_json && result == 0)
        (void)puts(listing.is_first ? "[]" : "]");
    if (result < 0 && !listing.is_first)
        invocation->is_json = false; // a value was begun: no second one
    return result;
}

// ---- mkdir, rmdir, rm ----

static int tell(struct invocation *invocation, const char *word, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;
    autofree char *path = say_clean(invocation->operands[1]);

    if (!invocation->is_json) {
        say_done("%s %s", word, path);
        return 0;
    }
    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    say_put_text(&json, "path", invocation->operands[1]);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

static void suggest(struct burrow_error *err, const char *remedy)
{
    (void)snprintf(err->remedy, sizeof err->remedy, "%s", remedy);
}

static int make_directory(struct invocation *invocation, struct burrow_error *err)
{
    if (burrow_directory_make(invocation->client, invocation->operands[0], invocation->operands[1],
                              invocation->has_parents, err) < 0) {
        if (err->status == 404 && !invocation->has_parents && !strstr(err->code, "sandbox"))
            suggest(err, "'-p' makes the directories above it too");
        return -1;
    }
    return tell(invocation, "made", err);
}

static int check_kind(struct invocation *invocation, bool wants_directory, struct burrow_error *err)
{
    autoanswer answer = NULL;
    autofree char *target = burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s",
                                        invocation->operands[0], invocation->operands[1], NULL);

    if (burrow_ask(invocation->client, "GET", target, NULL, &answer, err) < 0)
        return -1;
    bool is_directory = strcmp(value_text(burrow_answer_value(answer), "kind"), "directory") == 0;
    if (is_directory == wants_directory)
        return 0;
    return say_fail(err, BURROW_INVALID,
                    is_directory ? "'%s' is a directory: 'burrow fs rmdir' removes it"
                                 : "'%s' is no directory: 'burrow fs rm' removes it",
                    invocation->operands[1]);
}

static int remove_directory(struct invocation *invocation, struct burrow_error *err)
{
    if (check_kind(invocation, true, err) < 0)
        return -1;
    if (burrow_file_remove(invocation->client, invocation->operands[0], invocation->operands[1],
                           invocation->is_recursive, err) < 0) {
        if (err->status == 409 && !invocation->is_recursive)
            suggest(err, "'-r' removes it with all that is in it");
        return -1;
    }
    return tell(invocation, "removed", err);
}

static int remove_file(struct invocation *invocation, struct burrow_error *err)
{
    if ((!invocation->is_recursive && check_kind(invocation, false, err) < 0) ||
        burrow_file_remove(invocation->client, invocation->operands[0], invocation->operands[1],
                           invocation->is_recursive, err) < 0)
        return -1;
    return tell(invocation, "removed", err);
}

// ---- archives ----

static const char *format_of_name(const char *name)
{
    static const char *const rows[][2] = {{".tar.gz", "tar.gz"},
                                          {".tgz", "tar.gz"},
                                          {".zip", "zip"},
                                          {".tar", "tar"},
                                          {".tar.zst", "tar.zst"}};
    size_t length = strlen(name);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t end = strlen(rows[i][0]);
        if (length > end && strcmp(name + length - end, rows[i][0]) == 0)
            return rows[i][1];
    }
    return NULL;
}

static int tell_archive(struct invocation *invocation, const char *word, uint64_t bytes,
                        struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;
    char size[SAY_TEXT];

    if (!invocation->is_json) {
        say_done("%s %s, %s", word, invocation->operands[1], say_size((int64_t)bytes, size));
        return 0;
    }
    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    say_put_text(&json, "sandboxId", invocation->operands[0]);
    say_put_text(&json, "file", invocation->operands[1]);
    json_key(&json, "bytes");
    json_natural(&json, bytes);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

int file_check_output(const struct invocation *invocation, const char *local,
                      struct burrow_error *err)
{
    if (invocation->is_json && strcmp(local, "-") == 0)
        return say_fail(err, BURROW_INVALID,
                        "'-' and --json are both for standard output: leave one of them out");
    return 0;
}

int file_take(struct burrow_client *client, const char *target, const char *local, bool is_quiet,
              uint64_t *bytes, struct burrow_error *err)
{
    autofree char *temporary = xasprintf("%s.burrow-%d", local, (int)getpid());
    struct burrow_stream *stream = NULL;
    struct progress progress;
    char room[65536];
    ssize_t got = 0;
    bool is_out = strcmp(local, "-") == 0;

    if (burrow_stream_open(client, "GET", target, NULL, NULL, &stream, err) < 0)
        return -1;
    int64_t length = burrow_stream_length(stream);
    progress_init(&progress, local, length > 0 ? (uint64_t)length : 0, is_quiet);
    autofd fd = is_out ? dup(STDOUT_FILENO)
                       : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int result = fd < 0 ? say_fail_sys(err, "write '%s'", local) : 0;
    while (result == 0 && (got = burrow_stream_read(stream, room, sizeof room, err)) > 0) {
        for (ssize_t at = 0; at < got && result == 0;) {
            ssize_t wrote = write(fd, room + at, (size_t)(got - at));
            if (wrote < 0 && errno != EINTR)
                result = say_fail_sys(err, "write '%s'", local);
            at += wrote > 0 ? wrote : 0;
        }
        *bytes += (uint64_t)got;
        progress_set(&progress, *bytes);
    }
    progress_end(&progress);
    burrow_stream_close(stream);
    if (result == 0 && got < 0)
        result = -1;
    if (is_out || fd < 0)
        return result;
    if (result == 0 && (close(take_fd(fd)) < 0 || rename(temporary, local) < 0))
        result = say_fail_sys(err, "write '%s'", local);
    if (result < 0)
        (void)unlink(temporary);
    return result;
}

/* An archive is one request, and bounded as such; copying is not. */
static int suggest_copying(struct burrow_error *err)
{
    if (err->status == 413)
        suggest(err, "'burrow fs cp -r' copies directories of any size; whoever runs the server "
                     "can allow larger archives (--file-limit)");
    return -1;
}

static int download(struct invocation *invocation, struct burrow_error *err)
{
    const char *format =
        invocation->format ? invocation->format : format_of_name(invocation->operands[1]);
    uint64_t bytes = 0;
    autofree char *target =
        burrow_path("/sandboxes/%s/files/archive?path=%s&format=%s", invocation->operands[0],
                    invocation->path ? invocation->path : ".", format ? format : "tar.gz", NULL);

    if (file_check_output(invocation, invocation->operands[1], err) < 0)
        return -1;
    if (file_take(invocation->client, target, invocation->operands[1], invocation->is_json, &bytes,
                  err) < 0)
        return suggest_copying(err);
    return strcmp(invocation->operands[1], "-") == 0
               ? 0
               : tell_archive(invocation, "saved", bytes, err);
}

static void on_sent(void *context, uint64_t sent)
{
    progress_set(context, sent);
}

int file_send(struct burrow_client *client, const char *method, const char *target,
              const char *local, bool is_quiet, struct burrow_answer **out, uint64_t *bytes,
              struct burrow_error *err)
{
    struct progress progress;
    struct stat info;
    autofd fd = strcmp(local, "-") == 0 ? dup(STDIN_FILENO) : open(local, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) < 0)
        return say_fail_sys(err, "read '%s'", local);
    if (S_ISDIR(info.st_mode))
        return say_fail(err, BURROW_INVALID,
                        "'%s' is a directory: give an archive, or 'burrow fs cp -r'", local);
    bool is_file = S_ISREG(info.st_mode);
    const struct burrow_body body = {.has_fd = true,
                                     .fd = fd,
                                     .length = is_file ? (uint64_t)info.st_size : BURROW_UNTIL_END,
                                     .on_progress = on_sent,
                                     .context = &progress};
    progress_init(&progress, local, is_file ? (uint64_t)info.st_size : 0, is_quiet);
    int result = burrow_send(client, method, target, &body, out, err);
    progress_end(&progress);
    *bytes = progress.done;
    return result;
}

static int upload(struct invocation *invocation, struct burrow_error *err)
{
    uint64_t bytes = 0;
    autofree char *path =
        burrow_path("/sandboxes/%s/files/archive?path=%s", invocation->operands[0],
                    invocation->path ? invocation->path : ".", NULL);
    autofree char *target =
        invocation->format ? xasprintf("%s&format=%s", path, invocation->format) : xstrdup(path);

    if (file_send(invocation->client, "PUT", target, invocation->operands[1], invocation->is_json,
                  NULL, &bytes, err) < 0)
        return suggest_copying(err);
    return tell_archive(invocation, "unpacked", bytes, err);
}

// ---- the table ----

static const struct option_row copy_rows[] = {
    OPTION("recursive", 'r', OPTION_FLAG, is_recursive, NULL, "copy directories with all in them"),
    OPTION("strict", 0, OPTION_FLAG, is_strict, NULL,
           "fail if the target's directory is not there, instead of making it"),
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "DURATION",
           "give up after so long without a byte: 5m"),
    {0},
};
static const char *const copy_examples[] = {
    "$ burrow fs cp ./local-file.txt work:/workspace/file.txt",
    "$ burrow fs cp work:/workspace/output.json ./output.json",
    "$ burrow fs cp -r ./src work:/workspace/src", "$ burrow fs cp work:/etc/os-release -", NULL};
static const struct option_row ls_rows[] = {
    OPTION("long", 'l', OPTION_FLAG, is_long, NULL, "with permissions, sizes and times"),
    OPTION("recursive", 'r', OPTION_FLAG, is_recursive, NULL, "also what is in directories below"),
    {0},
};
static const char *const ls_examples[] = {"$ burrow fs ls work",
                                          "$ burrow fs ls work /workspace/src -l", NULL};
static const struct option_row mkdir_rows[] = {
    OPTION("parents", 'p', OPTION_FLAG, has_parents, NULL,
           "make missing directories above it; one that is there is fine"),
    {0},
};
static const char *const mkdir_examples[] = {"$ burrow fs mkdir work /workspace/data/processed -p",
                                             NULL};
static const struct option_row remove_rows[] = {
    OPTION("recursive", 'r', OPTION_FLAG, is_recursive, NULL, "with all that is in it"),
    {0},
};
static const char *const rmdir_examples[] = {"$ burrow fs rmdir work /workspace/cache -r", NULL};
static const char *const rm_examples[] = {"$ burrow fs rm work /workspace/temp.txt", NULL};
static const struct option_row archive_rows[] = {
    OPTION("path", 0, OPTION_TEXT, path, "PATH",
           "the directory in the sandbox (default: where commands start)"),
    OPTION("format", 0, OPTION_TEXT, format, "FORMAT",
           "tar.gz, zip, tar or tar.zst (default: by the file's name, else tar.gz)"),
    {0},
};
static const char *const download_examples[] = {
    "$ burrow fs download work ./backup.tar.gz",
    "$ burrow fs download work ./src.zip --path /workspace/src", NULL};
static const char *const upload_examples[] = {
    "$ burrow fs upload work ./project.tar.gz",
    "$ burrow fs upload work ./deps.zip --path /workspace/node_modules", NULL};

#define COPY_TEXT                                                                                  \
    "One of the two is in a sandbox: SANDBOX:PATH. Missing directories are made. A directory "     \
    "that\n"                                                                                       \
    "is there gets the copy in it. What comes from a sandbox is written below the chosen place "   \
    "only;\n"                                                                                      \
    "links that lead out of it are left out, and counted. Files and directories may have any "     \
    "size;\n"                                                                                      \
    "what there was of a file stays until all of the new one has come. '-' is standard input or\n" \
    "output."

const struct cli_command file_commands[] = {
    {"fs", "cp copy", "SOURCE DESTINATION", "copy files to a sandbox, or from it", COPY_TEXT,
     copy_rows, copy_examples, COMMAND_SERVER, copy_run},
    {"fs", "ls list", "SANDBOX [PATH]", "list files", NULL, ls_rows, ls_examples, COMMAND_SERVER,
     file_commands_list},
    {"fs", "mkdir", "SANDBOX PATH", "make a directory", NULL, mkdir_rows, mkdir_examples,
     COMMAND_SERVER, make_directory},
    {"fs", "rmdir", "SANDBOX PATH", "remove a directory", NULL, remove_rows, rmdir_examples,
     COMMAND_SERVER, remove_directory},
    {"fs", "rm", "SANDBOX PATH", "remove a file", NULL, remove_rows, rm_examples, COMMAND_SERVER,
     remove_file},
    {"fs", "download dl", "SANDBOX FILE", "save a directory as an archive", NULL, archive_rows,
     download_examples, COMMAND_SERVER, download},
    {"fs", "upload ul", "SANDBOX FILE", "unpack an archive in a sandbox", NULL, archive_rows,
     upload_examples, COMMAND_SERVER, upload},
    {"", "cp", "SOURCE DESTINATION", "the same as 'fs cp'", COPY_TEXT, copy_rows, copy_examples,
     COMMAND_SERVER, copy_run},
    {0},
};
