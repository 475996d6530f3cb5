/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up and letting go of requests. */
#include "net/request.h"

#include "net/body.h"

#include <string.h>
#include <strings.h>

const char *http_request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    }
    return NULL;
}

void http_request_free(struct http_request *request)
{
    if (!request)
        return;
    buffer_clear(&request->body);
    gather_charge_clear(&request->charge);
    body_free(request->stream);
    free(request->headers);
    free(request->head);
    free(request);
}
