/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of the doctor; see findings.h. They travel as one packed list of strings, so many a finding. */
#include "core/findings.h"

#include "base/child.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/runtime/runtimes.h"
#include "engine/probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 20
#define MOST_BYTES ((size_t)1 << 20)

enum { NAME, PURPOSE, STATE, DETAIL, COST, FIX, TEXTS };

// ---- in the process of their own ----

static void add_finding(struct strings *strings, const struct probe *probe,
                        const struct probe_context *context)
{
    struct probe_result result = {0};

    probe_run(probe, context, &result);
    const char *const found[TEXTS] = {
        [NAME] = probe->name,
        [PURPOSE] = probe->purpose,
        [STATE] = probe_state_name(result.state),
        [DETAIL] = result.detail,
        [COST] = result.cost ? result.cost : "",
        [FIX] = result.fix ? result.fix : "",
    };
    for (unsigned i = 0; i < TEXTS; i++)
        strings_add(strings, found[i]);
}

int findings_print(const char *data_dir, int fd)
{
    const struct probe_context context = {.data_dir = data_dir};
    autostrings strings = {0};

    (void)alarm(PATIENCE_S);
    for (const struct probe *probe = probe_table; probe->name; probe++)
        add_finding(&strings, probe, &context);
    autofree char *packed = strings_pack((const char *const *)strings.items);
    return fd_write_all(fd, packed, strlen(packed)) < 0;
}

// ---- in the server ----

/* 0 or an error number. What it complains of goes where our own errors go. */
static int spawn_probes(const char *data_dir, int out, pid_t *pid)
{
    char *argv[] = {(char *)"burrow-server", (char *)"probes", (char *)data_dir, NULL};
    char *env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    const struct child child = {"/proc/self/exe", argv, env, {CHILD_NOTHING, out, STDERR_FILENO}};

    return child_start(&child, pid);
}

static int run_probes(const char *data_dir, int out, struct error *err)
{
    pid_t pid = 0;
    int status = 0;
    int code = spawn_probes(data_dir, out, &pid);

    if (code)
        return error_sys_code(err, code, "start the doctor");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERROR_SYSTEM, "the doctor did not end well: status %d", status);
    return 0;
}

/* "" stands for none. */
static const char *text_or_none(const char *text)
{
    return *text ? text : NULL;
}

static void take_findings(const char *packed, struct findings *out)
{
    strings_unpack(packed, &out->strings);
    out->count = out->strings.count / TEXTS;
    out->items = xcalloc(out->count + 1, sizeof *out->items);
    for (size_t i = 0; i < out->count; i++) {
        char **text = out->strings.items + i * TEXTS;
        out->items[i] = (struct finding){
            .name = text[NAME],
            .purpose = text[PURPOSE],
            .state = text[STATE],
            .detail = text[DETAIL],
            .cost = text_or_none(text[COST]),
            .fix = text_or_none(text[FIX]),
        };
    }
}

int findings_get(struct core *core, const struct actor *actor, struct findings *out,
                 struct error *err)
{
    autobuffer packed = {.maximum = MOST_BYTES};

    if (actor_need_admin(actor, err) < 0)
        return -1;
    autofd file = memfd_create("findings", MFD_CLOEXEC);
    if (file < 0)
        return error_sys(err, "make room for what the doctor finds");
    if (run_probes(runtimes_data_dir(core->runtimes), file, err) < 0)
        return -1;
    if (lseek(file, 0, SEEK_SET) < 0)
        return error_sys(err, "read what the doctor has found");
    if (fd_read_buffer(file, &packed, err) < 0)
        return -1;
    take_findings(packed.data ? packed.data : "", out);
    return 0;
}

void findings_clear(struct findings *findings)
{
    free(findings->items);
    strings_clear(&findings->strings);
    *findings = (struct findings){0};
}
