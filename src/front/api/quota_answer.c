/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas in bodies and answers; see quota_answer.h. */
#include "front/api/quota_answer.h"

#define MOST (INT64_C(1) << 50)

#define AT(member) offsetof(struct quota_body, member)
const struct field quota_body_fields[] = {
    {"sandboxes", FIELD_INTEGER, AT(sandboxes), .has_offset = AT(has_sandboxes), .minimum = 0,
     .maximum = 1000000, .help = "alive at once; 0 is any number"},
    {"memoryBytes", FIELD_AMOUNT, AT(memory_bytes), .has_offset = AT(has_memory), .maximum = MOST,
     .help = "of living sandboxes together; 0 is no bound"},
    {"cpuMillicores", FIELD_MILLIS, AT(cpu_millicores), .has_offset = AT(has_cpu), .maximum = MOST,
     .help = "of living sandboxes together, in thousandths of a processor; 0 is no bound"},
    {"diskBytes", FIELD_AMOUNT, AT(disk_bytes), .has_offset = AT(has_disk), .maximum = MOST,
     .help = "of living sandboxes, snapshots and checkpoints together; 0 is no bound"},
    {"processes", FIELD_INTEGER, AT(processes), .has_offset = AT(has_processes), .minimum = 0,
     .maximum = INT64_C(1) << 40, .help = "of living sandboxes together; 0 is no bound"},
    {"runsPerDay", FIELD_INTEGER, AT(runs_per_day), .has_offset = AT(has_runs), .minimum = 0,
     .maximum = INT64_C(1) << 40,
     .help = "commands and runs of code since midnight UTC; 0 is any number"},
    {0},
};
#undef AT

void quota_body_apply(const struct quota_body *body, struct quota *quota)
{
    if (body->has_sandboxes)
        quota->sandboxes = body->sandboxes;
    if (body->has_memory)
        quota->memory_bytes = body->memory_bytes;
    if (body->has_cpu)
        quota->cpu_millicores = body->cpu_millicores;
    if (body->has_disk)
        quota->disk_bytes = body->disk_bytes;
    if (body->has_processes)
        quota->processes = body->processes;
    if (body->has_runs)
        quota->runs_per_day = body->runs_per_day;
}

#define AT(member) offsetof(struct quota_answer, member)
const struct answer_field quota_bound_fields[] = {
    {"sandboxes", ANSWER_INTEGER, AT(quota.sandboxes), .has_offset = AT(has_sandboxes),
     .help = "alive at once; not there: any number"},
    {"memoryBytes", ANSWER_INTEGER, AT(quota.memory_bytes), .has_offset = AT(has_memory),
     .help = "of living sandboxes together"},
    {"cpuMillicores", ANSWER_INTEGER, AT(quota.cpu_millicores), .has_offset = AT(has_cpu),
     .help = "of living sandboxes together, in thousandths of a processor"},
    {"diskBytes", ANSWER_INTEGER, AT(quota.disk_bytes), .has_offset = AT(has_disk),
     .help = "of living sandboxes, snapshots and checkpoints together"},
    {"processes", ANSWER_INTEGER, AT(quota.processes), .has_offset = AT(has_processes),
     .help = "of living sandboxes together"},
    {"runsPerDay", ANSWER_INTEGER, AT(quota.runs_per_day), .has_offset = AT(has_runs),
     .help = "commands and runs of code since midnight UTC"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct quota, member)
const struct answer_field quota_used_fields[] = {
    {"sandboxes", ANSWER_INTEGER, AT(sandboxes), .help = "that are alive"},
    {"memoryBytes", ANSWER_INTEGER, AT(memory_bytes), .help = "their limits together"},
    {"cpuMillicores", ANSWER_INTEGER, AT(cpu_millicores), .help = "likewise"},
    {"diskBytes", ANSWER_INTEGER, AT(disk_bytes),
     .help = "likewise, and what snapshots and checkpoints take"},
    {"processes", ANSWER_INTEGER, AT(processes), .help = "their limits together"},
    {"runsToday", ANSWER_INTEGER, AT(runs_per_day),
     .help = "commands and runs of code since midnight UTC"},
    {0},
};
#undef AT

struct quota_answer quota_answer_of(const struct quota *quota)
{
    return (struct quota_answer){
        .quota = *quota,
        .has_sandboxes = quota->sandboxes != 0,
        .has_memory = quota->memory_bytes != 0,
        .has_cpu = quota->cpu_millicores != 0,
        .has_disk = quota->disk_bytes != 0,
        .has_processes = quota->processes != 0,
        .has_runs = quota->runs_per_day != 0,
    };
}
