#include "record_explain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <weir/log.h>

#include "memory.h"

struct record_explain {
    weir_pipeline *pipeline;
    pthread_t thread;
    bool is_joined;
    atomic_bool is_done; /* what follows is written before */
    weir_verdict *verdict;
    weir_error error;
};

static void log_line(void *self, const char *line)
{
    (void)self;
    weir_log(WEIR_LOG_INFO, "explain: %s", line);
}

/* Until ten results were delivered: before that, the pipeline fills. False = the run has ended. */
static bool wait_for_flow(weir_pipeline *pipeline)
{
    const uint64_t enough = 10;
    for (;;) {
        weir_account account;
        weir_snapshot *snapshot;
        if (weir_pipeline_account(pipeline, NULL, &account) != WEIR_OK || account.passed_on >= enough)
            return true;
        if (weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
            return false;
        bool has_ended = snapshot->state[0] != 'r'; /* "running" */
        weir_snapshot_free(snapshot);
        if (has_ended)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 20 * WEIR_MILLISECOND }, NULL);
    }
}

static void *explain_run(void *argument)
{
    record_explain *own = argument;
    weir_live_options options = { .progress = log_line, .command = "weir record DIR" };
    if (wait_for_flow(own->pipeline))
        weir_explain_live(own->pipeline, &options, &own->verdict, &own->error);
    else
        weir_error_set(&own->error, WEIR_EOF, 0, "the run came to its end before anything was measured");
    atomic_store(&own->is_done, true);
    return NULL;
}

record_explain *record_explain_start(weir_pipeline *pipeline)
{
    record_explain *own = memory_get(1, sizeof *own);
    own->pipeline = pipeline;
    if (pthread_create(&own->thread, NULL, explain_run, own) == 0)
        return own;
    weir_log(WEIR_LOG_ERROR, "--explain: cannot start its thread");
    free(own);
    return NULL;
}

bool record_explain_is_done(record_explain *explain)
{
    return !explain || atomic_load(&explain->is_done);
}

void record_explain_join(record_explain *explain)
{
    if (explain && !explain->is_joined)
        pthread_join(explain->thread, NULL);
    if (explain)
        explain->is_joined = true;
}

const weir_verdict *record_explain_verdict(const record_explain *explain, const char **reason)
{
    *reason = explain ? explain->error.message : "its thread could not be started";
    return explain ? explain->verdict : NULL;
}

void record_explain_free(record_explain *explain)
{
    record_explain_join(explain);
    if (explain)
        weir_verdict_free(explain->verdict);
    free(explain);
}
