/* Each run is a separate process; see measure.h. */
#include "rounds.h"

#include <stdlib.h>

#include "contest.h"
#include "memory.h"

enum { FEWEST_ITEMS = 100, MOST_ITEMS = 20000000 };

/* ---- the cases ---------------------------------------------------------------------------------------------- */

static bool is_same(const engine_case *a, const engine_case *b)
{
    const engine_job *left = &a->job, *right = &b->job;
    return a->run == b->run && a->op_us == b->op_us && left->num_stages == right->num_stages &&
           left->threads == right->threads && left->queue_items == right->queue_items &&
           left->concurrency == right->concurrency && left->shape == right->shape &&
           left->in_order == right->in_order && left->no_statistics == right->no_statistics &&
           left->trace == right->trace;
}

size_t rounds_add(engine_rounds *rounds, const engine_case *wanted)
{
    for (size_t i = 0; i < rounds->num_cases; i++) {
        if (is_same(&rounds->cases[i], wanted))
            return i;
    }
    rounds->cases = memory_grow(rounds->cases, rounds->num_cases, sizeof *rounds->cases);
    rounds->cases[rounds->num_cases] = *wanted;
    return rounds->num_cases++;
}

void rounds_free(engine_rounds *rounds)
{
    for (size_t i = 0; i < rounds->num_cases; i++)
        free(rounds->cases[i].samples);
    free(rounds->cases);
    rounds->cases = NULL;
    rounds->num_cases = 0;
}

/* ---- rounds ------------------------------------------------------------------------------------------------- */

static int work(const void *argument, void *result)
{
    const engine_case *c = argument;
    engine_result times = { 0 };
    int rc = c->run(&c->job, &times);
    *(contest_result *)result = (contest_result){ .wall_s = 1e-9 * (double)(times.end_ns - times.start_ns) };
    return rc;
}

/* Runs the cases in this order so many times, each for its next samples. */
static int run_cases(engine_case *const *order, size_t num_cases, uint32_t num_rounds, const char *what)
{
    contest_entry *entries = memory_get(num_cases, sizeof *entries);
    contest all = { .name = what, .entries = entries, .num_entries = num_cases, .num_rounds = num_rounds };
    for (size_t i = 0; i < num_cases; i++)
        entries[i] = (contest_entry){ order[i]->what, work, order[i] };
    int rc = contest_run(&all);
    for (size_t i = 0; rc == 0 && i < num_rounds * num_cases; i++) {
        engine_case *c = order[i % num_cases];
        c->samples[i / num_cases] = (engine_sample){ 1e9 * all.results[i].wall_s / (double)c->job.num_items,
                                                     1e9 * all.results[i].cpu_s / (double)c->job.num_items };
    }
    free(all.results);
    free(entries);
    return rc;
}

static uint64_t scale(uint64_t num_items, double factor)
{
    double scaled = (double)num_items * factor;
    if (scaled < FEWEST_ITEMS)
        return FEWEST_ITEMS;
    return scaled < MOST_ITEMS ? (uint64_t)scaled : MOST_ITEMS;
}

/* The number of items that takes about run_ms, found by runs that grow until they are long enough to measure. */
static int find_num_items(const engine_rounds *rounds, engine_case *c)
{
    double wanted_ns = rounds->run_ms * 1e6;
    bool found = rounds->num_items > 0;
    c->job.num_items = found ? rounds->num_items : FEWEST_ITEMS;
    while (!found) {
        if (run_cases(&c, 1, 1, "calibrating") != 0)
            return -1;
        double factor = wanted_ns / (c->samples[0].ns_per_item * (double)c->job.num_items);
        found = factor < 4 || c->job.num_items == MOST_ITEMS;
        c->job.num_items = scale(c->job.num_items, factor < 20 ? factor : 20);
    }
    return 0;
}

static int prepare(engine_rounds *rounds)
{
    int rc = 0;
    for (size_t i = 0; i < rounds->num_cases && rc == 0; i++) {
        engine_case *c = &rounds->cases[i];
        c->job.op_spins = (uint64_t)(c->op_us * rounds->spins_per_us + 0.5);
        c->samples = memory_get(rounds->num_rounds, sizeof *c->samples);
        rc = find_num_items(rounds, c);
    }
    return rc;
}

/* By operation, then by queue, then in the order of addition: compared runs are close to each other. */
static int compare_cases(const void *a, const void *b)
{
    const engine_case *left = *(engine_case *const *)a, *right = *(engine_case *const *)b;
    if (left->op_us != right->op_us)
        return left->op_us < right->op_us ? -1 : 1;
    if (left->job.queue_items != right->job.queue_items)
        return left->job.queue_items < right->job.queue_items ? -1 : 1;
    return (left > right) - (left < right);
}

int rounds_run(engine_rounds *rounds)
{
    engine_case **order = memory_get(rounds->num_cases, sizeof(engine_case *));
    for (size_t i = 0; i < rounds->num_cases; i++)
        order[i] = &rounds->cases[i];
    qsort(order, rounds->num_cases, sizeof(engine_case *), compare_cases);

    int rc = prepare(rounds);
    if (rc == 0)
        rc = run_cases(order, rounds->num_cases, rounds->num_rounds, "engine");
    free(order);
    return rc;
}
