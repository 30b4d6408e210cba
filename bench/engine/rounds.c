/* Each run is a separate process; see measure.h. */
#include "rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "measure.h"

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
    engine_case *grown = weir__array_grow(rounds->cases, rounds->num_cases, sizeof *grown);
    if (!grown)
        return NO_CASE;
    rounds->cases = grown;
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

/* ---- one run ------------------------------------------------------------------------------------------------ */

static int work(const void *argument, void *result)
{
    const engine_case *c = argument;
    return c->run(&c->job, result);
}

static int run_case(const engine_case *c, engine_sample *sample)
{
    engine_result result = { 0 };
    bench_usage usage;
    if (bench_measure(work, c, &result, sizeof result, &usage) != 0) {
        fprintf(stderr, "weir-bench: %s failed with %u stages, %u threads, queue %u, op %u µs\n", c->what,
                c->job.num_stages, c->job.threads, c->job.queue_items, c->op_us);
        return -1;
    }
    sample->ns_per_item = (double)(result.end_ns - result.start_ns) / (double)c->job.num_items;
    sample->cpu_ns_per_item = usage.cpu_s * 1e9 / (double)c->job.num_items;
    return 0;
}

/* ---- rounds ------------------------------------------------------------------------------------------------- */

static void show_progress(uint32_t round, uint32_t num_rounds, size_t done, size_t all)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (done == all)
        fputs("\r\033[K", stderr);
    else if (round == 0)
        fprintf(stderr, "\r\033[Kcalibrating: %zu of %zu", done + 1, all);
    else
        fprintf(stderr, "\r\033[Kround %u of %u: run %zu of %zu", round, num_rounds, done + 1, all);
    fflush(stderr);
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
        engine_sample sample;
        if (run_case(c, &sample) != 0)
            return -1;
        double factor = wanted_ns / (sample.ns_per_item * (double)c->job.num_items);
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
        show_progress(0, 0, i, rounds->num_cases);
        c->job.op_spins = (uint64_t)(c->op_us * rounds->spins_per_us + 0.5);
        c->samples = calloc(rounds->num_rounds, sizeof *c->samples);
        rc = c->samples ? find_num_items(rounds, c) : bench_no_memory();
    }
    show_progress(0, 0, 0, 0);
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

/* Alternates between forward and reverse order. */
static int run_round(const engine_rounds *rounds, engine_case *const *order, uint32_t round)
{
    size_t num_cases = rounds->num_cases;
    int rc = 0;
    for (size_t i = 0; i < num_cases && rc == 0; i++) {
        engine_case *c = order[round % 2 ? num_cases - 1 - i : i];
        show_progress(round + 1, rounds->num_rounds, i, num_cases);
        rc = run_case(c, &c->samples[round]);
    }
    show_progress(0, 0, 0, 0);
    return rc;
}

int rounds_run(engine_rounds *rounds)
{
    engine_case **order = calloc(rounds->num_cases, sizeof(engine_case *));
    if (!order)
        return bench_no_memory();
    for (size_t i = 0; i < rounds->num_cases; i++)
        order[i] = &rounds->cases[i];
    qsort(order, rounds->num_cases, sizeof(engine_case *), compare_cases);

    int rc = prepare(rounds);
    for (uint32_t round = 0; round < rounds->num_rounds && rc == 0; round++)
        rc = run_round(rounds, order, round);
    free(order);
    return rc;
}
