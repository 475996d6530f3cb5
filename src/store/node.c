/* SPDX-License-Identifier: Apache-2.0 */
/* Which node this is: an identity in the data directory, made once; see store_node. */
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "store/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODE_FILE "node"

// Another process may make one at the same moment: the first that gives it its name wins.
static int make_node(int directory_fd, struct error *err)
{
    char id[ID_TEXT], temporary[sizeof NODE_FILE + ID_TEXT], text[ID_TEXT + 1];

    (void)id_make(id);
    (void)snprintf(temporary, sizeof temporary, NODE_FILE ".%s", id);
    int length = snprintf(text, sizeof text, "%s\n", id);
    if (fd_replace_file(directory_fd, temporary, text, (size_t)length, 0600, err) < 0)
        return -1;
    int code = linkat(directory_fd, temporary, directory_fd, NODE_FILE, 0) < 0 ? errno : 0;
    (void)unlinkat(directory_fd, temporary, 0);
    if (code != 0 && code != EEXIST)
        return error_sys_code(err, code, "keep this node's identity");
    if (fsync(directory_fd) < 0)
        return error_sys(err, "bring this node's identity to the disk");
    return 0;
}

int node_read(const char *directory, char id[ID_TEXT], struct error *err)
{
    char text[ID_TEXT + 2];
    autofd directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory_fd < 0)
        return error_sys(err, "open the data directory '%s'", directory);
    if (faccessat(directory_fd, NODE_FILE, F_OK, 0) < 0 && errno == ENOENT &&
        make_node(directory_fd, err) < 0)
        return error_wrap(err, "make '%s/" NODE_FILE "'", directory);
    if (fd_read_knob(directory_fd, NODE_FILE, text, sizeof text, err) < 0)
        return error_wrap(err, "read '%s/" NODE_FILE "'", directory);
    if (!id_is_valid(text))
        return error_set(err, ERROR_INVALID,
                         "'%s/" NODE_FILE "' does not hold the identity of a node: put it back as "
                         "it was, or its sandboxes are not known as this machine's",
                         directory);
    memcpy(id, text, ID_TEXT);
    return 0;
}
