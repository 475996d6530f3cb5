/* SPDX-License-Identifier: Apache-2.0 */
#include "web/openapi_names.h"

#include "test.h"

#define TOP "/api/v1/"

static void check(const char *method, const char *path, const char *name, const char *tag)
{
    char got[OPENAPI_NAME];

    CHECK_STR(openapi_operation_name(method, path, TOP, got), name);
    CHECK_STR(openapi_tag(path, TOP, got), tag);
}

TEST(operations_are_called_by_what_they_do)
{
    check("GET", TOP "sandboxes", "listSandboxes", "sandboxes");
    check("POST", TOP "sandboxes", "createSandbox", "sandboxes");
    check("GET", TOP "sandboxes/{sandbox}", "getSandbox", "sandboxes");
    check("PATCH", TOP "sandboxes/{sandbox}", "changeSandbox", "sandboxes");
    check("DELETE", TOP "sandboxes/{sandbox}", "deleteSandbox", "sandboxes");
    check("POST", TOP "sandboxes/{sandbox}/pause", "pauseSandbox", "sandboxes");
    check("GET", TOP "sandboxes/{sandbox}/logs", "getSandboxLogs", "sandboxes");
    check("POST", TOP "sandboxes/{sandbox}/executions", "createSandboxExecution", "executions");
    check("GET", TOP "executions/{execution}/output", "getExecutionOutput", "executions");
    check("POST", TOP "sandboxes/{sandbox}/files/mkdir", "mkdirSandboxFile", "files");
    check("POST", TOP "run", "run", "run");
    check("GET", TOP "system/info", "getSystemInfo", "system");
    check("GET", TOP "openapi.json", "getOpenapiJson", "document");
    check("GET", TOP "webhooks/{webhook}/deliveries", "listWebhookDeliveries", "webhooks");
    check("DELETE", TOP "webhooks/{webhook}/deliveries/{delivery}", "deleteWebhookDelivery",
          "webhooks");
}

TEST(a_path_that_is_too_long_is_cut)
{
    char path[1000] = TOP, got[OPENAPI_NAME];

    for (int i = 0; i < 60; i++)
        (void)strcat(path, "abcdefghij/");
    CHECK(strlen(openapi_operation_name("GET", path, TOP, got)) < OPENAPI_NAME);
    CHECK_STR(openapi_operation_name("GET", TOP, TOP, got), "");
}
