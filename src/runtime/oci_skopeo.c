/* SPDX-License-Identifier: Apache-2.0 */
/* Runs skopeo, and says in our words what went wrong; see oci_skopeo.h. */
#include "runtime/oci_skopeo.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/quote.h"
#include "runtime/tool.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPARE_LEAST ((uint64_t)64 << 20) // bytes that stay free on the disk
#define SPARE_MOST ((uint64_t)1 << 30)

struct copying {
    const struct making *making;
    unsigned n_blobs;
    char fault[300]; // the last that skopeo said went wrong
    const char *blobs;
    const char *layout;  // blobs grow there
    uint64_t timeout_ms; // 0: nobody is waited for
    uint64_t arrived_bytes, moved_ms;
    bool is_full, is_stalled; // it was stopped for that
};

#define REGISTRY "docker://"

// ---- what it says ----

/* "Copying blob sha256:…", "Copying config …", "Writing manifest …". How many blobs there are it does not say. */
static void on_line(void *data, const char *line)
{
    static const char blob[] = "Copying blob ", fatal[] = "level=fatal msg=\"";
    struct copying *copying = data;
    const char *found = strstr(line, fatal);

    copying->moved_ms = clock_monotonic_ms();
    if (strncmp(line, blob, sizeof blob - 1) == 0) {
        char detail[32];
        copying->n_blobs++;
        (void)snprintf(detail, sizeof detail, "%u", copying->n_blobs);
        making_tell_detail(copying->making, "fetching layers", detail,
                           40 + 360 * copying->n_blobs / (copying->n_blobs + 4));
    } else if (strncmp(line, "Writing manifest", 16) == 0) {
        making_tell(copying->making, "checking the image", 400);
    }
    if (!found)
        return;
    size_t used = 0;
    for (const char *at = found + sizeof fatal - 1; *at && used + 1 < sizeof copying->fault; at++) {
        at += *at == '\\' && at[1]; // it quotes quotes
        copying->fault[used++] = *at;
    }
    used -= used && copying->fault[used - 1] == '"';
    copying->fault[used] = '\0';
    quote_scrub(copying->fault);
}

static int tell(const struct copying *copying, const char *source, struct error *err)
{
    static const struct {
        const char *said;
        enum error_reason reason;
    } faults[] = {
        {"manifest unknown", ERROR_NOT_FOUND},
        {"name unknown", ERROR_NOT_FOUND},
        {"repository name not known", ERROR_NOT_FOUND},
        {"no such file or directory", ERROR_NOT_FOUND},
        {"no image found", ERROR_NOT_FOUND},
        {"no space left", ERROR_NO_SPACE},
        {"invalid reference format", ERROR_INVALID},
        {"repository name must be", ERROR_INVALID},
        {"unsupported schema", ERROR_INVALID},
        {"digest", ERROR_DAMAGED},
    };

    if (!*copying->fault)
        return error_wrap(err, "fetch '%.200s'", source);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        if (strstr(copying->fault, faults[i].said))
            return error_refuse(err, faults[i].reason, "image", "fetch '%.200s': %s", source,
                                copying->fault);
    // a registry that refuses us is nothing that whoever wants a sandbox may or may not
    return error_refuse(err, ERROR_UNAVAILABLE, "image", "fetch '%.200s': %s", source,
                        copying->fault);
}

/*
 * It takes whatever a registry sends, however much that is, and compares it when it ends. Some of the disk stays for all others: a twentieth,
 * and no more than is needed.
 */
static bool is_full(const struct copying *copying)
{
    struct statvfs space;

    if (statvfs(copying->blobs, &space) < 0)
        return false;
    uint64_t all = (uint64_t)space.f_blocks * space.f_frsize, spare = all / 20;
    spare = spare < SPARE_LEAST ? SPARE_LEAST : spare > SPARE_MOST ? SPARE_MOST : spare;
    return (uint64_t)space.f_bavail * space.f_frsize < spare;
}

/* Of blobs that have not come whole. */
static uint64_t count_arrived(const char *layout)
{
    autodir list = opendir(layout);
    uint64_t bytes = 0;
    struct stat info;

    for (struct dirent *entry; list && (entry = readdir(list));)
        if (fstatat(dirfd(list), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            bytes += (uint64_t)info.st_size;
    return bytes;
}

/* It waits for an answer, or for the rest of one, as long as the connection stands. */
static bool is_stalled(struct copying *copying)
{
    uint64_t arrived = count_arrived(copying->layout), now = clock_monotonic_ms();

    if (arrived != copying->arrived_bytes)
        copying->moved_ms = now;
    copying->arrived_bytes = arrived;
    return copying->timeout_ms && now - copying->moved_ms >= copying->timeout_ms;
}

static int on_tick(void *data)
{
    struct copying *copying = data;

    copying->is_full = is_full(copying);
    copying->is_stalled = is_stalled(copying);
    return copying->is_full || copying->is_stalled ? -1 : 0;
}

static int tell_stalled(const struct copying *copying, const char *source, struct error *err)
{
    const char *host = source + strlen(REGISTRY);
    int length = (int)strcspn(host, "/");
    char waited[DURATION_TEXT];

    if (!memchr(host, '.', (size_t)length) && !memchr(host, ':', (size_t)length) &&
        strncmp(host, "localhost/", 10) != 0) {
        host = "docker.io"; // where names without a host are
        length = (int)strlen(host);
    }
    return error_refuse(
        err, ERROR_UNAVAILABLE, "image",
        "fetch '%.200s': the registry '%.*s' has sent nothing for %s; see whether "
        "it works and try again, or give it more time by --image-timeout of 'burrow "
        "runtime' or 'burrow serve'",
        source, length < 200 ? length : 200, host, duration_format(copying->timeout_ms, waited));
}

// ---- how it is called ----

/* Where containers' tools keep passwords, if it is not where skopeo looks by itself. */
static char *find_passwords(void)
{
    const char *named = getenv("REGISTRY_AUTH_FILE"), *run = getenv("XDG_RUNTIME_DIR"),
               *home = getenv("HOME");
    char *places[] = {
        named && *named ? xstrdup(named) : NULL,
        run && *run == '/' ? xasprintf("%s/containers/auth.json", run) : NULL,
        xasprintf("/run/containers/%u/auth.json", (unsigned)getuid()),
        home && *home == '/' ? xasprintf("%s/.config/containers/auth.json", home) : NULL,
        home && *home == '/' ? xasprintf("%s/.docker/config.json", home) : NULL,
    };
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (!found && places[i] && access(places[i], R_OK) == 0)
            found = take(places[i]);
        free(places[i]);
    }
    return found;
}

static bool is_registry(const char *source)
{
    return strncmp(source, REGISTRY, strlen(REGISTRY)) == 0;
}

/* A registry on this machine is spoken with in the clear, as Docker does. */
static bool is_on_loopback(const char *source)
{
    const char *host = source + strlen(REGISTRY);

    if (!is_registry(source))
        return false;
    size_t length = strcspn(host, "/");
    return (strncmp(host, "localhost", 9) == 0 && strspn(host + 9, ":0123456789") == length - 9) ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, ".:0123456789") == length) ||
           strncmp(host, "[::1]", 5) == 0;
}

int skopeo_copy(const struct making *making, const char *source, const char *layout,
                const char *blobs, struct error *err)
{
    uint64_t timeout_ms = making->options->image_timeout_ms;
    struct copying copying = {
        .making = making, .blobs = blobs, .layout = layout, .moved_ms = clock_monotonic_ms()};
    autofree char *passwords = find_passwords();
    autofree char *target = xasprintf("oci:%s:image", layout);
    char program[PATH_MAX];
    const char *argv[24] = {program};
    size_t n = 1;

    if (tool_find("skopeo", program, sizeof program) < 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "skopeo is not installed; run 'apt-get install skopeo', or name a layout "
                         "that is on this machine: oci:DIR");
    if (access("/etc/containers/policy.json", R_OK) < 0)
        argv[n++] = "--insecure-policy"; // there is none to be kept; digests are compared here
    argv[n++] = "copy";
    argv[n++] = "--retry-times=2";
    argv[n++] = "--dest-oci-accept-uncompressed-layers";
    argv[n++] = "--dest-shared-blob-dir";
    argv[n++] = blobs;
    if (passwords) {
        argv[n++] = "--src-authfile";
        argv[n++] = passwords;
    }
    if (is_on_loopback(source))
        argv[n++] = "--src-tls-verify=false";
    argv[n++] = source;
    argv[n++] = target;
    const struct tool_spec spec = {
        .argv = argv,
        .log_fd = making->log_fd,
        .cancel_fd = making->options->cancel_fd,
        .on_line = on_line,
        .on_tick = on_tick,
        .data = &copying,
    };
    if (is_registry(source)) // an archive may be read for long before anything is written
        copying.timeout_ms = timeout_ms ? timeout_ms : RUNTIME_IMAGE_TIMEOUT_MS;
    making_tell(making, "asking for the image", 20);
    if (tool_run(&spec, err) == 0)
        return 0;
    if (copying.is_full)
        return error_refuse(err, ERROR_NO_SPACE, "image",
                            "fetch '%.200s': the disk of '%.200s' is nearly full; the rest is left "
                            "to others",
                            source, blobs);
    if (copying.is_stalled)
        return tell_stalled(&copying, source, err);
    return error_is(err, ERROR_GONE) ? -1 : tell(&copying, source, err);
}
