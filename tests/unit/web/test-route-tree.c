/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route_tree.h"

#include "test.h"

static const struct route routes[] = {
    {"GET", "/sandbox/{id}"},
    {"DELETE", "/sandbox/{sandboxId}"},
    {"GET", "/sandbox/status/{id}"},
    {"POST", "/sandbox/{id}/execute"},
    {"GET", "/sandbox/sandboxes/{id}/jobs/{job}"},
    {"GET", "/"},
    {"GET", "/{stream}"},
    {"POST", "/slash/"},
    {"PUT", "/a b/ä"},
    {0},
};
static const struct front front = {.name = "test", .routes = routes};

struct found {
    char room[512];
    struct route_path path;
    struct route_match match;
};

static const struct route *find(const char *method, const char *path, struct found *found)
{
    autoptr(route_tree) tree = route_tree_new();
    struct error err = {0};

    CHECK_OK(route_tree_add(tree, &front, &err), err);
    CHECK_OK(route_path_read(path, found->room, &found->path, &err), err);
    route_tree_match(tree, method, &found->path, &found->match);
    return found->match.row ? found->match.row->route : NULL;
}

static void check_route(const char *method, const char *path, const struct route *want)
{
    struct found found;
    CHECK(find(method, path, &found) == want);
}

TEST(words_win_over_parameters)
{
    struct found found;

    CHECK(find("GET", "/sandbox/status/x", &found) == &routes[2]);
    CHECK_STR(found.match.parameters[0], "x");
    CHECK(find("GET", "/sandbox/status", &found) == &routes[0]);
    CHECK_STR(found.match.parameters[0], "status");
    CHECK(find("GET", "/sandbox/sandboxes/s/jobs/j", &found) == &routes[4]);
    CHECK_STR(found.match.parameters[0], "s");
    CHECK_STR(found.match.parameters[1], "j");
}

TEST(a_word_that_leads_nowhere_is_a_parameter)
{
    struct found found;

    CHECK(find("POST", "/sandbox/status/execute", &found) == &routes[3]);
    CHECK_STR(found.match.parameters[0], "status");
    CHECK(!found.match.parameters[1]);
}

TEST(a_path_all_of_words_is_no_parameter_whatever_the_method)
{
    static const struct route table[] = {
        {"GET", "/sandbox"}, {"PUT", "/{stream}"}, {"GET", "/sandbox/{id}"}, {0}};
    static const struct front some = {.name = "some", .routes = table};
    autoptr(route_tree) tree = route_tree_new();
    struct found found;
    struct error err = {0};

    CHECK_OK(route_tree_add(tree, &some, &err), err);
    CHECK_OK(route_path_read("/sandbox", found.room, &found.path, &err), err);
    route_tree_match(tree, "PUT", &found.path, &found.match);
    CHECK(!found.match.row);
    CHECK_STR(found.match.other->allow[0].value, "GET, HEAD");
    CHECK_OK(route_path_read("/stream7", found.room, &found.path, &err), err);
    route_tree_match(tree, "PUT", &found.path, &found.match);
    CHECK(found.match.row && found.match.row->route == &table[1]);
}

TEST(slashes_at_the_start_are_one_and_others_count)
{
    check_route("GET", "///sandbox/x", &routes[0]);
    check_route("GET", "//", &routes[5]);
    check_route("GET", "/", &routes[5]);
    check_route("GET", "/sandbox//x", NULL);
    check_route("GET", "/sandbox/x/", NULL);
    check_route("GET", "/sandbox/", NULL);
    check_route("POST", "/slash/", &routes[7]);
    check_route("POST", "/slash", NULL);
    check_route("GET", "*", &routes[6]);
}

TEST(segments_are_decoded_one_by_one)
{
    struct found found;

    check_route("PUT", "/a%20b/%c3%A4", &routes[8]);
    check_route("GET", "/s%61ndbox/x", &routes[0]);
    CHECK(find("GET", "/sandbox/a%2Fb+c", &found) == &routes[0]);
    CHECK_STR(found.match.parameters[0], "a/b+c");
    check_route("GET", "/sandbox%2Fx", &routes[6]);
    CHECK(find("GET", "/sandbox/%2E%2E", &found) == &routes[0]);
}

TEST(bad_escapes_and_nul_in_a_path_are_refused)
{
    static const char *const bad[] = {"/a%", "/a%0", "/%zz", "/a%00b", "/%ff", "/ok/%e"};
    struct route_path path;
    char room[64];
    struct error err;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(route_path_read(bad[i], room, &path, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
}

TEST(a_path_known_with_other_methods_tells_them)
{
    struct found found;
    autoptr(route_tree) tree = route_tree_new();
    struct error err = {0};

    CHECK_OK(route_tree_add(tree, &front, &err), err);
    CHECK_OK(route_path_read("/sandbox/x", found.room, &found.path, &err), err);
    route_tree_match(tree, "POST", &found.path, &found.match);
    CHECK(!found.match.row && found.match.other);
    CHECK_STR(found.match.other->allow[0].name, "Allow");
    CHECK_STR(found.match.other->allow[0].value, "GET, HEAD, DELETE");
    CHECK(!find("POST", "/nothing/here/at/all", &found) && !found.match.other);
}

TEST(what_is_known_by_its_words_is_no_parameter_of_another_method)
{
    static const struct route known[] = {
        {"GET", "/sandbox"}, {"POST", "/sandbox"}, {"PUT", "/{stream}"}, {0}};
    const struct front words = {.routes = known};
    struct found found;
    autoptr(route_tree) tree = route_tree_new();
    struct error err = {0};

    CHECK_OK(route_tree_add(tree, &words, &err), err);
    CHECK_OK(route_path_read("/sandbox", found.room, &found.path, &err), err);
    route_tree_match(tree, "PUT", &found.path, &found.match);
    CHECK(!found.match.row && found.match.other);
    CHECK_STR(found.match.other->allow[0].value, "GET, HEAD, POST");
    CHECK_OK(route_path_read("/stream_x", found.room, &found.path, &err), err);
    route_tree_match(tree, "PUT", &found.path, &found.match);
    CHECK(found.match.row && found.match.row->route == &known[2]);
}

TEST(very_deep_paths_match_nothing)
{
    check_route("GET", "/sandbox/1/2/3/4/5/6/7/8/9/10/11/12/13/14", NULL);
    check_route("GET", "/1/2/3/4/5/6/7/8/9/10/11/12", NULL);
}

static void check_refused(const struct route *table, enum error_reason kind, const char *want)
{
    const struct front wrong = {.name = "wrong", .routes = table};
    autoptr(route_tree) tree = route_tree_new();
    struct error err = {0};

    CHECK(route_tree_add(tree, &wrong, &err) < 0);
    CHECK_INT(error_kind(&err), kind);
    CHECK_STR(err.text, want);
}

TEST(two_rows_for_one_thing_are_refused)
{
    static const struct route twice[] = {
        {"GET", "/a/{x}"}, {"POST", "/a/{x}"}, {"GET", "/a/{y}"}, {0}};

    check_refused(twice, ERROR_CONFLICT,
                  "routes 'GET /a/{y}' of 'wrong' and '/a/{x}' of 'wrong' are one");
}

TEST(patterns_that_are_none_are_refused)
{
    static const struct route relative[] = {{"GET", "a"}, {0}};
    static const struct route half[] = {{"GET", "/a/x{y}"}, {0}};
    static const struct route nested[] = {{"GET", "/a/{x{y}"}, {0}};
    static const struct route many[] = {{"GET", "/{a}/{b}/{c}/{d}/{e}"}, {0}};

    check_refused(relative, ERROR_INVALID, "route 'a' does not begin with one slash");
    check_refused(half, ERROR_INVALID,
                  "route '/a/x{y}' has a segment that is neither a word nor a {parameter}");
    check_refused(nested, ERROR_INVALID,
                  "route '/a/{x{y}' has a segment that is neither a word nor a {parameter}");
    check_refused(many, ERROR_INVALID,
                  "route '/{a}/{b}/{c}/{d}/{e}' has more than 12 segments or 4 parameters");
}
