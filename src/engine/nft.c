/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the nft program, for rules that are set once; see gateway_impl.h. */
#include "base/child.h"
#include "base/fd.h"
#include "base/quote.h"
#include "engine/gateway_impl.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const char *const places[] = {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft",
                                     "/usr/local/sbin/nft"};

static const char *find_program(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (access(places[i], X_OK) == 0)
            return places[i];
    }
    return NULL;
}

/* A child is born in the namespace of the thread that starts it. */
static int start_in(int ns_fd, const struct child *child, pid_t *pid)
{
    if (ns_fd < 0)
        return child_start(child, pid);
    autofd own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(ns_fd, CLONE_NEWNET) < 0)
        return errno;
    int code = child_start(child, pid);
    if (setns(own, CLONE_NEWNET) < 0)
        abort(); // this thread would go on in a network that is not its own
    return code;
}

static int write_script(const char *script, int *out, struct error *err)
{
    autofd fd = memfd_create("rules", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, script, strlen(script)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return error_sys(err, "write rules to memory");
    *out = take_fd(fd);
    return 0;
}

/* The first line that says something. */
static void read_complaint(int fd, char *text, size_t size)
{
    char rest[256];
    ssize_t got = fd_read_full(fd, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    while (fd_read_full(fd, rest, sizeof rest) > 0)
        ; // or it would block on a full pipe
    text[strcspn(text, "\n")] = '\0';
    quote_scrub(text);
}

int nft_run(int ns_fd, const char *script, struct error *err)
{
    const char *program = find_program();
    char *const argv[] = {(char *)"nft", (char *)"-f", (char *)"-", NULL};
    char complaint[300];
    int ends[2];
    autofd input = -1;
    pid_t pid = -1;
    int status = 0;

    if (!program)
        return error_set(err, ERROR_UNAVAILABLE,
                         "a sandbox with network needs the program 'nft', which is not installed: "
                         "install the package nftables, or use sandboxes without network");
    if (write_script(script, &input, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd reading = ends[0];
    autofd writing = ends[1];
    const struct child child = {program, argv, NULL, {input, CHILD_NOTHING, writing}};
    int code = start_in(ns_fd, &child, &pid);
    if (code)
        return error_sys_code(err, code, "run '%s'", program);
    closep(&writing);
    read_complaint(reading, complaint, sizeof complaint);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE,
                     "'%s' could not set the rules of the network (does this kernel have "
                     "nf_tables?): %s",
                     program, complaint[0] ? complaint : "it said nothing");
}
