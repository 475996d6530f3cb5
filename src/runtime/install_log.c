/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that install packages say, turned into progress and sentences; see install_log.h. */
#include "runtime/install_log.h"

#include "base/auto.h"

#include <stdio.h>
#include <string.h>

#define WAY_OUT                                                                                    \
    "name a mirror with --mirror or BURROW_DEBIAN_MIRROR, or use the runtime host:latest"

#define REGISTRY_OUT                                                                               \
    "name one with --registry or BURROW_NPM_REGISTRY, or use the runtime host:latest"

static const struct complaint {
    const char *text; // in a line of output
    const char *sentence;
} complaints[] = {
    {"ENOSPC", "the disk is full; free some space and build again"},
    {"Hash Sum mismatch", "a package is not what the mirror says it is; build again, or " WAY_OUT},
    {"EINTEGRITY", "a package is not what its registry says it is; build again, or name another "
                   "registry with --registry"},
    {"npm error 404", "a package of the runtime does not exist"},
    {"npm ERR! 404", "a package of the runtime does not exist"},
    {"ENOTFOUND", "no npm registry can be reached; " REGISTRY_OUT},
    {"ECONNREFUSED", "no npm registry can be reached; " REGISTRY_OUT},
    {"EAI_AGAIN", "no npm registry can be reached; " REGISTRY_OUT},
    {"ETARGET", "a package of the runtime does not exist in that version"},
    {"No space left on device", "the disk is full; free some space and build again"},
    {"NO_PUBKEY",
     "the mirror's signature cannot be checked; install the package debian-archive-keyring"},
    {"is not signed",
     "the mirror's signature cannot be checked; install the package debian-archive-keyring"},
    {"is not valid yet", "this machine's clock is behind; set it and build again"},
    {"Release file for", "the mirror is out of date; " WAY_OUT},
    {"Unable to locate package", "a package of the runtime does not exist"},
    {"does not have a Release file", "the mirror does not have this suite; " WAY_OUT},
    {"Could not resolve", "no package mirror can be reached; " WAY_OUT},
    {"Temporary failure resolving", "no package mirror can be reached; " WAY_OUT},
    {"Could not connect", "no package mirror can be reached; " WAY_OUT},
    {"Cannot initiate the connection", "no package mirror can be reached; " WAY_OUT},
    {"Connection failed", "no package mirror can be reached; " WAY_OUT},
    {"Failed to fetch", "the mirror failed; build again, or " WAY_OUT},
};

void install_log_line(void *data, const char *line)
{
    struct install_log *log = data;
    const struct runtime_build_options *options = log->making->options;

    if (progress_read(&log->progress, line) && options->on_progress)
        options->on_progress(options->data, &log->progress.now);
    for (size_t i = 0; i < ARRAY_SIZE(complaints) && !log->complaint; i++)
        if (strstr(line, complaints[i].text)) {
            log->complaint = &complaints[i];
            (void)snprintf(log->line, sizeof log->line, "%s", line + strspn(line, " "));
        }
}

int install_log_explain(const struct install_log *log, struct error *err)
{
    if (error_is(err, ERROR_GONE))
        return -1;
    if (log->complaint)
        return error_refuse(err, ERROR_TOOL, "runtime", "%s (%s)", log->complaint->sentence,
                            log->line);
    return error_restate(err, ERROR_TOOL, "runtime");
}
