/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account/ssh_key.c, ssh_keys.c and ssh_login.c. The keys are ssh-keygen's, and so are their fingerprints. */
#include "core/account/ssh_login.h"

#include "base/clock.h"
#include "core/account/key.h"
#include "core/account/ssh_key.h"
#include "core/event/hub.h"
#include "../core_rig.h"

#include <stdatomic.h>
#include <string.h>

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

#define RSA_1024                                                                                   \
    "ssh-rsa "                                                                                     \
    "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDq4ZAPMBNgDFVNQf0UooNAZqc2yysu2xPxly9ARBu2SRqBTTTIHxZF/"        \
    "qqiKO9cysn5n7SsranSIB7jqdfDGkm3TzmgaoutK7MMOY1Dy6P6hg1C92YL7UDkBPpWKU4JYHgl/"                 \
    "1lPgAiIuylvuUMVLoxtxqf85v+QcVRdiqfyLBn19w=="
#define SK_ED25519                                                                                 \
    "sk-ssh-ed25519@openssh.com "                                                                  \
    "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+"                      \
    "xkDzE2wIlhxeSGkiBAAAABHNzaDo="
#define SK_ECDSA                                                                                   \
    "sk-ecdsa-sha2-nistp256@openssh.com "                                                          \
    "AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAAIbmlzdHAyNTYAAABBBC1xFkK3JrBEAWJ8qfus" \
    "MvXIUw+xkDzE2wIlhxeSGkiBLXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIEAAAAEc3NoOg=="

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
        {"ecdsa-sha2-nistp256 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDhJXAFdJoRM5UW1WGWVo57xUxuMuZgPlsd79"
         "Mhoq5jCm/qUDYpiXUP3I04+wzkfscSwZA0LLNE4jrWHA6QL1+E=",
         "ecdsa-sha2-nistp256", "", "SHA256:3UaFXsqv/SZd0/OTcIJdhGM5n8ZoYtGkJWaqSikOa38",
         "ecdsa-sha2-nistp256 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDhJXAFdJoRM5UW1WGWVo57xUxuMuZgPlsd79"
         "Mhoq5jCm/qUDYpiXUP3I04+wzkfscSwZA0LLNE4jrWHA6QL1+E="},
        {"ecdsa-sha2-nistp521 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAGmBsi3bgenxapQoaIjPNDyAcZty7WWxDL4T"
         "gE0kWurjJJ68Hv/"
         "d371zyVN7GapJYIs81QaonlhzqSSoURIjHIK1AA+nmxBN0BgOmDVO9kNW4LiK0cQehsrguMFrpJN0A479tXpf/"
         "htNlXVjzCK+7Ko5MktQ4qqDFT2Twd7l1M8+dHwuQ==",
         "ecdsa-sha2-nistp521", "", "SHA256:4AXQDeES0w0qx4fZB1/2HunAGbX67N6mkwOwVhzKPIM",
         "ecdsa-sha2-nistp521 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAGmBsi3bgenxapQoaIjPNDyAcZty7WWxDL4T"
         "gE0kWurjJJ68Hv/"
         "d371zyVN7GapJYIs81QaonlhzqSSoURIjHIK1AA+nmxBN0BgOmDVO9kNW4LiK0cQehsrguMFrpJN0A479tXpf/"
         "htNlXVjzCK+7Ko5MktQ4qqDFT2Twd7l1M8+dHwuQ=="},
        {SK_ED25519 " yubi", "sk-ssh-ed25519@openssh.com", "yubi",
         "SHA256:8Zrq6cHatI800NYmyWw7+40Ct8UffGmngarIJt1bBQs", SK_ED25519},
        {SK_ECDSA, "sk-ecdsa-sha2-nistp256@openssh.com", "",
         "SHA256:Xt6pbk2VLa+AdTutRd847uxo3cS3mi7/n3IUUzLog9E", SK_ECDSA},
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
        {"ssh-dss AAAAB3NzaC1kc3M=", "it is a DSA key"},
        {"command=\"ls\" " ED25519, "it begins with options"},
        {"no-pty,from=\"10.0.0.1\" " ED25519 " me", "it begins with options"},
        {"ssh-ed25519-cert-v01@openssh.com AAAA", "it is a certificate"},
        {"PuTTY-User-Key-File-3: ssh-ed25519", "it looks like a private key"},
        {"---- BEGIN SSH2 PUBLIC KEY ----\nComment: x\nAAAA", "ssh-keygen -i"},
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
        {ED25519 " \033[31mred", "its comment has control characters"},
        {RSA_1024, "less than 2048 bits"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAHy1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkg=",
         "has another length"},
        {"ssh-ed25519 "
         "AAAAC3NzaC1lZDI1NTE5AAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiBAAAABG1vcmU=",
         "goes on after the key"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiBAA==",
         "goes on after the key"},
        {"ecdsa-sha2-nistp256 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAzODQAAABBBC1xFkK3JrBEAWJ8qfusMvXIUw+"
         "xkDzE2wIlhxeSGkiBLXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=",
         "of another curve"},
        {"ecdsa-sha2-nistp256 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAAhAi1xFkK3JrBEAWJ8qfusMvXIUw+"
         "xkDzE2wIlhxeSGkiB",
         "has another length"},
        {"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY=", "it is cut off"},
        {"sk-ssh-ed25519@openssh.com "
         "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiB",
         "it is cut off"},
        {"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB", "it is cut off"},
        {"ssh-rsa "
         "AAAAB3NzaC1yc2EAAAAAAAABAH9/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f38=",
         "its numbers are none"},
        {"ssh-rsa "
         "AAAAB3NzaC1yc2EAAAABAgAAAQB/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/",
         "its numbers are none"},
        {"ssh-rsa "
         "AAAAB3NzaC1yc2EAAAADAQABAAABAYB/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39/"
         "f39/f39/f39/f39/f39/",
         "less than 2048 bits"},
        {"ssh-rsa "
         "AAAAB3NzaC1yc2EAAAADAQABAAABLAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
         "less than 2048 bits"},
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

static struct core *core; // of the test, by begin

static void begin(void)
{
    core = rig_core();
}

static int add(const struct actor *actor, const char *line, const char *name, bool *is_new,
               struct error *err)
{
    const struct ssh_key_request request = {.line = line, .name = name};
    autoclear(ssh_key_info) info = {0};

    *err = (struct error){0};
    return ssh_key_add(core->accounts, actor, &request, &info, is_new, err);
}

static void take_away(const struct actor *actor, const char *fingerprint)
{
    struct error err = {0};
    bool found = false;

    CHECK_OK(ssh_key_remove(core->accounts, actor, fingerprint, &found, &err), err);
    CHECK(found);
}

static int64_t count(const struct actor *actor)
{
    autoclear(ssh_key_infos) found = {0};
    struct page page = {10, 0};
    struct error err = {0};

    CHECK_OK(ssh_key_list(core->accounts, actor, &page, &found, &err), err);
    return found.total;
}

TEST(ssh_keys_belong_to_an_organisation)
{
    begin();
    struct organisation_record second = {"org2", "Them", NOW};
    struct actor us = rig_actor(), them = {.organisation = "org2", .scopes = SCOPES_ALL};
    autoclear(ssh_key_infos) ours = {0};
    struct page page = {10, 0};
    bool is_new = false, found = true;
    struct error err = {0};

    CHECK_OK(store_organisation_put(core->store, &second, &err), err);
    CHECK_OK(add(&us, ED25519 " one@two", NULL, &is_new, &err), err);
    CHECK(is_new);
    CHECK_OK(add(&us, ED25519, NULL, &is_new, &err), err);
    CHECK(!is_new);
    CHECK_INT(count(&them), 0);
    CHECK_OK(ssh_key_remove(core->accounts, &them, ED25519_PRINT, &found, &err), err);
    CHECK(!found);
    CHECK_OK(ssh_key_list(core->accounts, &us, &page, &ours, &err), err);
    CHECK_INT(ours.total, 1);
    CHECK_STR(ours.items[0].public_key, ED25519);
    CHECK_STR(ours.items[0].comment, "one@two");
    CHECK(!ours.items[0].name && ours.items[0].is_in_use && !ours.items[0].used_at);
    take_away(&us, ED25519_PRINT);
}

// An API key, and who has it.
static struct actor make_actor(const char *member, unsigned scopes, char id[ID_TEXT])
{
    struct key_request request = {.name = "k", .member = member, .scopes = scopes};
    autoclear(key_info) key = {0};
    char text[KEY_TEXT];
    struct actor actor = {0};
    struct error err = {0};

    CHECK_OK(key_create(core->accounts, &request, text, &key, &err), err);
    CHECK_OK(key_check(core->accounts, text, &actor, &err), err);
    if (id)
        (void)snprintf(id, ID_TEXT, "%s", key.id);
    return actor;
}

static bool take_first(void *data, const struct actor *actor)
{
    *(struct actor *)data = *actor;
    return false;
}

static int log_in(const char *fingerprint, struct actor *out, struct error *err)
{
    *err = (struct error){0};
    *out = (struct actor){0};
    return ssh_login(core->accounts, fingerprint, take_first, out, err);
}

TEST(who_logs_in_is_who_added_the_key_with_less)
{
    begin();
    char id[ID_TEXT];
    struct actor alice = make_actor("alice", SCOPES_USUAL, id), root = rig_actor(), got;
    struct error err = {0};
    bool is_new = false;

    CHECK_OK(add(&alice, ED25519, "laptop", &is_new, &err), err);
    CHECK_OK(log_in(ED25519_PRINT, &got, &err), err);
    CHECK_STR(got.key_id, id);
    CHECK_STR(got.member, "alice");
    CHECK_STR(got.organisation, alice.organisation);
    CHECK_INT(got.scopes, SCOPE_READ | SCOPE_RUN);
    take_away(&alice, ED25519_PRINT);
    CHECK(log_in(ED25519_PRINT, &got, &err) < 0);

    // The machine's own root makes no administrator of anybody.
    CHECK_OK(add(&root, ED25519, NULL, &is_new, &err), err);
    CHECK_OK(log_in(ED25519_PRINT, &got, &err), err);
    CHECK_STR(got.key_id, "");
    CHECK(!got.is_admin && got.scopes == (SCOPE_READ | SCOPE_RUN | SCOPE_ORGANISATION));
    take_away(&root, ED25519_PRINT);
}

TEST(every_kind_of_wrong_key_is_refused_in_the_same_words)
{
    begin();
    char revoked_id[ID_TEXT], small_id[ID_TEXT];
    struct actor revoked = make_actor("bob", SCOPES_USUAL, revoked_id), got;
    struct actor small = make_actor("bob", SCOPE_READ | SCOPE_MANAGE, small_id);
    struct error unknown, ended, less, err = {0};
    bool is_new = false;

    CHECK_OK(add(&revoked, ED25519, NULL, &is_new, &err), err);
    CHECK_OK(log_in(ED25519_PRINT, &got, &err), err);
    CHECK_OK(key_revoke(core->accounts, revoked_id, &err), err);
    CHECK(log_in(ED25519_PRINT, &got, &ended) < 0);
    CHECK(log_in("SHA256:nobody", &got, &unknown) < 0);
    // What has ended may be added anew by its owner; with less than it takes it opens nothing.
    CHECK_OK(add(&small, ED25519, NULL, &is_new, &err), err);
    CHECK(is_new);
    CHECK(log_in(ED25519_PRINT, &got, &less) < 0);
    CHECK(!*got.organisation);
    CHECK(error_is(&unknown, ERROR_NOT_FOUND) && error_is(&ended, ERROR_NOT_FOUND) &&
          error_is(&less, ERROR_NOT_FOUND));
    CHECK_STR(ended.text, unknown.text);
    CHECK_STR(less.text, unknown.text);
    take_away(&small, ED25519_PRINT);
}

static bool add_name(void *data, const struct actor *actor)
{
    char *names = data; // 64 bytes
    const size_t length = strlen(names);

    (void)snprintf(names + length, 64 - length, "%s ", actor->member);
    return true;
}

TEST(a_key_of_somebody_else_stays_theirs)
{
    begin();
    char id[ID_TEXT], names[64] = "", later[64] = "";
    struct actor alice = make_actor("alice", SCOPES_USUAL, id), again;
    struct actor bob = make_actor("bob", SCOPES_USUAL, NULL), got;
    struct error err = {0};
    bool is_new = false, found = true;

    CHECK_OK(add(&alice, ED25519, NULL, &is_new, &err), err);
    CHECK_OK(ssh_key_remove(core->accounts, &bob, ED25519_PRINT, &found, &err), err);
    CHECK(!found);
    // Bob learns nothing of hers when he adds it, and takes nothing from her.
    CHECK_OK(add(&bob, ED25519, "mine now", &is_new, &err), err);
    CHECK(is_new);
    CHECK_INT(count(&bob), 1);
    CHECK_OK(ssh_login(core->accounts, ED25519_PRINT, add_name, names, &err), err);
    CHECK_STR(names, "alice bob ");
    // Nor when her API key has ended: it is hers again as soon as she adds it.
    CHECK_OK(key_revoke(core->accounts, id, &err), err);
    CHECK_OK(log_in(ED25519_PRINT, &got, &err), err);
    CHECK_STR(got.member, "bob");
    again = make_actor("alice", SCOPES_USUAL, NULL);
    CHECK_OK(add(&again, ED25519, NULL, &is_new, &err), err);
    CHECK(is_new);
    CHECK_OK(ssh_login(core->accounts, ED25519_PRINT, add_name, later, &err), err);
    CHECK(strstr(later, "alice ") && strstr(later, "bob "));
    take_away(&bob, ED25519_PRINT);
    CHECK_OK(log_in(ED25519_PRINT, &got, &err), err);
    CHECK_STR(got.member, "alice");
    take_away(&again, ED25519_PRINT);
}

TEST(a_token_can_do_nothing_with_keys)
{
    begin();
    struct actor token = make_actor("alice", SCOPES_USUAL, NULL);
    autoclear(ssh_key_infos) found = {0};
    struct page page = {10, 0};
    struct error err = {0};
    bool is_new = false;

    (void)snprintf(token.sandbox, sizeof token.sandbox, "%s", "one");
    CHECK(add(&token, ED25519, NULL, &is_new, &err) < 0);
    CHECK(error_is(&err, ERROR_DENIED));
    CHECK(ssh_key_list(core->accounts, &token, &page, &found, &err) < 0);
    CHECK(ssh_key_remove(core->accounts, &token, ED25519_PRINT, &is_new, &err) < 0);
}

static void get(const struct actor *actor, struct ssh_key_info *out)
{
    struct error err = {0};

    ssh_key_info_clear(out);
    CHECK_OK(ssh_key_get(core->accounts, actor, ED25519_PRINT, out, &err), err);
}

TEST(a_name_can_be_given_again_and_a_use_is_noted)
{
    begin();
    struct actor alice = make_actor("alice", SCOPES_USUAL, NULL);
    autoclear(ssh_key_info) info = {0};
    struct error err = {0};
    bool is_new = false;
    char name[SSH_KEY_NAME + 2];

    CHECK_OK(add(&alice, ED25519 " me@here", "laptop", &is_new, &err), err);
    get(&alice, &info);
    CHECK_STR(info.name, "laptop");
    CHECK_INT(info.used_at, 0);
    CHECK_OK(add(&alice, ED25519, "desk", &is_new, &err), err);
    CHECK(!is_new);
    ssh_login_used(core->accounts, &alice, ED25519_PRINT);
    get(&alice, &info);
    CHECK_STR(info.name, "desk");
    CHECK(info.used_at > 0);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(add(&alice, ED25519, name, &is_new, &err) < 0);
    CHECK(add(&alice, ED25519, "a\nb", &is_new, &err) < 0);
    CHECK(error_is(&err, ERROR_INVALID));
    take_away(&alice, ED25519_PRINT);
}

TEST(a_person_has_so_many_keys_at_most)
{
    begin();
    struct actor alice = make_actor("alice", SCOPES_USUAL, NULL);
    struct actor bob = make_actor("bob", SCOPES_USUAL, NULL);
    struct error err = {0};
    bool is_new = false;

    for (int i = 0; i < SSH_KEYS_OF_MEMBER; i++) {
        char fingerprint[32];
        struct ssh_key_record record = {
            alice.organisation, fingerprint, "ssh-ed25519", "", "x", NOW, .member = "alice"};
        (void)snprintf(fingerprint, sizeof fingerprint, "SHA256:%d", i);
        CHECK_OK(store_ssh_key_put(core->store, &record, &err), err);
    }
    CHECK(add(&alice, ED25519, NULL, &is_new, &err) < 0);
    CHECK(error_is(&err, ERROR_FULL));
    CHECK_OK(add(&bob, ED25519, NULL, &is_new, &err), err);
    take_away(&bob, ED25519_PRINT);
    for (int i = 0; i < SSH_KEYS_OF_MEMBER; i++) {
        char fingerprint[32];
        (void)snprintf(fingerprint, sizeof fingerprint, "SHA256:%d", i);
        take_away(&alice, fingerprint);
    }
}

static void on_changed(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

TEST(who_has_let_somebody_in_is_told_of_changes)
{
    begin();
    struct actor us = rig_actor();
    atomic_int n_told = 0;
    struct error err = {0};
    bool is_new = false;
    autoptr(hub) hub = hub_new();
    accounts_set_hub(core->accounts, hub);
    struct watch *watch = hub_watch(hub, SSH_KEYS_CHANGED, on_changed, &n_told);

    CHECK_OK(add(&us, ED25519, NULL, &is_new, &err), err);
    CHECK_INT(atomic_load(&n_told), 1);
    take_away(&us, ED25519_PRINT);
    CHECK_INT(atomic_load(&n_told), 2);
    watch_free(watch);
    accounts_set_hub(core->accounts, NULL);
}
