/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns src/engine/seccomp_table.h into a BPF program, as a C header on stdout. Run by the build.
 * usage: seccomp-gen [REACH]    REACH: how far a conditional jump may go (default 255; the tests
 * use less)
 *
 * Loading costs length (the kernel compiles the program) and depth (it runs the program once for
 * every number, to learn which calls are always allowed). So neighbouring numbers of one verdict
 * form a range, one jump each, and the search tree over the ranges is the one with the least sum of
 * paths.
 */
#include "engine/seccomp_table.h"

#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_CODE = 4096,
    MAX_RANGES = 512,
    MAX_QUESTIONS = 64,
    JUMP_REACH = 255,
    // Allowed calls are answered from the kernel's cache; calls with questions run the program each
    // time.
    QUESTION_WEIGHT = 8,
};

struct range {
    uint32_t first;
    uint32_t action;
    const struct seccomp_question *ask;
    unsigned weight;
};

/* Written from its end: code[0] is the last instruction, and a label is an index into it. */
struct program {
    struct sock_filter code[MAX_CODE];
    unsigned length;
    unsigned reach;
    struct {
        const struct seccomp_question *question;
        unsigned label;
    } asked[MAX_QUESTIONS];
    unsigned n_asked;
    unsigned secret_low, secret_high, secret_jump; // labels
};

struct search {
    struct range ranges[MAX_RANGES];
    unsigned n_ranges;
    unsigned cost[MAX_RANGES][MAX_RANGES];  // of the best tree over ranges i..j
    unsigned split[MAX_RANGES][MAX_RANGES]; // last range of its left half
};

static void die(const char *why)
{
    fprintf(stderr, "seccomp-gen: %s\n", why);
    exit(1);
}

// --- the program, backwards ---

static unsigned emit(struct program *p, struct sock_filter instruction)
{
    if (p->length == MAX_CODE)
        die("the program is too long");
    p->code[p->length] = instruction;
    return p->length++;
}

/* Room for two more instructions in between: the detours of one conditional jump. */
static bool is_near(const struct program *p, unsigned label)
{
    return p->length - label <= p->reach - 1;
}

static unsigned emit_action(struct program *p, uint32_t action)
{
    for (unsigned at = p->length; at-- > 0 && is_near(p, at);) {
        if (p->code[at].code == (BPF_RET | BPF_K) && p->code[at].k == action)
            return at;
    }
    return emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static unsigned bring_near(struct program *p, unsigned label)
{
    if (is_near(p, label))
        return label;
    if (p->code[label].code == (BPF_RET | BPF_K))
        return emit_action(p, p->code[label].k);
    return emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, p->length - label - 1));
}

static unsigned emit_jump(struct program *p, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
    yes = bring_near(p, yes);
    no = bring_near(p, no);
    unsigned yes_offset = p->length - yes - 1;
    unsigned no_offset = p->length - no - 1;
    if (yes_offset > p->reach || no_offset > p->reach)
        die("a jump does not reach");
    return emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | op | BPF_K, k, (uint8_t)yes_offset,
                                                (uint8_t)no_offset));
}

static unsigned emit_load(struct program *p, size_t offset)
{
    return emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static size_t low_half(unsigned arg)
{
    return offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t);
}

static size_t high_half(unsigned arg)
{
    return low_half(arg) + sizeof(uint32_t);
}

// --- questions ---

static unsigned emit_question(struct program *p, const struct seccomp_question *question);

static unsigned emit_outcome(struct program *p, const struct seccomp_answer *answer)
{
    return answer->next ? emit_question(p, answer->next) : emit_action(p, answer->action);
}

static bool is_end(const struct seccomp_answer *answer)
{
    return !answer->next && !answer->action;
}

/* Both halves in one comparison, so that the time it takes tells nothing about either. */
static unsigned emit_secret(struct program *p, const struct seccomp_question *question)
{
    unsigned yes = emit_action(p, question->answers[0].action);
    unsigned no = emit_action(p, question->otherwise);
    p->secret_jump = emit_jump(p, BPF_JEQ, 0, yes, no);
    emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0));
    p->secret_high = emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 0));
    emit_load(p, high_half(question->arg));
    emit(p, (struct sock_filter)BPF_STMT(BPF_MISC | BPF_TAX, 0));
    p->secret_low = emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 0));
    return emit_load(p, low_half(question->arg));
}

static unsigned emit_comparisons(struct program *p, const struct seccomp_question *question)
{
    enum { MAX_ANSWERS = sizeof question->answers / sizeof *question->answers };
    unsigned labels[MAX_ANSWERS];
    unsigned count = 0;
    while (count < MAX_ANSWERS && !is_end(&question->answers[count])) {
        labels[count] = emit_outcome(p, &question->answers[count]);
        count++;
    }
    unsigned next = question->otherwise_ask ? emit_question(p, question->otherwise_ask)
                                            : emit_action(p, question->otherwise);
    while (count-- > 0)
        next = emit_jump(p, BPF_JEQ, question->answers[count].value, labels[count], next);
    if (question->mask)
        emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, question->mask));
    return emit_load(p, question->is_high ? high_half(question->arg) : low_half(question->arg));
}

static unsigned emit_question(struct program *p, const struct seccomp_question *question)
{
    for (unsigned i = 0; i < p->n_asked; i++) {
        if (p->asked[i].question == question)
            return p->asked[i].label;
    }
    unsigned label = question->is_secret ? emit_secret(p, question) : emit_comparisons(p, question);
    if (p->n_asked == MAX_QUESTIONS)
        die("too many questions");
    p->asked[p->n_asked].question = question;
    p->asked[p->n_asked++].label = label;
    return label;
}

// --- ranges and the tree over them ---

static void add_range(struct search *s, uint32_t first, uint32_t last, uint32_t action,
                      const struct seccomp_question *ask)
{
    unsigned weight = first > SECCOMP_LAST_NUMBER ? 1 : last - first + 1;
    struct range *before = s->n_ranges ? &s->ranges[s->n_ranges - 1] : NULL;
    if (before && !ask && !before->ask && before->action == action) {
        before->weight += weight;
        return;
    }
    if (s->n_ranges == MAX_RANGES)
        die("too many ranges");
    s->ranges[s->n_ranges++] =
        (struct range){first, action, ask, weight + (ask ? QUESTION_WEIGHT : 0)};
}

static void find_ranges(struct search *s)
{
    const struct seccomp_rule *by_number[SECCOMP_LAST_NUMBER + 1] = {0};
    for (size_t i = 0; i < sizeof seccomp_table / sizeof *seccomp_table; i++) {
        const struct seccomp_rule *rule = &seccomp_table[i];
        if (rule->number > SECCOMP_LAST_NUMBER)
            die("SECCOMP_LAST_NUMBER is not the last number");
        if (by_number[rule->number])
            die("the table has a call twice");
        by_number[rule->number] = rule;
    }
    for (uint32_t n = 0; n <= SECCOMP_LAST_NUMBER; n++) {
        const struct seccomp_rule *rule = by_number[n];
        add_range(s, n, n, rule ? rule->action : SECCOMP_ABSENT, rule ? rule->ask : NULL);
    }
    add_range(s, SECCOMP_LAST_NUMBER + 1, SECCOMP_X32_NUMBER - 1, SECCOMP_ABSENT, NULL);
    add_range(s, SECCOMP_X32_NUMBER, UINT32_MAX - 1, SECCOMP_RET_KILL_PROCESS, NULL);
    add_range(s, UINT32_MAX, UINT32_MAX, SECCOMP_ABSENT, NULL);
}

static void find_best_tree(struct search *s)
{
    for (unsigned size = 2; size <= s->n_ranges; size++) {
        for (unsigned i = 0; i + size <= s->n_ranges; i++) {
            unsigned j = i + size - 1;
            unsigned weight = 0;
            for (unsigned at = i; at <= j; at++)
                weight += s->ranges[at].weight;
            s->cost[i][j] = UINT32_MAX;
            for (unsigned at = i; at < j; at++) {
                unsigned cost = s->cost[i][at] + s->cost[at + 1][j] + weight;
                if (cost < s->cost[i][j]) {
                    s->cost[i][j] = cost;
                    s->split[i][j] = at;
                }
            }
        }
    }
}

static unsigned emit_tree(struct program *p, const struct search *s, unsigned i, unsigned j)
{
    const struct range *range = &s->ranges[i];
    if (i == j)
        return range->ask ? emit_question(p, range->ask) : emit_action(p, range->action);
    unsigned split = s->split[i][j];
    unsigned high = emit_tree(p, s, split + 1, j);
    unsigned low = emit_tree(p, s, i, split);
    return emit_jump(p, BPF_JGE, s->ranges[split + 1].first, high, low);
}

static void emit_program(struct program *p, const struct search *s)
{
    emit_tree(p, s, 0, s->n_ranges - 1);
    unsigned numbers = emit_load(p, offsetof(struct seccomp_data, nr));
    unsigned kill = emit_action(p, SECCOMP_RET_KILL_PROCESS);
    emit_jump(p, BPF_JEQ, AUDIT_ARCH_X86_64, numbers, kill);
    emit_load(p, offsetof(struct seccomp_data, arch));
}

/* The template refuses clone3: its jump goes to the refusal either way until a secret is put in. */
static void print_program(struct program *p)
{
    unsigned last = p->length - 1;
    unsigned match_offset = p->code[p->secret_jump].jt;
    p->code[p->secret_jump].jt = p->code[p->secret_jump].jf;
    printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
           "/* Made by tools/seccomp-gen from engine/seccomp_table.h: the guest's filter of system "
           "calls. */\n"
           "#pragma once\n#include <linux/filter.h>\n\n"
           "enum {\n    SECCOMP_SECRET_LOW = %u,\n    SECCOMP_SECRET_HIGH = %u,\n"
           "    SECCOMP_SECRET_JUMP = %u,\n    SECCOMP_SECRET_MATCH = %u, // that jump's jt when "
           "armed\n};\n\n"
           "static const struct sock_filter seccomp_program[] = {\n",
           last - p->secret_low, last - p->secret_high, last - p->secret_jump, match_offset);
    for (unsigned i = p->length; i-- > 0;) {
        const struct sock_filter *c = &p->code[i];
        printf("    {0x%02x, %u, %u, 0x%08x}, // %u\n", c->code, c->jt, c->jf, c->k, last - i);
    }
    printf("};\n");
}

int main(int argc, char **argv)
{
    static struct program program;
    static struct search search;

    program.reach = argc > 1 ? (unsigned)atoi(argv[1]) : JUMP_REACH;
    if (program.reach < 4 || program.reach > JUMP_REACH)
        die("a jump reaches 4 to 255 instructions");
    find_ranges(&search);
    find_best_tree(&search);
    emit_program(&program, &search);
    print_program(&program);
    return fflush(stdout) != 0;
}
