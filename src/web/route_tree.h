/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of all fronts as one tree of path segments: words win over parameters, and matching allocates nothing. Filled once,
 * then read by any thread.
 * Threads: any; filling it, one.
 */
#pragma once
#include "web/front.h"
#include "net/request.h"

/* A path in decoded pieces. "/a/b" has two; "/a/" has "a" and "", "/" has "" alone. */
#define ROUTE_SEGMENTS 12
struct route_path {
    size_t count; // ROUTE_SEGMENTS + 1: it has more, which are not here
    struct {
        const char *text;
        size_t length;
    } at[ROUTE_SEGMENTS];
};

/* `room` is strlen(path) + 1 bytes and is pointed into. ERROR_INVALID as percent.h has it. */
int route_path_read(const char *path, char *room, struct route_path *out, struct error *err);

struct route_row {
    const struct front *front;
    const struct route *route;
    struct route_row *next; // of the same path, with another method
};

struct route_node {
    const char *word; // within a pattern; NULL: a parameter
    size_t length;
    struct route_node *next;      // another word at the same place
    struct route_node *words;     // what may follow
    struct route_node *parameter; // what else may follow
    struct route_row *rows;       // in the order they came; NULL: no path ends here
    struct http_header allow[2];  // the methods of the rows, for a 405
};

struct route_tree;

struct route_tree *route_tree_new(void);
void route_tree_free(struct route_tree *tree);
DEFINE_AUTOPTR(route_tree)

/* Fronts and their tables must stay. ERROR_CONFLICT for two rows with the same method and the same path, ERROR_INVALID for a pattern
 * that is none. */
int route_tree_add(struct route_tree *tree, const struct front *front, struct error *err);

/* Where this pattern ends; NULL when it was never added. */
const struct route_node *route_tree_find(const struct route_tree *tree, const char *pattern);

struct route_match {
    const struct route_row *row;              // NULL: none
    const struct route_node *other;           // then: the path is known with other methods
    bool is_by_words;                         // then: all of it, without a parameter
    const char *parameters[ROUTE_PARAMETERS]; // within the path's pieces
};
void route_tree_match(const struct route_tree *tree, const char *method,
                      const struct route_path *path, struct route_match *out);
