#include "tools/record/record_explain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "tools/cli/memory.h"

struct record_explain {
    weir_pipeline *pipeline;
    record_rounds *rounds;
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

/* An experiment compares settings, for 3 s each: if ten results take longer than this, most of them would bring none. */
#define LONGEST_WAIT_NS (60 * WEIR_SECOND)

/* Before that, the pipeline fills: ten results, or where these are slow, as long again as the first one took. */
static bool is_filled(uint64_t num_results, int64_t elapsed_ns, int64_t *first_ns)
{
    const uint64_t enough = 10;
    if (num_results > 0 && !*first_ns)
        *first_ns = elapsed_ns;
    return num_results >= enough || (num_results > 1 && elapsed_ns >= WEIR_SECOND && elapsed_ns >= 2 * *first_ns);
}

/* Until results flow. WEIR_OK, or there is too little to measure, and *error is filled. */
static int wait_for_flow(weir_pipeline *pipeline, weir_error *error)
{
    int64_t start_ns = weir_clock_ns(), first_ns = 0;
    for (;;) {
        weir_account account = { 0 };
        weir_snapshot *snapshot;
        if (weir_pipeline_account(pipeline, NULL, &account) != WEIR_OK ||
            is_filled(account.passed_on, weir_clock_ns() - start_ns, &first_ns))
            return WEIR_OK;
        bool is_running = weir_pipeline_snapshot(pipeline, &snapshot) == WEIR_OK;
        if (is_running) {
            is_running = snapshot->state[0] == 'r'; /* "running" */
            weir_snapshot_free(snapshot);
        }
        if (!is_running)
            return weir_error_set(error, WEIR_EOF, 0, "the run came to its end before anything was measured");
        if (weir_clock_ns() - start_ns > LONGEST_WAIT_NS)
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "only %llu results in %lld s are too few for an experiment",
                                  (unsigned long long)account.passed_on, (long long)(LONGEST_WAIT_NS / WEIR_SECOND));
        nanosleep(&(struct timespec){ .tv_nsec = 20 * WEIR_MILLISECOND }, NULL);
    }
}

static void *explain_run(void *argument)
{
    record_explain *own = argument;
    weir_live_options options = { .progress = log_line, .command = "weir record DIR" };
    if (wait_for_flow(own->pipeline, &own->error) == WEIR_OK)
        weir_explain_live(own->pipeline, &options, &own->verdict, &own->error);
    atomic_store(&own->is_done, true);
    atomic_store(&own->rounds->is_over, true);
    return NULL;
}

record_explain *record_explain_start(weir_pipeline *pipeline, record_rounds *rounds)
{
    record_explain *own = memory_get(1, sizeof *own);
    own->pipeline = pipeline;
    own->rounds = rounds;
    if (pthread_create(&own->thread, NULL, explain_run, own) == 0)
        return own;
    weir_log(WEIR_LOG_ERROR, "--explain: cannot start its thread");
    atomic_store(&rounds->is_over, true);
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

bool record_explain_had_too_little(const record_explain *explain)
{
    return explain && (explain->error.status == WEIR_EOF || explain->error.status == WEIR_EUNSUPPORTED);
}

void record_explain_free(record_explain *explain)
{
    record_explain_join(explain);
    if (explain)
        weir_verdict_free(explain->verdict);
    free(explain);
}
