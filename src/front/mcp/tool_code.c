/* SPDX-License-Identifier: Apache-2.0 */
/* The tool that runs code in a notebook: its images become images, and what is long is cut. */
#include "front/mcp/mcp_tool_call.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 16384 // of stdout, stderr and each text of a result: beginning and end
#define IMAGES_MOST 8
#define IMAGE_BYTES ((size_t)6 << 20) // of all images, in base64
#define RESULTS_MOST 50

struct shown {
    struct tool_call *call;
    struct json_writer json;
    size_t images, image_bytes;
    bool is_cut;
};

/* The beginning and the end of what is longer than may be. */
static void put_bounded(struct shown *shown, const struct data_value *value)
{
    char words[80];
    size_t half = TEXT_BYTES / 2;

    if (value->kind != VALUE_STRING || value->length <= TEXT_BYTES) {
        json_value(&shown->json, value);
        return;
    }
    shown->is_cut = true;
    (void)snprintf(words, sizeof words, "\n… [%zu bytes left out] …\n", value->length - 2 * half);
    json_string_begin(&shown->json);
    json_string_piece(&shown->json, value->text, half);
    json_string_piece(&shown->json, words, strlen(words));
    json_string_piece(&shown->json, value->text + value->length - half, half);
    json_string_end(&shown->json);
}

/* Whether it is given as an image beside the text. */
static bool take_image(struct shown *shown, const struct data_value *value)
{
    struct tool_call *call = shown->call;

    if (shown->images == IMAGES_MOST || shown->image_bytes + value->length > IMAGE_BYTES)
        return false;
    struct tool_image *image = tool_alloc(call, sizeof *image);
    char *data = tool_alloc(call, value->length + 1);
    memcpy(data, value->text, value->length);
    *image = (struct tool_image){
        .type = tool_print(call, "%s", value->key), .data = data, .length = value->length};
    *call->last_image = image;
    call->last_image = &image->next;
    shown->images++;
    shown->image_bytes += value->length;
    return true;
}

static void put_data(struct shown *shown, const struct data_value *data)
{
    json_map_begin(&shown->json);
    for (const struct data_value *v = data->first; v; v = v->next) {
        bool is_image = v->kind == VALUE_STRING && strncmp(v->key, "image/", 6) == 0 &&
                        strcmp(v->key, "image/svg+xml") != 0;
        json_key_exact(&shown->json, v->key, v->key_length);
        if (!is_image)
            put_bounded(shown, v);
        else
            json_string(&shown->json,
                        take_image(shown, v) ? "[an image of this result]" : "[an image too many]");
    }
    json_map_end(&shown->json);
}

static void put_one(struct shown *shown, const struct data_value *result)
{
    json_map_begin(&shown->json);
    for (const struct data_value *v = result->first; v; v = v->next) {
        if (strcmp(v->key, "chart") == 0)
            continue; // its points are in the image
        json_key_exact(&shown->json, v->key, v->key_length);
        if (v->kind == VALUE_MAP && strcmp(v->key, "data") == 0)
            put_data(shown, v);
        else
            put_bounded(shown, v);
    }
    json_map_end(&shown->json);
}

static void put_results(struct shown *shown, const struct data_value *results)
{
    size_t count = 0;

    json_list_begin(&shown->json);
    for (const struct data_value *v = results->first; v && count < RESULTS_MOST;
         v = v->next, count++) {
        if (v->kind == VALUE_MAP)
            put_one(shown, v);
    }
    shown->is_cut |= results->count > count;
    json_list_end(&shown->json);
}

static void put_error(struct shown *shown, const struct data_value *error)
{
    json_map_begin(&shown->json);
    for (const struct data_value *v = error->first; v; v = v->next) {
        json_key_exact(&shown->json, v->key, v->key_length);
        put_bounded(shown, v);
    }
    json_map_end(&shown->json);
}

int tool_code_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err)
{
    struct shown shown = {.call = call};
    autoptr(data_document) document = NULL;

    (void)next;
    if (tool_answer(call, answer, &document, err) < 0)
        return -1;
    const struct data_value *truncated = value_get(document->root, "truncated");
    json_writer_init(&shown.json, &call->result);
    json_map_begin(&shown.json);
    for (const struct data_value *v = document->root->first; v; v = v->next) {
        if (v == truncated)
            continue;
        json_key_exact(&shown.json, v->key, v->key_length);
        if (v->kind == VALUE_LIST)
            put_results(&shown, v);
        else if (v->kind == VALUE_MAP)
            put_error(&shown, v);
        else
            put_bounded(&shown, v);
    }
    json_key(&shown.json, "truncated");
    json_bool(&shown.json, shown.is_cut || (truncated && truncated->truth));
    json_map_end(&shown.json);
    return json_writer_finish(&shown.json, err) < 0 ? -1 : TOOL_DONE;
}
