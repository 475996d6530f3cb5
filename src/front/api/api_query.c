/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters; see api_query.h. */
#include "front/api/api_query.h"

#include "web/instant.h"
#include "web/reference.h"

int api_query_time(struct call *call, const char *name, int64_t *out, struct error *err)
{
    const char *text = query_text(call->query, name);

    return text && instant_parse(text, name, out, err) < 0 ? error_field(err, name) : 0;
}

const char *api_query_id(struct call *call, const char *name, const char *prefix)
{
    const char *text = query_text(call->query, name);

    return text ? reference_of(text, prefix) : NULL;
}
