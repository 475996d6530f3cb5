/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate of the way out, in a sandbox; see sandbox_trust.h. */
#include "core/sandbox/sandbox_trust.h"

#include "base/buffer.h"
#include "core/network/outlet.h"
#include "core/sandbox/sandbox_box.h"
#include "engine/files.h"

#include <string.h>

#define SYSTEM "/etc/ssl/certs/ca-certificates.crt"
#define OWN "/etc/burrow/ca.pem"
#define BUNDLE "/etc/burrow/ca-bundle.pem" // the system's, and this one
#define BUNDLE_MOST ((size_t)4 << 20)
#define PATIENCE_MS 10000

static const char *const variables[] = {
    "NODE_EXTRA_CA_CERTS=" OWN,   // Node adds this one
    "SSL_CERT_FILE=" BUNDLE,      // OpenSSL, Go, and Python with it
    "REQUESTS_CA_BUNDLE=" BUNDLE, // Python's requests, which brings a bundle of its own
    "CURL_CA_BUNDLE=" BUNDLE,     "GIT_SSL_CAINFO=" BUNDLE,
};

void sandbox_trust_env(const struct sandbox *sandbox, struct strings *env)
{
    if (!sandbox->record.network.secrets || !*sandbox->record.network.secrets)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        const char *const pair[] = {variables[i], NULL};
        strings_merge(env, pair);
    }
}

static bool has_secrets(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->record.network.secrets && *sandbox->record.network.secrets;
}

static int add_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    return buffer_add(data, bytes, length, err);
}

static bool has_text(const struct buffer *buffer, const struct buffer *text)
{
    return buffer->length && memmem(buffer->data, buffer->length, text->data, text->length);
}

/* Behind those that are there. Those who read the system's bundle alone find it there, where that can be written. */
static int write_bundles(int conversation, const struct buffer *certificate, struct error *err)
{
    autobuffer bundle = {.maximum = BUNDLE_MOST};
    struct error ignored = {0};

    if (files_read(conversation, SYSTEM, 0, BUNDLE_MOST, NULL, add_bytes, &bundle, NULL, err) < 0 &&
        !error_is(err, ERROR_NOT_FOUND))
        return -1;
    bool is_there = has_text(&bundle, certificate);
    if ((!is_there && buffer_add(&bundle, certificate->data, certificate->length, err) < 0) ||
        files_write_buffer(conversation, BUNDLE, 0644, FILES_PARENTS, bundle.data, bundle.length,
                           err) < 0)
        return -1;
    if (!is_there)
        (void)files_write_buffer(conversation, SYSTEM, 0644, FILES_PARENTS, bundle.data,
                                 bundle.length, &ignored);
    return 0;
}

static int open_root(struct sandbox *sandbox, int *conversation, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    return held ? box_files(held->box, NULL, "/", conversation, err) : -1;
}

int sandbox_trust(struct sandbox *sandbox, struct error *err)
{
    autobuffer certificate = {.maximum = BUNDLE_MOST};
    autofd conversation = -1;

    if (!has_secrets(sandbox))
        return 0;
    if (outlets_certificate(sandbox->sandboxes->outlets, &certificate, err) < 0 ||
        open_root(sandbox, &conversation, err) < 0 ||
        files_set_timeout(conversation, PATIENCE_MS, err) < 0 ||
        files_write_buffer(conversation, OWN, 0644, FILES_PARENTS, certificate.data,
                           certificate.length, err) < 0 ||
        write_bundles(conversation, &certificate, err) < 0) {
        (void)error_wrap(err, "have the sandbox trust the certificate for its secrets");
        return error_is_fault(err) ? -1 : error_restate(err, ERROR_UNAVAILABLE, "network.secrets");
    }
    return 0;
}
