/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks before and beside its sandbox calls: who it is, its organisation and region, SSH keys. */
#include "core/account/account.h"
#include "core/runtime_packages.h"
#include "core/sandbox/sandbox.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"
#include "front/agentuity/sandbox_filter.h"

/* The one organisation, as a list: that is how the command line chooses it without asking. */
static const struct route_answer answers_organisations[] = {
    {200, render_organisation_fields, &answers_data, .is_list = true}, {0}};

struct user {
    const struct agentuity_settings *settings;
    struct answer_list organisations;
};
static const struct answer_field person_fields[] = {
    {"firstName", ANSWER_TEXT, offsetof(struct agentuity_settings, first_name), .is_needed = true},
    {"lastName", ANSWER_TEXT, offsetof(struct agentuity_settings, last_name), .is_needed = true},
    {0},
};
static const struct answer_field user_fields[] = {
    {"", ANSWER_BESIDE_AT, offsetof(struct user, settings), .fields = person_fields},
    {"organizations", ANSWER_LIST, offsetof(struct user, organisations), .is_needed = true,
     .fields = render_organisation_fields, .item_size = sizeof(struct named)},
    {0},
};
static const struct route_answer answers_user[] = {{200, user_fields, &answers_data}, {0}};

/* GET /cli/auth/user */
static int get_user(struct call *call, struct error *err)
{
    const struct agentuity_settings *settings = agentuity_settings_of(call);
    autoclear(organisation_info) info = {0};

    if (account_organisation(call->core->accounts, &call->actor, &info, err) < 0)
        return -1;
    struct named organisation = render_organisation(&info, settings->organisation_name);
    struct user user = {settings, {&organisation, 1}};
    return envelope_answer(call, 200, user_fields, &user);
}

/* GET /cli/organization */
static int list_organisations(struct call *call, struct error *err)
{
    autoclear(organisation_info) info = {0};

    if (account_organisation(call->core->accounts, &call->actor, &info, err) < 0)
        return -1;
    struct named organisation =
        render_organisation(&info, agentuity_settings_of(call)->organisation_name);
    return envelope_answers(call, render_organisation_fields, &organisation, 1, 0);
}

static const struct answer_field region_fields[] = {
    {"region", ANSWER_TEXT, offsetof(struct agentuity_settings, region), .is_needed = true},
    {"description", ANSWER_TEXT, offsetof(struct agentuity_settings, region_description),
     .is_needed = true},
    {0},
};
static const struct route_answer answers_regions[] = {
    {200, region_fields, &answers_data, .is_list = true}, {0}};

/* GET /cli/region */
static int list_regions(struct call *call, struct error *err)
{
    return envelope_answers(call, region_fields, agentuity_settings_of(call), 1, 0);
}

/* Here every member must be there, null where it is not known. */
struct brief {
    const char *id, *name, *status, *region, *organisation, *project;
    const char *description, *organisation_name; // in lists only; likewise created_at
    int64_t created_at;
};
#define AT(member) offsetof(struct brief, member)
static const struct answer_field brief_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_nullable = true},
    {"status", ANSWER_TEXT, AT(status), .is_needed = true},
    {"region", ANSWER_TEXT, AT(region), .is_nullable = true},
    {"orgId", ANSWER_ID, AT(organisation), .is_needed = true, .prefix = ORGANISATION_PREFIX},
    {"projectId", ANSWER_TEXT, AT(project), .is_nullable = true},
    {0},
};
static const struct answer_field listed_fields[] = {
    {"", ANSWER_BESIDE, .fields = brief_fields},
    {"description", ANSWER_TEXT, AT(description), .is_nullable = true},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"orgName", ANSWER_TEXT, AT(organisation_name), .is_nullable = true},
    {0},
};
#undef AT
struct briefs {
    struct answer_list sandboxes;
    int64_t total;
};
static const struct answer_field briefs_fields[] = {
    {"sandboxes", ANSWER_LIST, offsetof(struct briefs, sandboxes), .is_needed = true,
     .fields = listed_fields, .item_size = sizeof(struct brief)},
    {"total", ANSWER_INTEGER, offsetof(struct briefs, total), .help = "of all pages"},
    {0},
};
static const struct route_answer answers_brief[] = {{200, brief_fields, &answers_data}, {0}};
static const struct route_answer answers_briefs[] = {{200, briefs_fields, &answers_data}, {0}};

static struct brief brief_of(struct call *call, const struct sandbox_info *info,
                             const char *organisation_name)
{
    return (struct brief){
        .id = info->id,
        .name = info->name,
        .status = render_status(info->state),
        .region = agentuity_settings_of(call)->region,
        .organisation = info->owner.organisation,
        .project = info->owner.project,
        .description = info->description,
        .organisation_name = organisation_name,
        .created_at = info->created_at,
    };
}

/* GET /cli/sandbox */
static int list_sandboxes_briefly(struct call *call, struct error *err)
{
    const char *name = agentuity_settings_of(call)->organisation_name;
    autoclear(organisation_info) organisation = {0};
    autoclear(sandbox_infos) found = {0};

    if (account_organisation(call->core->accounts, &call->actor, &organisation, err) < 0 ||
        sandbox_filter_list(call, &found, err) < 0)
        return -1;
    struct brief *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = brief_of(call, &found.items[i], name ? name : organisation.name);
    struct briefs briefs = {{items, found.count}, found.total};
    return envelope_answer(call, 200, briefs_fields, &briefs);
}

/* GET /cli/sandbox/{id}: of deleted ones too, so that they can be shown. */
static int get_sandbox_briefly(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, true, &info, err) < 0)
        return -1;
    struct brief brief = brief_of(call, &info, NULL);
    return envelope_answer(call, 200, brief_fields, &brief);
}

/* GET /cli/project/{projectId}: a project is a word to filter by, nothing that exists. */
static int get_project(struct call *call, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "project", "project '%.64s' not found",
                        call->parameters[0]);
}

static const struct route_answer answers_projects[] = {{200, NULL, &answers_data, .is_list = true},
                                                       {0}};

/* GET /cli/project */
static int list_projects(struct call *call, struct error *err)
{
    return envelope_answers(call, NULL, NULL, 0, 0);
}

struct packages_body {
    const char **packages;
};
static const struct field packages_fields[] = {
    {"packages", FIELD_TEXTS, offsetof(struct packages_body, packages), .is_needed = true},
    {0},
};

struct refused_package {
    const char *package, *error, *search_url;
};
#define AT(member) offsetof(struct refused_package, member)
static const struct answer_field refused_fields[] = {
    {"package", ANSWER_TEXT, AT(package), .is_needed = true},
    {"error", ANSWER_TEXT, AT(error), .is_needed = true},
    {"searchUrl", ANSWER_TEXT, AT(search_url), .is_needed = true},
    {0},
};
#undef AT

struct packages {
    const char **valid;
    struct answer_list invalid;
};
static const struct answer_field checked_fields[] = {
    {"valid", ANSWER_TEXTS, offsetof(struct packages, valid), .is_needed = true},
    {"invalid", ANSWER_LIST, offsetof(struct packages, invalid), .is_needed = true,
     .fields = refused_fields, .item_size = sizeof(struct refused_package)},
    {0},
};
static const struct route_answer answers_packages[] = {{200, checked_fields, &answers_data}, {0}};

static struct refused_package refuse_package(const char *name)
{
    return (struct refused_package){
        .package = name,
        .error = runtime_package_is_name(name) ? "there is no such package"
                                               : "this is not the name of a package",
        .search_url = "https://packages.debian.org/",
    };
}

/* POST /cli/validate/apt-dependencies: over the default runtime. */
static int validate_packages(struct call *call, struct error *err)
{
    struct packages_body body = {0};
    struct packages packages = {0};
    size_t count = 0, n_valid = 0, n_refused = 0;

    if (fields_read(call->body, packages_fields, &body, err) < 0)
        return -1;
    while (body.packages && body.packages[count])
        count++;
    const char **names = call_alloc(call, (count + 1) * sizeof *names);
    bool *is_there = call_alloc(call, (count + 1) * sizeof *is_there);
    struct refused_package *refused = call_alloc(call, (count + 1) * sizeof *refused);
    packages.valid = call_alloc(call, (count + 1) * sizeof *packages.valid);
    for (size_t i = 0; i < count; i++)
        names[i] = body.packages[i];
    if (runtime_packages_find(call->core, names, is_there, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (is_there[i])
            packages.valid[n_valid++] = names[i];
        else
            refused[n_refused++] = refuse_package(names[i]);
    }
    packages.invalid = (struct answer_list){refused, n_refused};
    return envelope_answer(call, 200, checked_fields, &packages);
}

/* GET and POST /cli/auth/…: a browser has nowhere to log in to. */
static int refuse_login(struct call *call, struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "logging in is not available here: set AGENTUITY_API_KEY to a key made with "
                     "'burrow key create'");
}

const struct route agentuity_account_routes[] = {
    {"GET", "/cli/auth/user", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_user, "who is asking",
     .answers = answers_user},
    {"GET", "/cli/organization", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_organisations,
     "the one organisation", .answers = answers_organisations},
    {"GET", "/cli/region", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_regions, "the one region",
     .answers = answers_regions},
    {"GET", "/cli/sandbox", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_sandboxes_briefly,
     "sandboxes, in brief", .query = sandbox_filter_parameters, .answers = answers_briefs},
    {"GET", "/cli/sandbox/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_sandbox_briefly,
     "where a sandbox is", .answers = answers_brief},
    {"GET", "/cli/project", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_projects, "projects: none",
     .answers = answers_projects},
    {"GET", "/cli/project/{projectId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_project,
     "a project: there is none", .answers = answers_bare},
    {"POST", "/cli/validate/apt-dependencies", ROUTE_SLOW, ACCESS_OPEN, BODY_JSON,
     validate_packages, "whether packages can be installed", .fields = packages_fields,
     .answers = answers_packages},
    {"GET", "/cli/auth/start", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, refuse_login, "not available",
     .answers = answers_bare},
    {"POST", "/cli/auth/check", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, refuse_login, "not available",
     .answers = answers_bare},
    {"GET", "/cli/auth/setup-token/{token}", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, refuse_login,
     "not available", .answers = answers_bare},
    {0},
};
