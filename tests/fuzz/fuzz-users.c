/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a user's text and a guest's user files (separated by NULs) give exactly what they
 * say, or an error. */
#include "base/auto.h"
#include "base/fd.h"
#include "init/users.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char place[] = "/dev/shm/burrow-fuzz-users-XXXXXX";
static int root = -1;

static void sweep(void)
{
    struct error err;
    (void)fd_remove_tree(AT_FDCWD, place, &err);
}

static void prepare(void)
{
    if (root >= 0)
        return;
    if (!mkdtemp(place))
        abort();
    (void)atexit(sweep);
    root = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || mkdirat(root, "etc", 0700) < 0)
        abort();
}

/* Writes the input up to the next NUL to a file; what is behind it is left. */
static void put(const char *name, const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, '\0', *size) : NULL;
    size_t length = end ? (size_t)(end - *data) : *size;
    autofd fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, *data, length) < 0)
        abort();
    *data += end ? length + 1 : length;
    *size -= end ? length + 1 : length;
}

/* Numbers stand for themselves, whatever the files say. */
static void check(const char *text, const struct user_info *info)
{
    char spelled[32];
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (info->uid > USERS_MAX_ID || info->gid > USERS_MAX_ID || info->home[0] != '/' ||
        info->n_groups > USERS_MAX_GROUPS || (colon && info->n_groups))
        __builtin_trap();
    (void)snprintf(spelled, sizeof spelled, "%u", info->uid);
    if (strspn(text, "0123456789") == length &&
        (strlen(spelled) != length || strncmp(spelled, text, length) != 0))
        __builtin_trap();
    if (text[0] == '-' || text[0] == '+' || text[0] == ' ' || length == 0 ||
        (colon && (!colon[1] || strchr(colon + 1, ':'))))
        __builtin_trap();
    if (strspn(text, "0123456789") != length &&
        (strlen(info->name) != length || strncmp(info->name, text, length) != 0))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct user_info info = {0};
    char message[200] = "", text[300];
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    if (length >= sizeof text)
        return 0;
    memcpy(text, data, length);
    text[length] = '\0';
    size_t used = end ? length + 1 : length;
    data += used;
    size -= used;
    prepare();
    put("etc/passwd", &data, &size);
    put("etc/group", &data, &size);
    if (users_find_in(root, text, &info, message, sizeof message) == 0)
        check(text, &info);
    else if (!message[0])
        __builtin_trap();
    return 0;
}
