/* SPDX-License-Identifier: Apache-2.0 */
/* burrow fs cp: files and directories to a sandbox and from it. */
#include "cli/copy_command.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/progress_bar.h"
#include "cli/remote_tree.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"
#include "cli/tar_send.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "sbx:path"; false for a local one. A name has no slash in front of its colon. */
static bool is_remote(const char *text)
{
    const char *colon = strchr(text, ':');
    const char *slash = strchr(text, '/');

    return colon && colon != text && (!slash || slash > colon);
}

struct copying {
    struct invocation *invocation;
    const char *source, *destination; // as they were given
    char *sandbox, *path;             // of the remote one
    uint64_t bytes, files, refused;
    char **made; // directories that were not there
    size_t n_made;
    struct progress progress;
};

static void copying_clear(struct copying *copying)
{
    progress_end(&copying->progress);
    for (size_t i = 0; i < copying->n_made; i++)
        free(copying->made[i]);
    free(copying->made);
    free(copying->sandbox);
    free(copying->path);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void split_remote(struct copying *copying, const char *text)
{
    const char *colon = strchr(text, ':');

    copying->sandbox = xstrndup(text, (size_t)(colon - text));
    copying->path = xstrdup(colon[1] ? colon + 1 : ".");
}

// ---- what is there ----

enum found { FOUND_NOTHING, FOUND_FILE, FOUND_DIRECTORY };

/* -1 where asking failed. */
static int look(const struct copying *copying, const char *path, struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (burrow_file_stat(copying->invocation->client, copying->sandbox, path, &answer, err) < 0) {
        bool is_missing = err->status == 404 && !strstr(err->code, "sandbox");
        return is_missing ? FOUND_NOTHING : -1;
    }
    const char *kind = burrow_text(burrow_get(burrow_answer_value(answer), "kind"));
    return kind && strcmp(kind, "directory") == 0 ? FOUND_DIRECTORY : FOUND_FILE;
}

/* Which directories above it are missing, the outermost first. */
static int note_missing(struct copying *copying, const char *path, struct burrow_error *err)
{
    autofree char *copy = xstrdup(path);

    for (;;) {
        char *slash = strrchr(copy, '/');
        if (!slash || slash == copy)
            return 0;
        *slash = '\0';
        int found = look(copying, copy, err);
        if (found < 0)
            return -1;
        if (found != FOUND_NOTHING)
            return 0;
        copying->made = xrealloc(copying->made, copying->n_made + 1, sizeof *copying->made);
        memmove(copying->made + 1, copying->made, copying->n_made * sizeof *copying->made);
        copying->made[0] = xstrdup(copy);
        copying->n_made++;
    }
}

static int check_parents(struct copying *copying, const char *path, struct burrow_error *err)
{
    if (note_missing(copying, path, err) < 0)
        return -1;
    if (!copying->n_made || !copying->invocation->is_strict)
        return 0;
    autofree char *missing = xstrdup(copying->made[copying->n_made - 1]);
    return say_fail(err, BURROW_NOT_FOUND,
                    "the directory '%s' is not in the sandbox, and --strict makes none: leave out "
                    "--strict, or make it with 'burrow fs mkdir -p'",
                    missing);
}

// ---- to the sandbox ----

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *progress = &((struct copying *)context)->progress;

    if (total)
        progress->total = total;
    progress_set(progress, done);
}

static int send_file(struct copying *copying, const char *path, int fd, const struct stat *info,
                     struct burrow_error *err)
{
    const struct burrow_transfer what = {
        .sandbox = copying->sandbox,
        .path = path,
        .fd = fd,
        .mode = S_ISREG(info->st_mode) ? info->st_mode & 0777 : 0, // a pipe's own says nothing
        .makes_parents = !copying->invocation->is_strict,
        .on_progress = on_progress,
        .context = copying,
    };

    progress_init(&copying->progress, last_part(copying->source), (uint64_t)info->st_size,
                  copying->invocation->is_json);
    if (burrow_file_send(copying->invocation->client, &what, &copying->bytes, err) < 0)
        return -1;
    copying->files = 1;
    return 0;
}

static void on_tree_sent(void *context, uint64_t done, uint64_t total)
{
    struct copying *copying = context;

    if (progress_wants_total(&copying->progress))
        total = tar_send_total(copying->source);
    on_progress(context, done, total);
}

static void tell_tree(struct copying *copying, const struct remote_tree *tree)
{
    copying->files = tree->files;
    copying->bytes = tree->bytes;
    copying->refused = tree->left_out;
}

static int send_tree(struct copying *copying, const char *local, const char *path,
                     struct burrow_error *err)
{
    struct remote_tree tree = {.client = copying->invocation->client,
                               .sandbox = copying->sandbox,
                               .path = path,
                               .on_progress = on_tree_sent,
                               .context = copying};

    progress_init(&copying->progress, last_part(local), 0, copying->invocation->is_json);
    int result = remote_tree_send(&tree, local, err);
    tell_tree(copying, &tree);
    return result;
}

static int upload(struct copying *copying, struct burrow_error *err)
{
    const char *local = copying->source;
    struct stat info;
    autofd fd = strcmp(local, "-") == 0 ? dup(STDIN_FILENO) : open(local, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) < 0)
        return say_fail_sys(err, "read '%s'", local);
    bool is_tree = S_ISDIR(info.st_mode);
    if (is_tree && !copying->invocation->is_recursive)
        return say_fail(err, BURROW_INVALID, "'%s' is a directory: copy it with -r", local);
    split_remote(copying, copying->destination);
    size_t length = strlen(copying->path);
    bool has_slash = copying->path[length - 1] == '/';
    int found = look(copying, copying->path, err);
    if (found < 0)
        return -1;
    autofree char *full = realpath(local, NULL);
    const char *name = full && *last_part(full) ? last_part(full) : last_part(local);
    bool goes_in = found == FOUND_DIRECTORY || (has_slash && !is_tree);
    while (length > 1 && copying->path[length - 1] == '/')
        copying->path[--length] = '\0';
    // as cp has it: a directory that is not there becomes the copy, one that is there gets it
    bool is_contents = is_tree && (strcmp(local, ".") == 0 || strcmp(last_part(local), ".") == 0);
    autofree char *path =
        goes_in && !is_contents
            ? xasprintf("%s/%s", strcmp(copying->path, "/") ? copying->path : "", name)
            : xstrdup(copying->path);
    if (found != FOUND_DIRECTORY && check_parents(copying, path, err) < 0)
        return -1;
    return is_tree ? send_tree(copying, local, path, err)
                   : send_file(copying, path, fd, &info, err);
}

// ---- from the sandbox ----

/* Into a file beside it first: what is there stays until all of it has come. */
static int take_file(struct copying *copying, const char *local, unsigned mode, uint64_t size,
                     struct burrow_error *err)
{
    autofree char *temporary = xasprintf("%s.burrow-%d", local, (int)getpid());
    struct stat info;
    bool is_special =
        strcmp(local, "-") == 0 || (stat(local, &info) == 0 && !S_ISREG(info.st_mode));
    autofd fd = strcmp(local, "-") == 0 ? dup(STDOUT_FILENO)
                : is_special            ? open(local, O_WRONLY | O_CLOEXEC)
                             : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const struct burrow_transfer what = {.sandbox = copying->sandbox,
                                         .path = copying->path,
                                         .fd = fd,
                                         .on_progress = on_progress,
                                         .context = copying};

    if (fd < 0)
        return say_fail_sys(err, "write '%s'", local);
    progress_init(&copying->progress, last_part(copying->path), size, copying->invocation->is_json);
    int result = burrow_file_fetch(copying->invocation->client, &what, &copying->bytes, err);
    if (result < 0 && err->kind == BURROW_LOCAL && err->sys) {
        errno = err->sys;
        (void)say_fail_sys(err, "write '%s'", local);
    }
    if (is_special)
        return result;
    if (result == 0 &&
        (fchmod(fd, mode) < 0 || close(take_fd(fd)) < 0 || rename(temporary, local) < 0))
        result = say_fail_sys(err, "write '%s'", local);
    if (result < 0)
        (void)unlink(temporary);
    return result;
}

static int take_tree(struct copying *copying, const char *local, unsigned mode,
                     struct burrow_error *err)
{
    struct remote_tree tree = {.client = copying->invocation->client,
                               .sandbox = copying->sandbox,
                               .path = copying->path,
                               .most_bytes = UINT64_MAX,
                               .most_entries = UINT64_MAX,
                               .on_progress = on_progress,
                               .leaves_unreadable = true,
                               .context = copying};

    if (mkdir(local, mode | 0700) < 0 && errno != EEXIST)
        return say_fail_sys(err, "make the directory '%s'", local);
    autofd directory = open(local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return say_fail_sys(err, "open the directory '%s'", local);
    progress_init(&copying->progress, last_part(copying->path), 0, copying->invocation->is_json);
    int result = remote_tree_take(&tree, directory, err);
    tell_tree(copying, &tree);
    return result;
}

/* The local path: in a directory that is there, under the name it has in the sandbox. */
static char *local_target(const struct copying *copying, bool has_name)
{
    struct stat info;
    const char *local = copying->destination;
    size_t length = strlen(local);
    bool is_directory =
        (stat(local, &info) == 0 && S_ISDIR(info.st_mode)) || (length && local[length - 1] == '/');
    autofree char *copy = xstrdup(copying->path);
    const char *name = basename(copy);

    if (strcmp(local, "-") == 0 || !is_directory || !has_name || strcmp(name, "/") == 0 ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return xstrdup(local);
    return xasprintf("%s%s%s", local, local[length - 1] == '/' ? "" : "/", name);
}

/* As those in the sandbox are. */
static int make_parents(const struct copying *copying, const char *local, struct burrow_error *err)
{
    autofree char *copy = xstrdup(local);
    const char *parent = dirname(copy);
    struct error error = {0};

    if (strcmp(local, "-") == 0 || access(parent, F_OK) == 0)
        return 0;
    if (copying->invocation->is_strict)
        return say_fail(err, BURROW_NOT_FOUND,
                        "there is no directory '%s', and --strict makes none", parent);
    return fd_make_dirs(parent, 0755, &error) < 0 ? say_fail(err, BURROW_LOCAL, "%s", error.text)
                                                  : 0;
}

static int download(struct copying *copying, struct burrow_error *err)
{
    autoanswer answer = NULL;

    split_remote(copying, copying->source);
    if (burrow_file_stat(copying->invocation->client, copying->sandbox, copying->path, &answer,
                         err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    const char *kind = burrow_text(burrow_get(value, "kind"));
    const char *octal = burrow_text(burrow_get(value, "mode"));
    bool is_tree = kind && strcmp(kind, "directory") == 0;
    if (is_tree && !copying->invocation->is_recursive)
        return say_fail(err, BURROW_INVALID, "'%s' is a directory: copy it with -r", copying->path);
    autofree char *local = local_target(copying, true);
    if (is_tree && strcmp(copying->destination, "-") == 0)
        return say_fail(
            err, BURROW_INVALID,
            "a directory goes to standard output as an archive: burrow fs download %s - "
            "--format tar --path '%s'",
            copying->sandbox, copying->path);
    if (make_parents(copying, local, err) < 0)
        return -1;
    unsigned mode = octal ? (unsigned)strtoul(octal, NULL, 8) & 0777 : is_tree ? 0755 : 0644;
    if (is_tree)
        return take_tree(copying, local, mode, err);
    copying->files = 1;
    return take_file(copying, local, mode,
                     (uint64_t)burrow_integer(burrow_get(value, "sizeBytes"), 0), err);
}

// ---- the command ----

static int tell_json(const struct copying *copying, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "source", copying->source);
    say_put_text(&json, "destination", copying->destination);
    json_key(&json, "bytesTransferred");
    json_natural(&json, copying->bytes);
    json_key(&json, "filesTransferred");
    json_natural(&json, copying->files);
    json_key(&json, "directoriesCreated");
    json_list_begin(&json);
    for (size_t i = 0; i < copying->n_made; i++)
        json_string(&json, copying->made[i]);
    json_list_end(&json);
    if (copying->refused) {
        json_key(&json, "skipped");
        json_natural(&json, copying->refused);
    }
    json_map_end(&json);
    return say_written(&json, &text, err);
}

int copy_run(struct invocation *invocation, struct burrow_error *err)
{
    autoclear(copying) copying = {.invocation = invocation,
                                  .source = invocation->operands[0],
                                  .destination = invocation->operands[1]};
    bool is_from = is_remote(copying.source), is_to = is_remote(copying.destination);
    char size[SAY_TEXT];

    if (is_from == is_to)
        return say_fail(err, BURROW_INVALID,
                        "one of the two must be in a sandbox, as SANDBOX:PATH: burrow fs cp ./file "
                        "work:/workspace/");
    if (file_check_output(invocation, copying.destination, err) < 0)
        return -1;
    if (invocation->timeout_ms != OPTION_UNSET)
        burrow_set_timeout(invocation->client,
                           invocation->timeout_ms > INT_MAX ? -1 : (int)invocation->timeout_ms);
    if ((is_to ? upload : download)(&copying, err) < 0)
        return -1;
    progress_end(&copying.progress);
    if (copying.refused)
        say_note("%llu %s left out: devices, what leads outside, names that are too long, or what "
                 "could not be read",
                 (unsigned long long)copying.refused,
                 copying.refused == 1 ? "entry was" : "entries were");
    if (invocation->is_json)
        return tell_json(&copying, err);
    if (strcmp(copying.destination, "-") != 0)
        say_done("copied %llu file%s, %s", (unsigned long long)copying.files,
                 copying.files == 1 ? "" : "s", say_size((int64_t)copying.bytes, size));
    return 0;
}
