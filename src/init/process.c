/* SPDX-License-Identifier: Apache-2.0 */
/* The processes PID 1 was asked to start: finding, signalling, reaping, forgetting them. */
#include "init/init.h"

#include "base/auto.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define REAP_AT_ONCE 256 // then others get their turn

struct process *process_find(struct init *init, uint32_t id)
{
    for (struct process *process = init->processes; process; process = process->next) {
        if (process->id == id)
            return process;
    }
    return NULL;
}

void process_remove(struct init *init, struct process *process)
{
    for (struct process **at = &init->processes; *at; at = &(*at)->next) {
        if (*at == process) {
            *at = process->next;
            break;
        }
    }
    output_close(&process->outputs[0]);
    output_close(&process->outputs[1]);
    input_close(&process->input);
    closep(&process->screen_fd);
    closep(&process->terminal_fd);
    closep(&process->kill_fd);
    closep(&process->freezer_fd);
    closep(&process->procs_fd);
    init->n_processes--;
    free(process);
}

/* Signals every process named in a v1 cgroup.procs; the numbers are those of our own process namespace. */
static bool signal_listed(int procs_fd, int signal)
{
    char text[4096];
    bool has_any = false;
    off_t at = 0;

    for (;;) {
        ssize_t got = pread(procs_fd, text, sizeof text - 1, at);
        if (got <= 0)
            return has_any;
        text[got] = '\0';
        char *last = strrchr(text, '\n');
        if (!last)
            return has_any;
        at += last - text + 1;
        *last = '\0';
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            int pid = atoi(line);
            if (pid > 1) {
                has_any = true;
                (void)kill(pid, signal);
            }
        }
    }
}

/* v1: frozen they cannot fork; the signal takes effect when they thaw. */
static void kill_v1_leaf(struct process *process)
{
    (void)!pwrite(process->freezer_fd, "FROZEN", 6, 0);
    for (int i = 0; i < 100 && signal_listed(process->procs_fd, SIGKILL); i++) {
        char state[16] = "";
        (void)!pread(process->freezer_fd, state, sizeof state - 1, 0);
        if (strncmp(state, "FROZEN", 6) == 0)
            break;
    }
    (void)signal_listed(process->procs_fd, SIGKILL);
    (void)!pwrite(process->freezer_fd, "THAWED", 6, 0);
}

void process_kill_tree(struct init *init, struct process *process)
{
    if (process->kill_fd >= 0)
        (void)!pwrite(process->kill_fd, "1", 1, 0);
    else if (process->freezer_fd >= 0)
        kill_v1_leaf(process);
    else if (init->is_one_shot)
        (void)kill(-1, SIGKILL); // everything in our process namespace but us
    if (process->pid > 0 && !process->has_ended)
        (void)kill(process->pid,
                   SIGKILL); // on v1 it enters its leaf by itself and may be on its way
}

void process_signal(struct init *init, struct process *process, int signal, bool is_whole_tree,
                    int procs_fd)
{
    process->is_killed |= signal == SIGKILL;
    if (is_whole_tree && signal == SIGKILL)
        process_kill_tree(init, process);
    else if (is_whole_tree && procs_fd >= 0)
        (void)signal_listed(procs_fd, signal);
    else if (is_whole_tree && init->is_one_shot)
        (void)kill(-1, signal);
    else if (process->pid > 0 && !process->has_ended && kill(-process->pid, signal) < 0)
        (void)kill(process->pid, signal); // it has not made its own session yet
}

/* "oom_kill N" in either version's file. */
uint64_t process_count_oom_kills(struct init *init)
{
    char text[512];
    if (init->oom_fd < 0)
        return 0;
    ssize_t got = pread(init->oom_fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return init->oom_kills;
    text[got] = '\0';
    for (char *at = text; at; at = strchr(at, '\n')) {
        if (*at == '\n')
            at++;
        if (strncmp(at, "oom_kill ", 9) == 0)
            init->oom_kills = strtoull(at + 9, NULL, 10);
    }
    return init->oom_kills;
}

/* The kernel tells how many it killed, not whom: one that was killed, by nobody's wish, since the count went up. */
static bool was_killed_for_memory(struct init *init, const struct process *process)
{
    if (process->end.code != 128 + SIGKILL || process->is_killed)
        return false;
    uint64_t kills = process_count_oom_kills(init);
    if (kills <= process->oom_kills || kills <= init->oom_ends)
        return false;
    init->oom_ends++;
    return true;
}

static void describe_end(struct init *init, struct process *process, int status,
                         const struct rusage *used)
{
    struct link_exit *end = &process->end;
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end->code = end->signal ? 128 + end->signal : WEXITSTATUS(status);
    end->cause = CAUSE_EXIT;
    end->duration_us = init_now_us() - process->started_us;
    end->cpu_user_us = (uint64_t)used->ru_utime.tv_sec * 1000000 + (uint64_t)used->ru_utime.tv_usec;
    end->cpu_system_us =
        (uint64_t)used->ru_stime.tv_sec * 1000000 + (uint64_t)used->ru_stime.tv_usec;
    end->max_rss_bytes = (uint64_t)used->ru_maxrss * 1024;
    if (process->is_timed_out) {
        end->cause = CAUSE_TIMEOUT;
        end->code = 124;
        (void)snprintf(end->text, sizeof end->text, "the time limit was reached");
        return;
    }
    if (was_killed_for_memory(init, process)) {
        end->cause = CAUSE_MEMORY;
        (void)snprintf(end->text, sizeof end->text, "the memory limit was reached");
    }
}

static void end_process(struct init *init, struct process *process, int status,
                        const struct rusage *used)
{
    process->has_ended = true;
    process->deadline_us = 0;
    if (!spawn_finish(init, process))
        describe_end(init, process, status, used);
    input_close(&process->input);
    closep(&process->screen_fd);
    for (int i = 0; i < 2; i++) {
        closep(&process->outputs[i].end_fd);
        output_drain(&process->outputs[i]);
        if (process->outputs[i].is_truncated)
            process->end.truncation |= OUTPUT_IS_CUT;
        if (process->outputs[i].is_lost)
            process->end.truncation |= OUTPUT_IS_LOST;
        if (process->outputs[i].is_terminal) // whoever still writes there has lost its terminal
            output_close(&process->outputs[i]);
    }
    process->end.stdout_bytes = process->outputs[0].produced;
    process->end.stderr_bytes = process->outputs[1].produced;
}

void process_reap(struct init *init)
{
    struct rusage used;
    int status = 0;
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        pid_t pid = wait4(-1, &status, WNOHANG, &used);
        if (pid <= 0)
            return;
        for (struct process *process = init->processes; process; process = process->next) {
            if (process->pid == pid && !process->has_ended) {
                end_process(init, process, status, &used);
                break;
            }
        }
    }
    (void)raise(SIGCHLD); // more may be waiting: come back after the others' turn
}
