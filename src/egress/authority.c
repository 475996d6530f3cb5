/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and certificates by libcrypto; see authority.h. */
#include "egress/authority.h"

#include "base/mem.h"
#include "egress/egress_wire.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY (24 * 3600L)
#define AUTHORITY_DAYS 3650L
#define LEAF_DAYS 7L

struct authority {
    X509 *certificate;
    EVP_PKEY *key;
};

void authority_free(struct authority *authority)
{
    if (!authority)
        return;
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    free(authority);
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool is_good = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_good;
}

static bool set_serial(X509 *certificate)
{
    unsigned char bytes[16];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] &= 0x7f;
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool is_good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return is_good;
}

/* What both kinds have. */
static X509 *begin_certificate(EVP_PKEY *key, const char *name, long days)
{
    X509 *certificate = X509_new();
    X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;
    char common[65];

    (void)snprintf(common, sizeof common, "%s",
                   name); // X.520 has no longer ones; hosts go by their other name
    if (certificate && X509_set_version(certificate, 2) == 1 && set_serial(certificate) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), days * DAY) &&
        X509_set_pubkey(certificate, key) == 1 &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)common, -1,
                                   -1, 0) == 1)
        return certificate;
    X509_free(certificate);
    return NULL;
}

static int write_pem(X509 *certificate, EVP_PKEY *key, struct buffer *out, struct error *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *data = NULL;
    int result = -1;

    if (bio && PEM_write_bio_X509(bio, certificate) == 1 &&
        (!key || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)) {
        long length = BIO_get_mem_data(bio, &data);
        result = buffer_add(out, data, (size_t)length, err);
    } else {
        (void)error_set(err, ERROR_SYSTEM, "write a certificate");
    }
    BIO_free(bio);
    return result;
}

static int make_authority(struct authority *authority, struct error *err)
{
    unsigned char bytes[4];
    char name[64];

    authority->key = EVP_EC_gen("P-256");
    if (!authority->key || RAND_bytes(bytes, sizeof bytes) != 1)
        return error_set(err, ERROR_SYSTEM, "make a key");
    (void)snprintf(name, sizeof name, "burrow egress %02x%02x%02x%02x", bytes[0], bytes[1],
                   bytes[2], bytes[3]);
    X509 *certificate = begin_certificate(authority->key, name, AUTHORITY_DAYS);
    authority->certificate = certificate;
    if (!certificate ||
        X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
        !add_extension(certificate, certificate, NID_basic_constraints,
                       "critical,CA:TRUE,pathlen:0") ||
        !add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(certificate, certificate, NID_subject_key_identifier, "hash") ||
        !X509_sign(certificate, authority->key, EVP_sha256()))
        return error_set(err, ERROR_SYSTEM, "make a certificate");
    return 0;
}

/* Whole or not at all: another supervisor may read it after a crash. */
static int save(const struct authority *authority, const char *path, struct error *err)
{
    autobuffer text = {0};
    autofree char *temporary = xasprintf("%s.new", path);

    if (write_pem(authority->certificate, authority->key, &text, err) < 0)
        return -1;
    autofd fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_good = fd >= 0 && fchmod(fd, 0600) == 0 &&
                   write(fd, text.data, text.length) == (ssize_t)text.length && fsync(fd) == 0 &&
                   rename(temporary, path) == 0;
    int result = is_good ? 0 : error_sys(err, "write '%s'", path);
    explicit_bzero(text.data, text.length);
    return result;
}

static int read_authority(FILE *file, const char *path, struct authority *authority,
                          struct error *err)
{
    struct stat status;

    if (fstat(fileno(file), &status) < 0)
        return error_sys(err, "look at '%s'", path);
    if (status.st_mode & 077)
        return error_set(err, ERROR_UNAVAILABLE,
                         "others may read '%s', which has a key: chmod 600 it, or remove it", path);
    authority->certificate = PEM_read_X509(file, NULL, NULL, NULL);
    authority->key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    if (!authority->certificate || !authority->key)
        return error_set(err, ERROR_UNAVAILABLE,
                         "'%s' has no certificate and key: remove it, and another is made", path);
    return 0;
}

int authority_open(const char *data_dir, struct authority **out, struct error *err)
{
    autoptr(authority) authority = xnew(struct authority);
    autofree char *path = xasprintf("%s/" EGRESS_KEY, data_dir);
    autofile file = fopen(path, "re");

    if (file ? read_authority(file, path, authority, err) < 0
             : make_authority(authority, err) < 0 || save(authority, path, err) < 0)
        return -1;
    *out = take(authority);
    return 0;
}

int authority_certificate(const struct authority *authority, struct buffer *out, struct error *err)
{
    return write_pem(authority->certificate, NULL, out, err);
}

int authority_sign(const struct authority *authority, const char *host, struct buffer *out,
                   struct error *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key ? begin_certificate(key, host, LEAF_DAYS) : NULL;
    autofree char *names = xasprintf("DNS:%s", host);
    int result = -1;

    if (certificate &&
        X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate)) == 1 &&
        add_extension(certificate, authority->certificate, NID_basic_constraints,
                      "critical,CA:FALSE") &&
        add_extension(certificate, authority->certificate, NID_key_usage,
                      "critical,digitalSignature") &&
        add_extension(certificate, authority->certificate, NID_ext_key_usage, "serverAuth") &&
        add_extension(certificate, authority->certificate, NID_subject_alt_name, names) &&
        add_extension(certificate, authority->certificate, NID_authority_key_identifier, "keyid") &&
        X509_sign(certificate, authority->key, EVP_sha256()))
        result = write_pem(certificate, key, out, err);
    else
        (void)error_set(err, ERROR_SYSTEM, "sign a certificate for '%s'", host);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return result;
}
