/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of routes; see route_tree.h. */
#include "web/route_tree.h"

#include "base/mem.h"
#include "web/percent.h"

#include <string.h>

struct route_tree {
    struct route_node root;
};

/* ---- paths ---- */

int route_path_read(const char *path, char *room, struct route_path *out, struct error *err)
{
    const char *at =
        path + strspn(path, "/"); // clients glue a base with a slash at its end to a path

    for (out->count = 0;; at++) {
        size_t length = strcspn(at, "/"), used;
        if (out->count == ROUTE_SEGMENTS) {
            out->count++;
            return 0;
        }
        if (percent_decode(at, length, false, "the path", room, &used, err) < 0)
            return -1;
        out->at[out->count].text = room;
        out->at[out->count++].length = used;
        room += used + 1;
        at += length;
        if (!*at)
            return 0;
    }
}

/* ---- making the tree ---- */

struct route_tree *route_tree_new(void)
{
    return xnew(struct route_tree);
}

static void free_node(struct route_node *node);

static void clear_node(struct route_node *node)
{
    for (struct route_node *child = node->words, *next; child; child = next) {
        next = child->next;
        free_node(child);
    }
    if (node->parameter)
        free_node(node->parameter);
    for (struct route_row *row = node->rows, *next; row; row = next) {
        next = row->next;
        free(row);
    }
    free((char *)node->allow[0].value);
}

static void free_node(struct route_node *node)
{
    clear_node(node);
    free(node);
}

void route_tree_free(struct route_tree *tree)
{
    if (!tree)
        return;
    clear_node(&tree->root);
    free(tree);
}

static struct route_node *find_word(const struct route_node *node, const char *word, size_t length)
{
    for (struct route_node *child = node->words; child; child = child->next) {
        if (child->length == length && memcmp(child->word, word, length) == 0)
            return child;
    }
    return NULL;
}

static bool is_parameter(const char *segment, size_t length)
{
    return length > 2 && segment[0] == '{' && segment[length - 1] == '}';
}

/* The node behind one more segment of a pattern; made if there is none. */
static struct route_node *step(struct route_node *node, const char *segment, size_t length)
{
    if (is_parameter(segment, length)) {
        if (!node->parameter)
            node->parameter = xnew(struct route_node);
        return node->parameter;
    }
    struct route_node *child = find_word(node, segment, length);
    if (child)
        return child;
    child = xnew(struct route_node);
    *child = (struct route_node){.word = segment, .length = length, .next = node->words};
    node->words = child;
    return child;
}

static int check_pattern(const char *pattern, struct error *err)
{
    unsigned segments = 0, parameters = 0;

    if (pattern[0] != '/' || pattern[1] == '/')
        return error_set(err, ERROR_INVALID, "route '%s' does not begin with one slash", pattern);
    for (const char *at = pattern; *at; segments++) {
        size_t length = strcspn(++at, "/");
        bool is_word = !memchr(at, '{', length) && !memchr(at, '}', length);
        if (!is_word && (!is_parameter(at, length) || strcspn(at + 1, "{}") != length - 2))
            return error_set(err, ERROR_INVALID,
                             "route '%s' has a segment that is neither a word nor a {parameter}",
                             pattern);
        parameters += !is_word;
        at += length;
    }
    if (segments > ROUTE_SEGMENTS || parameters > ROUTE_PARAMETERS)
        return error_set(err, ERROR_INVALID,
                         "route '%s' has more than %d segments or %d parameters", pattern,
                         ROUTE_SEGMENTS, ROUTE_PARAMETERS);
    return 0;
}

/* "GET, HEAD, POST" */
static void tell_allowed(struct route_node *node)
{
    char *text = xstrdup("");

    for (const struct route_row *row = node->rows; row; row = row->next) {
        const char *method = row->route->method;
        char *longer = xasprintf("%s%s%s%s", text, *text ? ", " : "", method,
                                 strcmp(method, "GET") == 0 ? ", HEAD" : "");
        free(text);
        text = longer;
    }
    free((char *)node->allow[0].value);
    node->allow[0] = (struct http_header){"Allow", text};
}

static int add_row(struct route_node *node, const struct front *front, const struct route *route,
                   struct error *err)
{
    struct route_row **last = &node->rows;

    for (; *last; last = &(*last)->next) {
        if (strcmp((*last)->route->method, route->method) == 0)
            return error_set(err, ERROR_CONFLICT, "routes '%s %s' of '%s' and '%s' of '%s' are one",
                             route->method, route->pattern, front->name, (*last)->route->pattern,
                             (*last)->front->name);
    }
    *last = xnew(struct route_row);
    **last = (struct route_row){.front = front, .route = route};
    tell_allowed(node);
    return 0;
}

int route_tree_add(struct route_tree *tree, const struct front *front, struct error *err)
{
    for (const struct route *route = front->routes; route->method; route++) {
        struct route_node *node = &tree->root;
        if (check_pattern(route->pattern, err) < 0)
            return -1;
        for (const char *at = route->pattern; *at;) {
            size_t length = strcspn(++at, "/");
            node = step(node, at, length);
            at += length;
        }
        if (add_row(node, front, route, err) < 0)
            return -1;
    }
    return 0;
}

const struct route_node *route_tree_find(const struct route_tree *tree, const char *pattern)
{
    const struct route_node *node = &tree->root;

    for (const char *at = pattern; node && *at;) {
        size_t length = strcspn(++at, "/");
        node = is_parameter(at, length) ? node->parameter : find_word(node, at, length);
        at += length;
    }
    return node;
}

/* ---- looking things up in it ---- */

struct search {
    const char *method;
    const struct route_path *path;
    struct route_match *match;
};

static bool match_row(const struct search *search, const struct route_node *node,
                      unsigned parameters)
{
    for (const struct route_row *row = node->rows; row; row = row->next) {
        if (strcmp(row->route->method, search->method) == 0) {
            search->match->row = row;
            return true;
        }
    }
    if (node->rows && !search->match->other)
        search->match->other = node;
    search->match->is_by_words |= node->rows && parameters == 0;
    return false;
}

/* Goes back and tries a parameter where a word led to nothing, unless the whole path is one of words, with other methods. As deep as the deepest pattern. */
static bool match(const struct search *search, const struct route_node *node, size_t depth,
                  unsigned parameters)
{
    if (depth == search->path->count)
        return match_row(search, node, parameters);
    const char *text = search->path->at[depth].text;
    size_t length = search->path->at[depth].length;
    const struct route_node *word = find_word(node, text, length);
    if (word && match(search, word, depth + 1, parameters))
        return true;
    if (search->match->is_by_words || !node->parameter || length == 0)
        return false;
    search->match->parameters[parameters] = text;
    if (match(search, node->parameter, depth + 1, parameters + 1))
        return true;
    search->match->parameters[parameters] = NULL;
    return false;
}

void route_tree_match(const struct route_tree *tree, const char *method,
                      const struct route_path *path, struct route_match *out)
{
    struct search search = {.method = method, .path = path, .match = out};

    *out = (struct route_match){0};
    if (path->count <= ROUTE_SEGMENTS)
        (void)match(&search, &tree->root, 0, 0);
}
