/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account.c and ssh_key.c. The keys are ssh-keygen's, and so are their fingerprints. */
#include "core/account/account.h"

#include "core/account/ssh_key.h"
#include "../core_rig.h"

#define ED25519 "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWgCzMNxQKWQq8qeiMk9g+zwGC8iiy2SANmOM37wJ2a"
#define ED25519_PRINT "SHA256:WtE53c5R0QBdBYPu5xjAHpOQR9Pjmk8GManzKcLtyFc"
#define RSA                                                                                        \
    "ssh-rsa "                                                                                     \
    "AAAAB3NzaC1yc2EAAAADAQABAAABAQCmbUpeWjvxMPZHHoiSNo0xOWpZgxa3IikBpM/"                          \
    "vYOpftdA2SrvWL58EoGC513JogI5BT2NkY9ZP"                                                        \
    "rYbC8Gzj+X4Dk9qp7GZePeEWot060Gea9F2ti1sKpHE+4Piqq8d5UGNAZA5LMEaY7AkzfDxyb/"                   \
    "OWG6JjGlU+SpvCXaxOouYP9dldKi6YZkomzgiC"                                                       \
    "eQareXkY9KcRyFcbTY5uJ3SWBM4ELZCy7U9vlivV8zANaFgvs/Ud/"                                        \
    "ppZ3c9ZFTc5LVZrcqMjhxVkljytNEdQxsdHtn9HvyZ7RxRNRp00f2ZTGIjf"                                  \
    "/Xa33lqf7P+JJR/S0J28n0lZWBtkZYngnoEj/VS4qyYB"
#define ECDSA                                                                                      \
    "ecdsa-sha2-nistp384 "                                                                         \
    "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBKOmY1QbmbKes31K1QbEgpxU2IDIxYTPyRK9HQjd" \
    "5ZnbC4Gm9zbHY+YOZh/RUEhtj7hNSSFx9T9o1msh+nAhmAWG5lhMZu7PgpXPP//o503DRtC8plAlBsE0jIsdeCMmbA=="

TEST(keys_are_read_as_ssh_keygen_writes_them)
{
    static const struct {
        const char *line, *type, *comment, *fingerprint, *text;
    } rows[] = {
        {ED25519 " one@two\n", "ssh-ed25519", "one@two", ED25519_PRINT, ED25519},
        {"  " ED25519 "\r\n\n", "ssh-ed25519", "", ED25519_PRINT, ED25519},
        {RSA " \n", "ssh-rsa", "", "SHA256:+8jiXAxxKJvbqPS08C3COKOkipid2uHNhCryakj6Tbk", RSA},
        {ECDSA " three words here", "ecdsa-sha2-nistp384", "three words here",
         "SHA256:Ar0D5N1cF/UMBDggTA5iXF4EebqrCnpbdl3zwf/quek", ECDSA},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        autosshkey key = {0};
        CHECK_OK(ssh_key_parse(rows[i].line, &key, &err), err);
        CHECK_STR(key.type, rows[i].type);
        CHECK_STR(key.comment, rows[i].comment);
        CHECK_STR(key.fingerprint, rows[i].fingerprint);
        CHECK_STR(key.text, rows[i].text);
    }
}

TEST(what_is_no_key_is_refused_with_its_reason)
{
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"", "it must begin with its type"},
        {"hello", "it must begin with its type"},
        {"ssh-dss AAAAB3NzaC1kc3M=", "it must begin with its type"},
        {"command=\"ls\" " ED25519, "it must begin with its type"},
        {"-----BEGIN OPENSSH PRIVATE KEY-----", "it looks like a private key"},
        {"ssh-ed25519", "its second word is not base64"},
        {"ssh-ed25519 AAAA*AAA", "its second word is not base64"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWgCzMNxQKWQq8qeiMk9g",
         "its second word is not base64"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWgCzMN", "it is cut off"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "it is cut off"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", "it is cut off"},
        {"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIJWgCzMNxQKWQq8qeiMk9g+zwGC8iiy2SANmOM37wJ2a",
         "of another type"},
        {"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQ=", "of another type"},
        {"ssh-ed25519 /////w==", "it is cut off"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAAZ==",
         "its second word is not base64"}, // stray bits behind the last byte
        {ED25519 " one\n" ED25519 " two", "it has several lines"},
        {ED25519 " \xff\xfe", "its comment is not UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        struct ssh_key key = {0};
        CHECK(ssh_key_parse(rows[i].line, &key, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        if (!strstr(err.text, rows[i].why))
            test_fail(__FILE__, __LINE__, "row %zu: \"%s\" does not say \"%s\"", i, err.text,
                      rows[i].why);
        CHECK(!key.type);
    }
}

TEST(ssh_keys_belong_to_an_organisation)
{
    struct core *core = rig_core();
    struct organisation_record second = {"org2", "Them", NOW};
    struct actor us = rig_actor(), them = {.organisation = "org2", .scopes = SCOPES_ALL};
    struct ssh_key_info key = {0}, again = {0};
    struct page page = {10, 0};
    autoclear(ssh_key_infos) ours = {0}, theirs = {0};
    bool is_new = false, found = false;
    struct error err = {0};

    CHECK_OK(store_organisation_put(core->store, &second, &err), err);
    CHECK_OK(account_ssh_key_add(core->accounts, &us, ED25519 " one@two", &key, &is_new, &err),
             err);
    CHECK(is_new);
    CHECK_STR(key.fingerprint, ED25519_PRINT);
    CHECK_OK(account_ssh_key_add(core->accounts, &us, ED25519, &again, &is_new, &err), err);
    CHECK(!is_new);
    CHECK_OK(account_ssh_key_list(core->accounts, &them, &page, &theirs, &err), err);
    CHECK_INT(theirs.total, 0);
    CHECK_OK(account_ssh_key_remove(core->accounts, &them, ED25519_PRINT, &found, &err), err);
    CHECK(!found);
    CHECK_OK(account_ssh_key_list(core->accounts, &us, &page, &ours, &err), err);
    CHECK_INT(ours.total, 1);
    CHECK_STR(ours.items[0].public_key, ED25519);
    CHECK_STR(ours.items[0].comment, "one@two");
    CHECK_OK(account_ssh_key_remove(core->accounts, &us, ED25519_PRINT, &found, &err), err);
    CHECK(found);
    ssh_key_info_clear(&key);
    ssh_key_info_clear(&again);
}

TEST(an_actor_learns_of_its_organisation)
{
    struct core *core = rig_core();
    struct actor us = rig_actor(), nobody = {.organisation = "org9"};
    autoclear(organisation_info) ours = {0}, none = {0};
    struct error err = {0};

    CHECK_OK(account_organisation(core->accounts, &us, &ours, &err), err);
    CHECK_STR(ours.name, "Us");
    CHECK(account_organisation(core->accounts, &nobody, &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}
