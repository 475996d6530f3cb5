/* SPDX-License-Identifier: Apache-2.0 */
/* Host keys of SSH; see ssh_host_key.h. */
#include "ssh/ssh_host_key.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLOB 160
#define POINT 65 // of P-256, uncompressed

static const struct kind {
    const char *file, *type, *curve; // no curve: Ed25519
} kinds[SSH_HOST_KEYS] = {
    {"host_ed25519_key", "ssh-ed25519", NULL},
    {"host_ecdsa_key", "ecdsa-sha2-nistp256", "P-256"},
};

static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
#define autokeypair __attribute__((cleanup(free_key))) EVP_PKEY

static size_t add_string(unsigned char *blob, size_t at, const void *data, size_t length)
{
    const unsigned char head[4] = {0, 0, (unsigned char)(length >> 8), (unsigned char)length};

    memcpy(blob + at, head, sizeof head);
    memcpy(blob + at + sizeof head, data, length);
    return at + sizeof head + length;
}

/* The public key as SSH spells it (RFC 8709, RFC 5656). */
static bool make_blob(EVP_PKEY *key, const struct kind *kind, unsigned char blob[BLOB],
                      size_t *length)
{
    unsigned char point[POINT];
    size_t size = sizeof point;

    *length = add_string(blob, 0, kind->type, strlen(kind->type));
    if (!kind->curve) {
        if (EVP_PKEY_get_raw_public_key(key, point, &size) != 1)
            return false;
    } else {
        *length = add_string(blob, *length, "nistp256", 8);
        if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                            &size) != 1)
            return false;
    }
    *length = add_string(blob, *length, point, size);
    return true;
}

#define MAGIC "openssh-key-v1" // its NUL is part of it
#define BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define END "\n-----END OPENSSH PRIVATE KEY-----\n"
#define SEED 32

/* Of Ed25519 libssh reads nothing but OpenSSH's own form (PROTOCOL.key): the public key, then both once more, filled up to eight bytes. */
static bool write_openssh(EVP_PKEY *key, const struct kind *kind, char pem[SSH_HOST_KEY_PEM])
{
    static const unsigned char one[] = {0, 0, 0, 1}, check[8] = {0};
    unsigned char pair[2 * SEED], blob[BLOB], inner[256], all[512];
    size_t length, seed = SEED, public = SEED, at = sizeof check, end = sizeof MAGIC;

    if (EVP_PKEY_get_raw_private_key(key, pair, &seed) != 1 ||
        EVP_PKEY_get_raw_public_key(key, pair + SEED, &public) != 1 ||
        !make_blob(key, kind, blob, &length))
        return false;
    memcpy(inner, check, sizeof check);
    at = add_string(inner, at, kind->type, strlen(kind->type));
    at = add_string(inner, at, pair + SEED, SEED);
    at = add_string(inner, at, pair, sizeof pair);
    at = add_string(inner, at, "burrow", 6);
    for (unsigned char fill = 1; at % 8; fill++)
        inner[at++] = fill;
    memcpy(all, MAGIC, sizeof MAGIC);
    end = add_string(all, end, "none", 4);
    end = add_string(all, end, "none", 4);
    end = add_string(all, end, "", 0);
    memcpy(all + end, one, sizeof one);
    end = add_string(all, end + sizeof one, blob, length);
    end = add_string(all, end, inner, at);
    char *text = stpcpy(pem, BEGIN);
    base64_encode(all, end, text);
    (void)strcat(text, END);
    OPENSSL_cleanse(pair, sizeof pair);
    OPENSSL_cleanse(inner, sizeof inner);
    OPENSSL_cleanse(all, sizeof all);
    return true;
}

static int describe(EVP_PKEY *key, const struct kind *kind, struct ssh_host_key *out,
                    struct error *err)
{
    unsigned char blob[BLOB], hash[SHA256_DIGEST_LENGTH];
    char text[BLOB * 2];
    size_t length;

    if (!make_blob(key, kind, blob, &length) ||
        (!kind->curve && !write_openssh(key, kind, out->pem)))
        return error_set(err, ERROR_SYSTEM, "this is no key of type '%s'", kind->type);
    base64_encode(blob, length, text);
    (void)snprintf(out->line, sizeof out->line, "%s %s", kind->type, text);
    (void)SHA256(blob, length, hash);
    base64_encode(hash, sizeof hash, text);
    (void)snprintf(out->fingerprint, sizeof out->fingerprint, "SHA256:%.43s", text);
    return 0;
}

static EVP_PKEY *generate(const struct kind *kind)
{
    return kind->curve ? EVP_EC_gen(kind->curve) : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

/* As PEM; P-256 in the form that names the curve. */
static bool write_pem(EVP_PKEY *key, char pem[SSH_HOST_KEY_PEM])
{
    BIO *memory = BIO_new(BIO_s_mem());
    bool is_written = memory && PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL);
    int length = is_written ? BIO_read(memory, pem, SSH_HOST_KEY_PEM - 1) : -1;

    pem[length > 0 ? length : 0] = '\0';
    BIO_free(memory);
    return length > 0;
}

static EVP_PKEY *read_pem(const char *pem)
{
    BIO *memory = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = memory ? PEM_read_bio_PrivateKey(memory, NULL, NULL, NULL) : NULL;

    BIO_free(memory);
    return key;
}

/* Both under a name of their own first: what is there is whole. */
static int store_file(int dir, const char *name, const char *text, mode_t mode, struct error *err)
{
    char temporary[64];

    (void)snprintf(temporary, sizeof temporary, ".%s.new", name);
    (void)unlinkat(dir, temporary, 0);
    autofd fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 || fsync(fd) < 0 ||
        renameat(dir, temporary, dir, name) < 0)
        return error_sys(err, "write the host key '%s' of SSH", name);
    return 0;
}

static int store_key(int dir, const struct kind *kind, const struct ssh_host_key *key,
                     const char *pem, struct error *err)
{
    char name[64], line[SSH_HOST_KEY_LINE + 16];

    (void)snprintf(name, sizeof name, "%s.pub", kind->file);
    (void)snprintf(line, sizeof line, "%s burrow\n", key->line);
    if (store_file(dir, name, line, 0644, err) < 0)
        return -1;
    return store_file(dir, kind->file, pem, 0600, err);
}

static int open_key(int dir, const struct kind *kind, struct ssh_host_key *out, struct error *err)
{
    autofd fd = openat(dir, kind->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autokeypair *key = NULL;
    char pem[SSH_HOST_KEY_PEM];

    if (fd >= 0) {
        ssize_t got = fd_read_full(fd, out->pem, sizeof out->pem - 1);
        out->pem[got > 0 ? got : 0] = '\0';
        key = read_pem(out->pem);
        if (!key)
            return error_set(err, ERROR_SYSTEM,
                             "the host key 'ssh/%s' in the data directory cannot be read: remove "
                             "it, and a new one is made that clients will have to accept",
                             kind->file);
        return describe(key, kind, out, err);
    }
    if (errno != ENOENT)
        return error_sys(err, "open the host key '%s' of SSH", kind->file);
    key = generate(kind);
    if (!key || !write_pem(key, pem))
        return error_set(err, ERROR_SYSTEM, "a host key of SSH could not be made");
    memcpy(out->pem, pem, sizeof pem);
    int result = describe(key, kind, out, err) < 0 ? -1 : store_key(dir, kind, out, pem, err);
    OPENSSL_cleanse(pem, sizeof pem);
    return result;
}

int ssh_host_keys_open(const char *data_dir, struct ssh_host_key out[SSH_HOST_KEYS],
                       struct error *err)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/ssh", data_dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make '%s'", path);
    autofd dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open '%s'", path);
    for (size_t i = 0; i < SSH_HOST_KEYS; i++) {
        if (open_key(dir, &kinds[i], &out[i], err) < 0)
            return -1;
    }
    return 0;
}
