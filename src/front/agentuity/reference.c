/* SPDX-License-Identifier: Apache-2.0 */
/* References; see reference.h. */
#include "front/agentuity/reference.h"
#include "base/id.h"
#include "front/agentuity/agentuity_impl.h"

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
static const char *bare_organisation(struct call *call, const char *text)
{
    static const char begin[] = "@" ORGANISATION_PREFIX;
    const size_t length = sizeof begin - 1;
    const char *end = strchr(text, '/');

    if (strncmp(text, begin, length) != 0 || !end || end != text + length + ID_LENGTH)
        return text;
    return call_print(call, "@%s", text + length);
}

const char *reference_of_snapshot(struct call *call, const char *text)
{
    return bare_organisation(call, reference_of(text, SNAPSHOT_PREFIX));
}
