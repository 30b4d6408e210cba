/* The state of a run: checks whether its process exists, which is only possible on the run's node. */
#include <weir/query.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The process does not exist, or is a zombie. */
static bool is_dead(int64_t pid)
{
    char path[64];
    if (kill((pid_t)pid, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/cmdline", pid);
    FILE *command = fopen(path, "re");
    bool is_empty = command && fgetc(command) == EOF && !ferror(command);
    if (command)
        fclose(command);
    return is_empty;
}

weir_run_state weir_run_state_of(const weir_run_record *run)
{
    char here[256] = "";
    if (!run)
        return WEIR_RUN_OPEN;
    if (run->has_ended)
        return run->status == WEIR_OK         ? WEIR_RUN_FINISHED
               : run->status == WEIR_ESTOPPED ? WEIR_RUN_STOPPED
                                              : WEIR_RUN_FAILED;
    if (gethostname(here, sizeof here - 1) != 0 || !run->node_id || strcmp(here, run->node_id) != 0 || run->pid <= 0)
        return WEIR_RUN_OPEN;
    return is_dead(run->pid) ? WEIR_RUN_KILLED : WEIR_RUN_RUNNING;
}

const char *weir_run_state_name(weir_run_state state)
{
    static const char *const names[] = {
        [WEIR_RUN_RUNNING] = "running",   [WEIR_RUN_KILLED] = "killed",   [WEIR_RUN_OPEN] = "running or killed",
        [WEIR_RUN_FINISHED] = "finished", [WEIR_RUN_STOPPED] = "stopped", [WEIR_RUN_FAILED] = "failed",
    };
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "";
}
