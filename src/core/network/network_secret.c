/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that no guest sees; see network_secret.h. */
#include "core/network/network_secret.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/mem.h"
#include "policy/policy.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE "network.key"
#define KEY_BYTES 32
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define SEALED "sealed:"
#define ENV "env:"
#define VARIABLE "BURROW_SECRET_"
#define HEADER_MOST 64

/* What frames a request, or says where it goes, is not a secret's to set. */
static const char *const framing[] = {
    "Host",    "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE",
    "Trailer", "Keep-Alive",     "Proxy-Connection",  "Expect",     NULL,
};

static int refuse(struct error *err, const char *text, const char *what)
{
    return error_refuse(err, ERROR_INVALID, "network.secrets", "network.secrets: %s '%.80s'", text,
                        what);
}

static int check_header(const char *header, struct error *err)
{
    size_t length = strlen(header);

    if (length == 0 || length > HEADER_MOST)
        return refuse(err, "the name of a header has 1 to 64 characters, unlike", header);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)header[i]) && !strchr("!#$%&'*+-.^_`|~", header[i]))
            return refuse(err, "this is no name of a header:", header);
    }
    for (const char *const *name = framing; *name; name++) {
        if (strcasecmp(*name, header) == 0)
            return refuse(err, "a secret cannot be the header", header);
    }
    return 0;
}

static int check_value(const char *value, struct error *err)
{
    size_t length = strlen(value);

    if (length == 0 || length > NETWORK_SECRET_VALUE)
        return error_refuse(err, ERROR_INVALID, "network.secrets",
                            "network.secrets: a value has 1 to %d bytes", NETWORK_SECRET_VALUE);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
            return error_refuse(err, ERROR_INVALID, "network.secrets",
                                "network.secrets: a value is one line, without control characters");
    }
    return 0;
}

static bool is_reference(const char *value)
{
    return strncmp(value, ENV, strlen(ENV)) == 0;
}

// ---- variables ----

static bool is_listed(const char *hosts, const char *host)
{
    size_t length = strlen(host);

    for (; *hosts; hosts += strcspn(hosts, ", ")) {
        hosts += strspn(hosts, ", ");
        if (strncasecmp(hosts, host, length) == 0 && strchr(", ", hosts[length]))
            return true;
    }
    return false;
}

/* An operator's secret goes where the operator said and nowhere else: whoever names it chooses the host. */
static int read_variable(const char *name, const char *host, const char **value, struct error *err)
{
    char variable[128];

    for (const char *at = name; *at; at++) {
        if (!isupper((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '_')
            return refuse(err, "the name of a variable has capital letters, digits and '_', unlike",
                          name);
    }
    if (!*name || strlen(name) > HEADER_MOST)
        return refuse(err, "the name of a variable has 1 to 64 characters, unlike", name);
    (void)snprintf(variable, sizeof variable, VARIABLE "%s_HOSTS", name);
    const char *hosts = getenv(variable); // NOLINT(concurrency-mt-unsafe): nobody changes it
    if (!hosts || !is_listed(hosts, host))
        return error_refuse(err, ERROR_INVALID, "network.secrets",
                            "network.secrets: 'env:%.64s' is not for host '%.100s' on this server: "
                            "its operator lists the hosts in %s",
                            name, host, variable);
    (void)snprintf(variable, sizeof variable, VARIABLE "%s", name);
    *value = getenv(variable); // NOLINT(concurrency-mt-unsafe)
    if (!*value || !**value)
        return error_refuse(err, ERROR_INVALID, "network.secrets",
                            "network.secrets: the server has no variable %s", variable);
    return check_value(*value, err);
}

// ---- the key ----

/* Whoever is second takes the first one's. */
static int make_key(int dir, struct error *err)
{
    unsigned char key[KEY_BYTES];
    char name[64];
    autofd fd = -1;

    (void)snprintf(name, sizeof name, KEY_FILE ".%d-%p", (int)getpid(), (void *)&key);
    if (RAND_bytes(key, sizeof key) != 1)
        return error_set(err, ERROR_SYSTEM, "make a key for secrets");
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "make '%s'", name);
    bool is_written = write(fd, key, sizeof key) == (ssize_t)sizeof key && fsync(fd) == 0;
    OPENSSL_cleanse(key, sizeof key);
    int result = 0;
    if (!is_written || (linkat(dir, name, dir, KEY_FILE, 0) < 0 && errno != EEXIST))
        result = error_sys(err, "keep '" KEY_FILE "'");
    (void)unlinkat(dir, name, 0);
    return result;
}

static int read_key(const char *data_dir, bool is_made, unsigned char key[KEY_BYTES],
                    struct error *err)
{
    autofd dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd fd = -1;

    if (dir < 0)
        return error_sys(err, "open '%s'", data_dir);
    fd = openat(dir, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && is_made) {
        if (make_key(dir, err) < 0)
            return -1;
        fd = openat(dir, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return error_sys(err, "open '%s/" KEY_FILE "', which seals secrets", data_dir);
    if (read(fd, key, KEY_BYTES) != KEY_BYTES)
        return error_set(err, ERROR_UNAVAILABLE, "'%s/" KEY_FILE "' is damaged", data_dir);
    return 0;
}

// ---- sealing ----

/* A sealed value counts for its host and header alone. */
static void write_context(const char *host, const char *header, char out[400])
{
    (void)snprintf(out, 400, "%s %s", host, header);
}

struct sealed {
    unsigned char nonce[NONCE_BYTES];
    unsigned char tag[TAG_BYTES];
    unsigned char text[NETWORK_SECRET_VALUE];
    int length;
};

static bool encrypt(const unsigned char *key, const char *context, const char *value,
                    struct sealed *out)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    int length = 0, last = 0;

    bool is_done = cipher && RAND_bytes(out->nonce, NONCE_BYTES) == 1 &&
                   EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, out->nonce) == 1 &&
                   EVP_EncryptUpdate(cipher, NULL, &length, (const unsigned char *)context,
                                     (int)strlen(context)) == 1 &&
                   EVP_EncryptUpdate(cipher, out->text, &out->length, (const unsigned char *)value,
                                     (int)strlen(value)) == 1 &&
                   EVP_EncryptFinal_ex(cipher, out->text + out->length, &last) == 1 &&
                   EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, out->tag) == 1;
    EVP_CIPHER_CTX_free(cipher);
    return is_done;
}

static bool decrypt(const unsigned char *key, const char *context, const struct sealed *sealed,
                    char *out)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    int length = 0, last = 0;

    bool is_done =
        cipher && EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, sealed->nonce) == 1 &&
        EVP_DecryptUpdate(cipher, NULL, &length, (const unsigned char *)context,
                          (int)strlen(context)) == 1 &&
        EVP_DecryptUpdate(cipher, (unsigned char *)out, &length, sealed->text, sealed->length) ==
            1 &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES,
                            (void *)(uintptr_t)sealed->tag) == 1 &&
        EVP_DecryptFinal_ex(cipher, (unsigned char *)out + length, &last) == 1;
    EVP_CIPHER_CTX_free(cipher);
    if (is_done)
        out[sealed->length] = '\0';
    return is_done;
}

static void add_hex(char **to, const unsigned char *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        *to += sprintf(*to, "%02x", data[i]);
}

static char *write_sealed(const char *host, const char *header, const struct sealed *sealed)
{
    size_t bytes = NONCE_BYTES + TAG_BYTES + (size_t)sealed->length;
    char *text = xcalloc(1, strlen(host) + strlen(header) + sizeof SEALED + 4 + 2 * bytes);
    char *to = text + sprintf(text, "%s %s " SEALED, host, header);

    add_hex(&to, sealed->nonce, NONCE_BYTES);
    add_hex(&to, sealed->tag, TAG_BYTES);
    add_hex(&to, sealed->text, (size_t)sealed->length);
    return text;
}

static bool read_hex(const char **from, unsigned char *out, size_t length)
{
    for (size_t i = 0; i < length; i++, *from += 2) {
        int high = hex_digit((*from)[0]), low = high < 0 ? -1 : hex_digit((*from)[1]);
        if (low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool read_sealed(const char *hex, struct sealed *out)
{
    size_t bytes = strlen(hex) / 2;

    if (bytes <= NONCE_BYTES + TAG_BYTES || bytes > NONCE_BYTES + TAG_BYTES + sizeof out->text ||
        strlen(hex) % 2)
        return false;
    out->length = (int)(bytes - NONCE_BYTES - TAG_BYTES);
    return read_hex(&hex, out->nonce, NONCE_BYTES) && read_hex(&hex, out->tag, TAG_BYTES) &&
           read_hex(&hex, out->text, (size_t)out->length);
}

static int seal_value(const char *data_dir, const char *host, const char *header, const char *value,
                      char **out, struct error *err)
{
    autofree struct sealed *sealed = xnew(struct sealed);
    unsigned char key[KEY_BYTES];
    char context[400];

    if (read_key(data_dir, true, key, err) < 0)
        return -1;
    write_context(host, header, context);
    bool is_done = encrypt(key, context, value, sealed);
    OPENSSL_cleanse(key, sizeof key);
    if (!is_done)
        return error_set(err, ERROR_SYSTEM, "seal a secret");
    *out = write_sealed(host, header, sealed);
    return 0;
}

int network_secret_seal(const char *data_dir, const struct network_secret *secret, char **out,
                        struct error *err)
{
    char host[POLICY_NAME_LENGTH];
    const char *value = NULL;

    if (!policy_fold_name(secret->host, strlen(secret->host), host))
        return refuse(err, "a secret is for one host by its name, unlike", secret->host);
    if (check_header(secret->header, err) < 0)
        return -1;
    if (!is_reference(secret->value))
        return check_value(secret->value, err) < 0
                   ? -1
                   : seal_value(data_dir, host, secret->header, secret->value, out, err);
    if (read_variable(secret->value + strlen(ENV), host, &value, err) < 0)
        return -1;
    *out = xasprintf("%s %s %s", host, secret->header, secret->value);
    return 0;
}

static const char *split(const char *packed, struct network_secret_about *out)
{
    char value[8];

    *out = (struct network_secret_about){0};
    if (sscanf(packed, "%255s %71s %7s", out->host, out->header, value) != 3)
        return "";
    const char *rest = packed + strlen(out->host) + 1 + strlen(out->header) + 1;
    if (is_reference(rest))
        (void)snprintf(out->env, sizeof out->env, "%s", rest + strlen(ENV));
    return rest;
}

void network_secret_about(const char *packed, struct network_secret_about *out)
{
    (void)split(packed, out);
}

int network_secret_open(const char *data_dir, const char *packed, char **value, struct error *err)
{
    struct network_secret_about about;
    autofree struct sealed *sealed = xnew(struct sealed);
    const char *rest = split(packed, &about);
    const char *variable = NULL;
    unsigned char key[KEY_BYTES];
    char context[400];

    if (about.env[0]) {
        if (read_variable(about.env, about.host, &variable, err) < 0)
            return error_restate(err, ERROR_UNAVAILABLE, "network.secrets");
        *value = xstrdup(variable);
        return 0;
    }
    if (strncmp(rest, SEALED, strlen(SEALED)) != 0 || !read_sealed(rest + strlen(SEALED), sealed))
        return error_set(err, ERROR_UNAVAILABLE, "the secret for host '%s' is damaged", about.host);
    if (read_key(data_dir, false, key, err) < 0)
        return -1;
    write_context(about.host, about.header, context);
    autosecret opened = xcalloc(1, (size_t)sealed->length + 1);
    bool is_done = decrypt(key, context, sealed, opened);
    OPENSSL_cleanse(key, sizeof key);
    if (!is_done)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the secret for host '%s' was sealed by another key than '%s/" KEY_FILE
                         "': set it again",
                         about.host, data_dir);
    *value = take(opened);
    return 0;
}

void network_secret_wipe(char **value)
{
    if (*value)
        OPENSSL_cleanse(*value, strlen(*value));
    free(take(*value));
}
