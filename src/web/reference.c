/* SPDX-License-Identifier: Apache-2.0 */
/* References; see reference.h. */
#include "web/reference.h"

#include "base/id.h"

#include <string.h>

bool reference_is_id(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 && id_is_valid(text + length);
}

const char *reference_of(const char *text, const char *prefix)
{
    return reference_is_id(text, prefix) ? text + strlen(prefix) : text;
}

/* "@org_<id>/name:tag" → "@<id>/name:tag" */
static const char *bare_organisation(struct call *call, const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    const char *end = strchr(text, '/');

    if (text[0] != '@' || strncmp(text + 1, prefix, length) != 0 || !end ||
        end != text + 1 + length + ID_LENGTH)
        return text;
    return call_print(call, "@%s", text + 1 + length);
}

const char *reference_of_snapshot(struct call *call, const char *text, const char *prefix,
                                  const char *organisation_prefix)
{
    return bare_organisation(call, reference_of(text, prefix), organisation_prefix);
}
