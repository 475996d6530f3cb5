/* SPDX-License-Identifier: Apache-2.0 */
/* What the document of this API says beside its routes; see api_document.h. */
#include "front/api/api_document.h"

#include "front/api/api_ids.h"

static const char description[] =
    "Everything burrow can do: sandboxes for untrusted code, on a machine of your own.\n\n"
    "**Keys.** Every call but this document needs a key: `Authorization: Bearer KEY`, or "
    "`X-Api-Key: KEY`. What a key may do is its scopes; the security of an operation names the one "
    "it needs.\n\n"
    "**Lists** are `{\"items\": [...], \"nextCursor\": \"...\"}`. Send `nextCursor` as `cursor` "
    "for "
    "the next page; at the end there is none. Nothing is told twice or left out while things come "
    "and go.\n\n"
    "**Numbers with a unit** have it in their name (`memoryBytes`, `timeoutMs`, `cpuMillicores`) "
    "and "
    "are also taken as text: `\"512Mi\"`, `\"30s\"`, `\"500m\"`. Times are RFC 3339, in UTC.\n\n"
    "**Failures** are `application/problem+json` with a `code` for programs, a sentence "
    "(`detail`), "
    "the `field` it is about, what can be done (`remedy`) and the request's id. `x-problems` below "
    "`components` has all codes. Fields and parameters that there are not are failures too.\n\n"
    "**Again.** Send an `Idempotency-Key` with a POST, and the same request sent again gets the "
    "same "
    "answer for a day and is not done twice.\n\n"
    "**v1** stays as it is: members, parameters, operations and codes are added, none is taken "
    "away "
    "or changes its meaning. Clients must ignore members that they do not know.";

static const struct parameter path_parameters[] = {
    {"sandbox", .help = "id or name of a sandbox", .example = SANDBOX_PREFIX EXAMPLE_ID},
    {"execution", .help = "id of an execution", .example = EXECUTION_PREFIX EXAMPLE_ID},
    {"snapshot", .help = "id, or name and tag, of a snapshot",
     .example = SNAPSHOT_PREFIX EXAMPLE_ID},
    {"checkpoint", .help = "id or name of a checkpoint", .example = CHECKPOINT_PREFIX EXAMPLE_ID},
    {"context", .help = "id of a context", .example = CONTEXT_PREFIX EXAMPLE_ID},
    {"runtime", .help = "name or id of a runtime", .example = RUNTIME_PREFIX EXAMPLE_ID},
    {"key", .help = "id of a key", .example = KEY_PREFIX EXAMPLE_ID},
    {"organisation", .help = "id of an organisation", .example = ORGANISATION_PREFIX EXAMPLE_ID},
    {"webhook", .help = "id of a webhook", .example = WEBHOOK_PREFIX EXAMPLE_ID},
    {"token", .help = "id of a token", .example = TOKEN_PREFIX EXAMPLE_ID},
    {"port", .help = "number of an exposed port, or 'all'", .example = "3000"},
    {"fingerprint", .help = "fingerprint of an SSH key",
     .example = "SHA256:WtE53c5R0QBdBYPu5xjAHpOQR9Pjmk8GManzKcLtyFc"},
    {"delivery", .help = "id of a delivery", .example = DELIVERY_PREFIX EXAMPLE_ID},
    {0},
};

static const struct front_header asked[] = {
    {"X-Request-Id",
     "what the request is called in its answer and in the server's log; 1 to 127 "
     "printable characters",
     FRONT_ALWAYS, "my-request-17"},
    {"Idempotency-Key",
     "sent again with the same request, the answer is the same and nothing is "
     "done twice; at most 255 bytes, kept for a day",
     FRONT_ON_POST, "5f0c4e1e-run-17"},
    {"If-None-Match", "the ETag of an answer: 304 where it is still the same", FRONT_ON_GET, NULL},
    {0},
};

static const struct front_header told[] = {
    {"X-Request-Id", "what the request is called", FRONT_ALWAYS, NULL},
    {"ETag", "of answers that are whole: names these bytes", FRONT_ON_GET, NULL},
    {"Idempotency-Replayed", "true: this answer was given before", FRONT_ON_POST, NULL},
    {"RateLimit-Limit",
     "requests that may come at once; where the operator set a rate, like the "
     "next two",
     FRONT_WITH_KEY, NULL},
    {"RateLimit-Remaining", "how many may come now", FRONT_WITH_KEY, NULL},
    {"RateLimit-Reset", "seconds until as many as at the beginning may come", FRONT_WITH_KEY, NULL},
    {0},
};

static const struct front_failure failures[] = {
    {400, "the request cannot be understood, or names a field that there is not", FRONT_ALWAYS},
    {401, "there is no key, or it is not valid", FRONT_WITH_KEY},
    {403, "the key may not do this", FRONT_WITH_KEY},
    {404, "there is no such thing, or the key does not see it", FRONT_WITH_PATH},
    {409, "not in the state it is in", FRONT_ON_WRITE},
    {413, "the body, or what it asks for, is too large", FRONT_WITH_BODY},
    {422, "the Idempotency-Key came with another request before", FRONT_ON_POST},
    {429, "more than there is room for, or than the key's rate or quota allows", FRONT_WITH_KEY},
    {503, "the server is restarting, or cannot do this at the moment", FRONT_ALWAYS},
    {0},
};

static const char *const tags[] = {
    "run",
    "one call: a command, and how it ended",
    "sandboxes",
    "where commands run: made, changed, paused, forked, ended",
    "metrics",
    "what a sandbox uses at this moment",
    "executions",
    "commands in sandboxes, their input and output",
    "files",
    "files in a sandbox",
    "code",
    "code in a sandbox, as in a notebook",
    "contexts",
    "interpreters that keep what code defines",
    "ports",
    "ports of a sandbox that are reached from outside",
    "checkpoints",
    "a sandbox's files as they were, to go back to",
    "snapshots",
    "files to start other sandboxes from",
    "runtimes",
    "what sandboxes can be started from",
    "events",
    "what happened, as it happens",
    "webhooks",
    "events that are sent to you",
    "ssh",
    "how sandboxes are reached by SSH",
    "ssh-keys",
    "public SSH keys that open sandboxes",
    "keys",
    "who may do what",
    "tokens",
    "short-lived keys for one sandbox",
    "quotas",
    "how much a key may have",
    "organisations",
    "who owns things",
    "audit",
    "who changed what",
    "usage",
    "what was used, by whom",
    "system",
    "the server itself",
    "organisation",
    "who owns things, and how much they may have together",
    "document",
    "this document",
    NULL,
};

/* Examples use ids of these documents' own kind; whoever sends them puts others in their place. */
// clang-format off
static const struct front_operation operations[] = {
    {"POST /run", "runCommand", "{\"command\": [\"echo\", \"hello\"], \"timeoutMs\": \"30s\"}", NULL},
    {"POST /sandboxes", NULL, "{\"name\": \"example\", \"labels\": {\"team\": \"blue\"}, \"env\": {\"MODE\": \"test\"}, \"limits\": {\"memoryBytes\": \"256Mi\", \"cpuMillicores\": 500}, \"idleTimeoutMs\": \"10m\", \"files\": [{\"path\": \"/workspace/hello.txt\", \"content\": \"hello\\n\"}]}", NULL},
    {"GET /sandboxes", NULL, NULL, "limit=20&selector=team=blue"},
    {"PATCH /sandboxes/{sandbox}", NULL, "{\"labels\": {\"team\": \"red\"}, \"idleTimeoutMs\": 3600000}", NULL},
    {"GET /sandboxes/{sandbox}/metrics", "getSandboxMetrics", NULL, NULL},
    {"GET /sandboxes/{sandbox}/wait", "waitForSandbox", NULL, "state=idle&waitMs=1s"},
    {"POST /sandboxes/{sandbox}/fork", NULL, "{\"labels\": {\"team\": \"green\"}}", NULL},
    {"GET /sandboxes/{sandbox}/diff", "diffSandbox", NULL, NULL},
    {"PUT /sandboxes/{sandbox}/network", "replaceSandboxNetwork", "{\"allow\": [\"*.example.com:443\", \"192.0.2.0/24\"], \"deny\": [\"private.example.com\"], \"default\": \"deny\"}", NULL},
    {"PATCH /sandboxes/{sandbox}/network", NULL, "{\"observe\": true}", NULL},
    {"GET /sandboxes/{sandbox}/network/why", "explainSandboxNetwork", NULL, "host=www.example.com&port=443&protocol=tcp"},
    {"GET /sandboxes/{sandbox}/network/observed", "getSandboxNetworkObserved", NULL, NULL},
    {"POST /sandboxes/{sandbox}/executions", "startExecution", "{\"command\": [\"sh\", \"-c\", \"echo $GREETING\"], \"env\": {\"GREETING\": \"hello\"}, \"timeoutMs\": 60000}", NULL},
    {"GET /executions/{execution}", NULL, NULL, "waitMs=200ms"},
    {"DELETE /executions/{execution}", "stopExecution", NULL, NULL},
    {"GET /executions/{execution}/output", NULL, NULL, "stream=stdout&offset=0&length=1024"},
    {"GET /executions/{execution}/attach", "attachExecution", NULL, NULL},
    {"GET /sandboxes/{sandbox}/ssh", "openSshTunnel", NULL, NULL},
    {"POST /executions/{execution}/signal", NULL, "{\"signal\": \"WINCH\"}", NULL},
    {"POST /executions/{execution}/resize", NULL, "{\"rows\": 40, \"cols\": 120}", NULL},
    {"POST /executions/{execution}/stdin", "writeExecutionInput", NULL, NULL},
    {"GET /sandboxes/{sandbox}/files", "readFile", NULL, "path=/workspace/hello.txt"},
    {"PUT /sandboxes/{sandbox}/files", "writeFile", NULL, "path=/workspace/written.txt&mode=0644"},
    {"DELETE /sandboxes/{sandbox}/files", "deleteFile", NULL, "path=/workspace/written.txt"},
    {"POST /sandboxes/{sandbox}/files/append", "appendFile", NULL, "path=/workspace/log.txt"},
    {"GET /sandboxes/{sandbox}/files/stat", "statFile", NULL, "path=/workspace/hello.txt"},
    {"GET /sandboxes/{sandbox}/files/list", "listFiles", NULL, "path=/workspace&recursive=true&limit=50"},
    {"GET /sandboxes/{sandbox}/files/glob", "globFiles", NULL, "path=/workspace&pattern=*.txt"},
    {"GET /sandboxes/{sandbox}/files/grep", "grepFiles", NULL, "path=/workspace&pattern=hello"},
    {"POST /sandboxes/{sandbox}/files/mkdir", "makeDirectory", "{\"path\": \"/workspace/made/here\", \"createParents\": true}", NULL},
    {"POST /sandboxes/{sandbox}/files/copy", "copyFile", "{\"path\": \"/workspace/hello.txt\", \"to\": \"/workspace/copy.txt\"}", NULL},
    {"POST /sandboxes/{sandbox}/files/move", "moveFile", "{\"path\": \"/workspace/hello.txt\", \"to\": \"/workspace/moved.txt\"}", NULL},
    {"GET /sandboxes/{sandbox}/files/archive", "downloadArchive", NULL, "path=/workspace&format=tar.gz"},
    {"PUT /sandboxes/{sandbox}/files/archive", "uploadArchive", NULL, "path=/workspace/unpacked"},
    {"GET /sandboxes/{sandbox}/files/watch", "watchFiles", NULL, "path=/workspace"},
    {"POST /sandboxes/{sandbox}/code", "runCode", "{\"code\": \"x = 20\\nx + 1\", \"timeoutMs\": \"30s\"}", NULL},
    {"POST /sandboxes/{sandbox}/contexts", NULL, "{\"language\": \"python\"}", NULL},
    {"POST /sandboxes/{sandbox}/checkpoints", NULL, "{\"name\": \"before\"}", NULL},
    {"POST /sandboxes/{sandbox}/ports", "exposePort", "{\"port\": 3000, \"private\": true, \"expiresInMs\": \"1h\"}", NULL},
    {"DELETE /sandboxes/{sandbox}/ports/{port}", "removePort", NULL, NULL},
    {"POST /sandboxes/{sandbox}/snapshots", NULL, "{\"name\": \"example\", \"tag\": \"v1\"}", NULL},
    {"PATCH /snapshots/{snapshot}", NULL, "{\"tag\": \"v2\"}", NULL},
    {"POST /snapshots/builds", NULL, "{\"runtime\": \"base:latest\", \"name\": \"built\"}", NULL},
    {"PUT /snapshots/{snapshot}/upload", "uploadSnapshotFiles", NULL, NULL},
    {"POST /snapshots/{snapshot}/finish", "finishSnapshotBuild", "{\"env\": {\"MODE\": \"production\"}}", NULL},
    {"GET /snapshots/{snapshot}/export", "exportSnapshot", NULL, NULL},
    {"POST /runtimes", NULL, "{\"name\": \"example:latest\", \"definition\": \"name: example\\nbuild: {kind: host}\\n\"}", NULL},
    {"POST /keys", NULL, "{\"name\": \"for the build\", \"owner\": \"build\", \"scopes\": [\"read\", \"run\"], \"quotas\": {\"sandboxes\": 5}}", NULL},
    {"POST /ssh-keys", "addSshKey", "{\"publicKey\": \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWgCzMNxQKWQq8qeiMk9g+zwGC8iiy2SANmOM37wJ2a me@laptop\", \"name\": \"laptop\"}", NULL},
    {"PATCH /keys/{key}", NULL, "{\"name\": \"renamed\"}", NULL},
    {"POST /sandboxes/{sandbox}/tokens", NULL, "{\"name\": \"for the browser\", \"scopes\": [\"read\"], \"expiresInMs\": \"15m\"}", NULL},
    {"POST /webhooks", NULL, "{\"url\": \"https://93.184.215.14/hook\", \"name\": \"ends\", \"kinds\": [\"sandbox.*\"], \"enabled\": false}", NULL},
    {"PATCH /webhooks/{webhook}", NULL, "{\"name\": \"ends of sandboxes\"}", NULL},
    {"POST /webhooks/{webhook}/test", NULL, "{}", NULL},
    {"PATCH /organisation", NULL, "{\"quotas\": {\"sandboxes\": 100}}", NULL},
    {"GET /events", NULL, NULL, "limit=10"},
    {"GET /audit", "listAudit", NULL, NULL},
    {"GET /quotas", "getQuotas", NULL, NULL},
    {"GET /system/df", "getDiskUse", NULL, NULL},
    {"POST /system/prune", "prune", "{\"dryRun\": true}", NULL},
    {"GET /system/doctor", "getFindings", NULL, NULL},
    {"GET /system/limits", "getLimits", NULL, NULL},
    {"GET /openapi.json", "getDocument", NULL, NULL},
    {NULL},
};
// clang-format on

const struct front_document api_document = {
    .title = "burrow API",
    .description = description,
    .path = path_parameters,
    .asked = asked,
    .told = told,
    .failures = failures,
    .operations = operations,
    .tags = tags,
    .put_components = api_put_problems,
};
