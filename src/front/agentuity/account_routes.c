/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks before and beside its sandbox calls: who it is, its organisation and region, SSH keys. */
#include "core/account/account.h"
#include "core/sandbox/sandbox.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"
#include "front/agentuity/sandbox_filter.h"

/* The one organisation, as a list: that is how the command line chooses it without asking. */
static void write_organisations(struct json_writer *json, struct call *call,
                                const struct organisation_info *info)
{
    json_list_begin(json);
    render_organisation(json, info, agentuity_settings_of(call)->organisation_name);
    json_list_end(json);
}

/* GET /cli/auth/user */
static int get_user(struct call *call, struct error *err)
{
    const struct agentuity_settings *settings = agentuity_settings_of(call);
    autoclear(organisation_info) organisation = {0};
    autoreply reply = {0};

    if (account_organisation(call->core->accounts, &call->actor, &organisation, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    member_text(&reply.json, "firstName", settings->first_name);
    member_text(&reply.json, "lastName", settings->last_name);
    json_key(&reply.json, "organizations");
    write_organisations(&reply.json, call, &organisation);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* GET /cli/organization */
static int list_organisations(struct call *call, struct error *err)
{
    autoclear(organisation_info) organisation = {0};
    autoreply reply = {0};

    if (account_organisation(call->core->accounts, &call->actor, &organisation, err) < 0)
        return -1;
    envelope_data(&reply);
    write_organisations(&reply.json, call, &organisation);
    return envelope_send(&reply, call->response, 200);
}

/* GET /cli/region */
static int list_regions(struct call *call, struct error *err)
{
    const struct agentuity_settings *settings = agentuity_settings_of(call);
    autoreply reply = {0};

    envelope_data(&reply);
    json_list_begin(&reply.json);
    json_map_begin(&reply.json);
    member_text(&reply.json, "region", settings->region);
    member_text(&reply.json, "description", settings->region_description);
    json_map_end(&reply.json);
    json_list_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* Here every member must be there, null where it is not known. */
static void write_brief(struct json_writer *json, struct call *call,
                        const struct sandbox_info *info)
{
    member_id(json, "id", SANDBOX_PREFIX, info->id);
    member_text_or_null(json, "name", info->name);
    member_text(json, "status", render_status(info->state));
    member_text(json, "region", agentuity_settings_of(call)->region);
    member_id(json, "orgId", ORGANISATION_PREFIX, info->owner.organisation);
    member_text_or_null(json, "projectId", info->owner.project);
}

/* GET /cli/sandbox */
static int list_sandboxes_briefly(struct call *call, struct error *err)
{
    const char *name = agentuity_settings_of(call)->organisation_name;
    autoclear(organisation_info) organisation = {0};
    autoclear(sandbox_infos) found = {0};
    autoreply reply = {0};

    if (account_organisation(call->core->accounts, &call->actor, &organisation, err) < 0 ||
        sandbox_filter_list(call, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "sandboxes");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++) {
        json_map_begin(&reply.json);
        write_brief(&reply.json, call, &found.items[i]);
        member_text_or_null(&reply.json, "description", found.items[i].description);
        member_time(&reply.json, "createdAt", found.items[i].created_at);
        member_text(&reply.json, "orgName", name ? name : organisation.name);
        json_map_end(&reply.json);
    }
    json_list_end(&reply.json);
    member_integer(&reply.json, "total", found.total);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* GET /cli/sandbox/{id}: of deleted ones too, so that they can be shown. */
static int get_sandbox_briefly(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, true, &info, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    write_brief(&reply.json, call, &info);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* GET /cli/project/{projectId}: a project is a word to filter by, nothing that exists. */
static int get_project(struct call *call, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "project", "project '%.64s' not found",
                        call->parameters[0]);
}

/* GET /cli/project */
static int list_projects(struct call *call, struct error *err)
{
    autoreply reply = {0};

    envelope_data(&reply);
    json_list_begin(&reply.json);
    json_list_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

struct packages_body {
    const char **packages;
};
static const struct field packages_fields[] = {
    {"packages", FIELD_TEXTS, offsetof(struct packages_body, packages), .is_needed = true},
    {0},
};

/* POST /cli/validate/apt-dependencies: none is looked up, so all pass. */
static int validate_packages(struct call *call, struct error *err)
{
    struct packages_body body = {0};
    autoreply reply = {0};

    if (fields_read(call->body, packages_fields, &body, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "valid");
    json_list_begin(&reply.json);
    for (const char **package = body.packages; package && *package; package++)
        json_string(&reply.json, *package);
    json_list_end(&reply.json);
    json_key(&reply.json, "invalid");
    json_list_begin(&reply.json);
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
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
    {"POST", "/cli/validate/apt-dependencies", ROUTE_QUICK, ACCESS_OPEN, BODY_JSON,
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
