/* SPDX-License-Identifier: Apache-2.0 */
/* Types of files; see content_type.h. */
#include "front/agentuity/content_type.h"
#include "base/auto.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *end;
    const char *type;
} types[] = {
    {"c", "text/plain"},          {"css", "text/css"},        {"csv", "text/csv"},
    {"gif", "image/gif"},         {"gz", "application/gzip"}, {"html", "text/html"},
    {"jpeg", "image/jpeg"},       {"jpg", "image/jpeg"},      {"js", "text/javascript"},
    {"json", "application/json"}, {"md", "text/markdown"},    {"mjs", "text/javascript"},
    {"pdf", "application/pdf"},   {"png", "image/png"},       {"py", "text/x-python"},
    {"sh", "text/x-shellscript"}, {"svg", "image/svg+xml"},   {"tar", "application/x-tar"},
    {"toml", "application/toml"}, {"ts", "text/typescript"},  {"txt", "text/plain"},
    {"wasm", "application/wasm"}, {"xml", "application/xml"}, {"yaml", "application/yaml"},
    {"yml", "application/yaml"},  {"zip", "application/zip"}, {"zst", "application/zstd"},
};

const char *content_type_of(const char *path)
{
    const char *name = strrchr(path, '/');
    const char *end = strrchr(name ? name : path, '.');

    for (size_t i = 0; end && i < ARRAY_SIZE(types); i++) {
        if (strcasecmp(types[i].end, end + 1) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}
