/* SPDX-License-Identifier: Apache-2.0 */
/* Keys at the start of a server; see first_key.h. */
#include "serve/first_key.h"

#include "base/log_ids.h"
#include "base/mem.h"
#include "store/store.h"

#include <string.h>

#define CONFIGURED "BURROW_API_KEY" // the name of keys that came from there

// What the tour over all keys finds.
struct survey {
    const char *current; // id of the configured key; NULL: none is configured
    int64_t total;
    int64_t in_use;
    char outdated[8][ID_TEXT]; // configured earlier, by their ids
    size_t n_outdated;
};

static void look_at(struct survey *survey, const struct key_info *key)
{
    if (!key_info_is_in_use(key))
        return;
    bool is_outdated = survey->current && strcmp(key->id, survey->current) != 0 && key->name &&
                       strcmp(key->name, CONFIGURED) == 0;
    if (!is_outdated)
        survey->in_use++;
    else if (survey->n_outdated < ARRAY_SIZE(survey->outdated))
        (void)snprintf(survey->outdated[survey->n_outdated++], ID_TEXT, "%s", key->id);
}

static int take_survey(struct accounts *accounts, struct survey *survey, struct error *err)
{
    struct page page = {.limit = PAGE_MAX};

    do {
        autoclear(key_infos) list = {0};
        if (key_list(accounts, &page, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++)
            look_at(survey, &list.items[i]);
        survey->total = list.total;
        page.offset += page.limit;
    } while (page.offset < survey->total);
    return 0;
}

// The variable says which key there is; what it said before is over.
static int put_configured(struct accounts *accounts, const char *api_key, struct error *err)
{
    struct key_request request = {.name = CONFIGURED, .text = api_key, .is_admin = true};
    autoclear(key_info) key = {0};

    if (key_create(accounts, &request, NULL, &key, err) < 0)
        return error_wrap(err, CONFIGURED);
    struct survey survey = {.current = key.id};
    if (take_survey(accounts, &survey, err) < 0)
        return -1;
    for (size_t i = 0; i < survey.n_outdated; i++) {
        if (key_revoke(accounts, survey.outdated[i], err) < 0 && !error_is(err, ERROR_CONFLICT))
            return -1;
        log_info("key revoked", F_KEY(survey.outdated[i]),
                 F("why", CONFIGURED " is another one now"));
    }
    return 0;
}

static const char *find_open_address(const struct config *config, char address[CONFIG_ADDRESS])
{
    for (size_t i = 0; config_address(config, i, address); i++)
        if (!config_is_loopback(address))
            return address;
    return NULL;
}

static int make_first(struct accounts *accounts, char *text, struct error *err)
{
    struct key_request request = {.name = "first", .is_admin = true};
    autoclear(key_info) key = {0};

    return key_create(accounts, &request, text, &key, err);
}

// ---- before the core is open ----

static int count_in_use(const struct config *config, int64_t *out, struct error *err)
{
    struct survey survey = {0};
    autoptr(store) store = NULL;

    if (!store_exists(config->data_dir))
        return 0;
    if (store_open(config->data_dir, &store, err) < 0)
        return -1;
    autoptr(accounts) accounts = NULL; // goes before the store does
    if (accounts_open(store, &accounts, err) < 0 || take_survey(accounts, &survey, err) < 0)
        return -1;
    *out = survey.in_use;
    return 0;
}

int first_key_check(const struct config *config, struct error *err)
{
    char address[CONFIG_ADDRESS];
    int64_t in_use = 0;

    if (config->api_key && !config_is_stand_in(config))
        return key_check_chosen(config->api_key, err) < 0 ? error_wrap(err, CONFIGURED) : 0;
    if (!find_open_address(config, address))
        return 0;
    if (count_in_use(config, &in_use, err) < 0)
        return -1;
    if (in_use)
        return 0;
    return error_refuse(
        err, ERROR_DENIED, "key",
        "will not listen on '%s', which others can reach, without a key: set BURROW_API_KEY, "
        "or make one with 'burrow key create', "
        "or listen on 127.0.0.1",
        address);
}

// ---- once it is ----

int first_key_prepare(struct accounts *accounts, const struct config *config, char *text,
                      struct error *err)
{
    struct survey survey = {0};

    *text = '\0';
    if (config_is_stand_in(config))
        return 0; // keys are the business of the server that it stands in for
    if (config->api_key)
        return put_configured(accounts, config->api_key, err);
    if (take_survey(accounts, &survey, err) < 0)
        return -1;
    if (survey.total == 0)
        return make_first(accounts, text, err);
    if (!survey.in_use)
        log_warn("no key is in use: only the local socket lets anybody in; make one with 'burrow "
                 "key create'");
    return 0;
}
