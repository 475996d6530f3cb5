/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the OpenAPI document of burrow's own API, as a server has it: for tools/api-reference. */
#include "front/api/api.h"
#include "front/api/api_manners.h"
#include "web/router.h"

#include <stdio.h>

int main(void)
{
    struct front front;
    struct error err = {0};
    autoptr(router) router = NULL;
    size_t length;

    api_front_init(&front, &(struct api_settings){0});
    const struct front *const fronts[] = {&front, NULL};
    if (router_new(&(struct router_settings){.fronts = fronts, .is_open = true}, &router, &err) <
        0) {
        (void)fprintf(stderr, "api-document: %s\n", err.text);
        return 1;
    }
    const char *text = router_openapi(router, &front, &length);
    return fwrite(text, 1, length, stdout) == length ? 0 : 1;
}
