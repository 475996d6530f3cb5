/* SPDX-License-Identifier: Apache-2.0 */
/* Trying in a copy of a local directory; see try_local.h. */
#include "cli/try_local.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/entry_maker.h"
#include "cli/listing.h"
#include "cli/remote_tree.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE "/workspace"
#define PATCH_BYTES ((uint64_t)1 << 20) // of a file that is shown line by line
#define PATCH_LINES 200                 // of each that are shown
#define OLD_FD "10"                     // as diff gets them
#define NEW_FD "11"

static const char *directory_of(const struct trial *trial)
{
    return trial->invocation->path ? trial->invocation->path : ".";
}

// ---- there ----

static int send_copy(struct trial *trial, struct burrow_error *err)
{
    struct remote_tree tree = {
        .client = trial->invocation->client, .sandbox = trial->sandbox, .path = PLACE};

    return remote_tree_send(&tree, directory_of(trial), err);
}

static int begin(struct trial *trial, struct burrow_error *err)
{
    struct invocation *invocation = trial->invocation;
    autobuffer text = {0};
    autoanswer answer = NULL;

    trial->root = open(directory_of(trial), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (trial->root < 0)
        return say_fail_sys(err, "open the directory '%s'", directory_of(trial));
    if (local_tree_scan(trial->root, NULL, NULL, &trial->before, err) < 0 ||
        sandbox_options_write(invocation, NULL, &text, err) < 0 ||
        trial_make(trial, "/sandboxes", text.data, &answer, err) < 0)
        return -1;
    const char *id = burrow_text(burrow_get(burrow_answer_value(answer), "id"));
    (void)snprintf(trial->sandbox, sizeof trial->sandbox, "%s", id ? id : "");
    trial->directory = PLACE;
    return send_copy(trial, err);
}

// ---- and back ----

static int take_back(struct trial *trial, struct burrow_error *err)
{
    const char *top = getenv("TMPDIR");
    uint64_t most = trial_most_bytes(trial);
    char size[SAY_TEXT];
    autofree char *too_much = xasprintf("the copy has become more than %s, or %d files: nothing "
                                        "was applied; --limit allows more",
                                        say_size((int64_t)most, size), TREE_MOST_ENTRIES);
    struct remote_tree tree = {.client = trial->invocation->client,
                               .sandbox = trial->sandbox,
                               .path = PLACE,
                               .most_bytes = most,
                               .most_entries = TREE_MOST_ENTRIES,
                               .too_much = too_much};

    trial->staging = xasprintf("%s/burrow-try-XXXXXX", top && *top == '/' ? top : "/tmp");
    if (!mkdtemp(trial->staging)) {
        free(take(trial->staging));
        return say_fail_sys(err, "make a temporary directory");
    }
    trial->staged = open(trial->staging, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (trial->staged < 0)
        return say_fail_sys(err, "open '%s'", trial->staging);
    int result = remote_tree_take(&tree, trial->staged, err);
    trial->left_out += tree.left_out;
    return result;
}

/* A link of the user's own that leads outside does not come back, and is none that was removed. */
static bool leads_outside(const struct trial *trial, const struct tree_entry *entry)
{
    char target[PATH_MAX];
    ssize_t length = entry->kind == TREE_LINK
                         ? readlinkat(trial->root, entry->path, target, sizeof target - 1)
                         : -1;

    if (length < 0)
        return false;
    target[length] = '\0';
    return !entry_link_stays(entry->path, target);
}

static void add_change(struct trial *trial, const struct tree_entry *before,
                       const struct tree_entry *after)
{
    const struct tree_entry *shown = after ? after : before;

    if (before && !after && leads_outside(trial, before))
        return;
    if (local_tree_is_in_git(shown->path))
        trial->left_out++;
    else
        trial_add(trial, shown->path,
                  !before  ? TRIAL_ADDED
                  : !after ? TRIAL_REMOVED
                           : TRIAL_CHANGED,
                  shown->kind);
}

static int compare(struct trial *trial, struct burrow_error *err)
{
    const struct local_tree *before = &trial->before, *after = &trial->after;
    size_t i = 0, j = 0;

    if (take_back(trial, err) < 0 ||
        local_tree_scan(trial->staged, NULL, NULL, &trial->after, err) < 0)
        return -1;
    while (i < before->count || j < after->count) {
        const struct tree_entry *old = i < before->count ? &before->entries[i] : NULL;
        const struct tree_entry *new = j < after->count ? &after->entries[j] : NULL;
        int order = !old ? 1 : !new ? -1 : strcmp(old->path, new->path);
        old = order <= 0 ? old : NULL;
        new = order >= 0 ? new : NULL;
        if (!old || !new || !tree_entry_is_same(old, new))
            add_change(trial, old, new);
        i += old != NULL;
        j += new != NULL;
    }
    return 0;
}

// ---- what is seen ----

static void print_lines(int fd)
{
    FILE *lines = fdopen(fd, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    unsigned count = 0;

    if (!lines) {
        (void)close(fd);
        return;
    }
    while ((length = getline(&line, &room, lines)) >= 0) {
        for (ssize_t i = 0; i < length; i++)
            line[i] = line[i] ? line[i] : '?'; // what is behind it is to be seen, too
        line[strcspn(line, "\n")] = '\0';
        autofree char *clean = say_clean(line);
        if (++count <= PATCH_LINES)
            (void)printf("  %s\n", clean);
    }
    if (count > PATCH_LINES)
        (void)printf("  … %u more lines\n", count - PATCH_LINES);
    free(line);
    (void)fclose(lines);
}

/* By the machine's diff, where it has one. */
static void print_patch(int old, int new)
{
    const char *const words[] = {"diff",    "-u",    "--label",         "before",
                                 "--label", "after", "/dev/fd/" OLD_FD, "/dev/fd/" NEW_FD,
                                 NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    (void)posix_spawn_file_actions_init(&actions);
    // first: its number may be one of those below
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, old, atoi(OLD_FD));
    (void)posix_spawn_file_actions_adddup2(&actions, new, atoi(NEW_FD));
    int failed =
        posix_spawnp(&pid, "diff", &actions, NULL, (char *const *)(uintptr_t)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    print_lines(ends[0]);
    if (!failed)
        (void)waitpid(pid, NULL, 0);
}

static int open_side(int root, const struct tree_entry *entry)
{
    int fd = entry ? local_tree_open(root, entry->path) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 20); // clear of the numbers diff gets

    closep(&fd);
    return high;
}

/* " (mode 644, now 755)" of a file that was there with other permissions; "" of others. */
static const char *mode_change(const struct tree_entry *old, const struct tree_entry *new,
                               char text[40])
{
    bool is_other =
        old && new && old->kind == TREE_FILE &&new->kind == TREE_FILE && old->mode != new->mode;

    *text = '\0';
    if (is_other)
        (void)snprintf(text, 40, " (mode %03o, now %03o)", old->mode, new->mode);
    return text;
}

static void show(const struct trial *trial)
{
    char mode[40];

    for (size_t i = 0; i < trial->n_changes; i++) {
        const struct trial_item *item = &trial->items[i];
        const struct tree_entry *old = local_tree_find(&trial->before, item->path);
        const struct tree_entry *new = local_tree_find(&trial->after, item->path);
        trial_print(item, mode_change(old, new, mode));
        if ((old && (old->kind != TREE_FILE || old->size > PATCH_BYTES)) || !new ||
            new->kind != TREE_FILE || new->size > PATCH_BYTES ||
            (old && strcmp(old->digest, new->digest) == 0))
            continue;
        (void)fflush(stdout);
        autofd one = open_side(trial->root, old);
        autofd other = open_side(trial->staged, new);
        if (one >= 0 && other >= 0)
            print_patch(one, other);
    }
}

// ---- applying ----

/* What is there now is what it was when the copy was made, or is already as it is to be. */
static int check_item(struct trial *trial, struct trial_item *item, struct burrow_error *err)
{
    const struct tree_entry *old = local_tree_find(&trial->before, item->path);
    const struct tree_entry *new = local_tree_find(&trial->after, item->path);
    struct tree_entry now;

    if (local_tree_look(trial->root, item->path, &now, err) < 0)
        return -1;
    item->is_applied = tree_entry_is_same(&now, new);
    item->is_conflict = !item->is_applied && !tree_entry_is_same(&now, old);
    return 0;
}

static int apply_item(struct trial *trial, struct trial_item *item, struct burrow_error *err)
{
    const struct tree_entry *new = local_tree_find(&trial->after, item->path);

    if (check_item(trial, item, err) < 0)
        return -1;
    if (item->is_applied || (item->is_conflict && !trial->invocation->is_forced))
        return 0;
    int result = new ? local_tree_put(trial->root, trial->staged, new, err)
                     : local_tree_remove(trial->root, item->path, err);
    item->is_applied = result == 0;
    return result < 0 ? -1 : 0;
}

/* What goes first, the innermost before what it is in; then what comes, the other way round. */
static int apply(struct trial *trial, struct burrow_error *err)
{
    for (size_t i = trial->n_changes; i-- > 0;) {
        if (trial->items[i].change == TRIAL_REMOVED && apply_item(trial, &trial->items[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < trial->n_changes; i++) {
        if (trial->items[i].change != TRIAL_REMOVED && apply_item(trial, &trial->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static void end(struct trial *trial)
{
    struct burrow_error ignored = {0};
    struct error left = {0};

    closep(&trial->root);
    closep(&trial->staged);
    if (trial->staging && fd_remove_tree(AT_FDCWD, trial->staging, &left) < 0)
        say_note("'%s' stays: %s", trial->staging, left.text);
    free(take(trial->staging));
    if (*trial->sandbox)
        (void)burrow_sandbox_delete(trial->invocation->client, trial->sandbox, &ignored);
}

const struct trial_kind trial_of_directory = {begin, compare, show, apply, end};
