/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators do with runtimes; see runtime.h. */
#include "core/runtime/runtime.h"

#include "base/mem.h"
#include "core/runtime/runtimes.h"
#include "runtime/build.h"
#include "runtime/catalog.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// A source is put into YAML between quotes.
static int check_image(const char *image, struct error *err)
{
    if (strlen(image) > 1000 || strpbrk(image, "\"\\\n\r\t"))
        return error_refuse(err, ERROR_INVALID, "image", "image: '%.100s' does not name an image",
                            image);
    return 0;
}

int runtime_put(struct runtimes *runtimes, const struct actor *actor, const char *name,
                const char *definition, const char *image, struct error *err)
{
    struct runtime_reference reference;

    if (actor_need_admin(actor, err) < 0 || runtime_reference_parse(name, &reference, err) < 0)
        return -1;
    if (!definition == !image)
        return error_refuse(err, ERROR_INVALID, "definition",
                            "definition: give this or an image, and not both");
    if (definition)
        return catalog_put_file(runtimes_data_dir(runtimes), &reference, definition, err);
    if (check_image(image, err) < 0)
        return -1;
    autofree char *text =
        xasprintf("name: %s\ntags: [\"%s\"]\nbuild:\n  kind: oci\n  image: \"%s\"\n",
                  reference.name, reference.tag, image);
    return catalog_put_file(runtimes_data_dir(runtimes), &reference, text, err);
}

// ---- images by their own names ----

/* Docker's, where it does not say from where. */
static char *source_of(const char *image)
{
    static const char *const transports[] = {"docker://",
                                             "oci:", "oci-archive:", "docker-archive:", NULL};

    for (const char *const *at = transports; *at; at++) {
        if (strncmp(image, *at, strlen(*at)) == 0)
            return xstrdup(image);
    }
    return xasprintf("docker://%s", image);
}

static bool find_image(const struct catalog *catalog, const char *source, char *name)
{
    const struct runtime_definition *definition;

    for (size_t i = 0; (definition = catalog_at(catalog, i)); i++) {
        if (definition->kind != RUNTIME_OCI || strcmp(definition->image, source) != 0)
            continue;
        (void)snprintf(name, RUNTIME_REFERENCE_TEXT, "%s:%s", definition->name,
                       definition->tags[0]);
        return true;
    }
    return false;
}

/* "image-debian-1a2b3c4d5e6f:latest": a name that no other image gets. */
static void name_image(const char *source, char *name)
{
    const char *slash = strrchr(source, '/');
    const char *word = slash ? slash + 1 : source;
    char plain[32] = "";
    char id[24];
    size_t used = 0;

    for (; *word && *word != ':' && *word != '@' && used + 1 < sizeof plain; word++) {
        char letter = (char)tolower((unsigned char)*word);
        plain[used++] = isalnum((unsigned char)letter) ? letter : '-';
    }
    runtime_id(source, id);
    (void)snprintf(name, RUNTIME_REFERENCE_TEXT, "image-%s-%.12s:latest", plain, id);
}

int runtime_of_image(struct runtimes *runtimes, const struct actor *actor, const char *image,
                     char *name, struct error *err)
{
    autofree char *source = source_of(image);
    autoptr(catalog) catalog = NULL;

    if (check_image(source, err) < 0 || runtimes_catalog(runtimes, &catalog, err) < 0)
        return -1;
    if (find_image(catalog, source, name))
        return 0;
    if (!actor->is_admin)
        return error_refuse(err, ERROR_DENIED, "image",
                            "image '%.200s' is no runtime of this server; an administrator adds it "
                            "('burrow runtime add NAME --from %.200s')",
                            image, source);
    name_image(source, name);
    return runtime_put(runtimes, actor, name, NULL, source, err);
}

int runtime_make(struct runtimes *runtimes, const struct actor *actor, const char *reference,
                 char *state, struct error *err)
{
    struct runtime_wish wish = {.name = reference, .has_network = true};
    char name[RUNTIME_REFERENCE_TEXT];
    bool is_ready = false;

    *state = '\0';
    if (actor_need_admin(actor, err) < 0 || runtime_check(runtimes, &wish, name, err) < 0)
        return -1;
    return image_begin(runtimes, name, NULL, &is_ready, state, err);
}

int runtime_delete(struct runtimes *runtimes, const struct actor *actor, const char *reference,
                   struct error *err)
{
    const char *data_dir = runtimes_data_dir(runtimes);
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    autoptr(catalog) catalog = NULL;
    struct runtime_status status;
    bool was_there = false;

    if (actor_need_admin(actor, err) < 0 || runtime_reference_parse(reference, &parsed, err) < 0 ||
        runtimes_catalog(runtimes, &catalog, err) < 0 ||
        catalog_find(catalog, &parsed, &definition, err) < 0)
        return -1;
    autofree char *name = xasprintf("%s:%s", definition->name, definition->tags[0]);
    const struct runtime_reference built = parsed;
    runtimes_forget(runtimes, name);
    runtime_status(data_dir, definition, &status);
    if (status.state != RUNTIME_ABSENT && runtime_remove(data_dir, &built, err) < 0)
        return -1;
    if (catalog_remove_file(data_dir, definition, &was_there, err) < 0)
        return -1;
    if (status.state == RUNTIME_ABSENT && !was_there)
        return error_refuse(err, ERROR_NOT_FOUND, "runtime", "runtime '%s' is not built", name);
    return 0;
}
