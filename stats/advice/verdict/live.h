/* A pipeline in progress, seen from outside: how its slots, threads and CPUs are used, and what another setting brings. */
#ifndef STATS_ADVICE_VERDICT_LIVE_H
#define STATS_ADVICE_VERDICT_LIVE_H

#include <stdatomic.h>

#include "stats/advice/verdict/verdict_view.h"

/* A look takes up to this many times time_ns, until the rate of items is known. */
enum { LIVE_LONGEST_LOOK = 4 };

/* Samples the pipeline for time_ns, or for up to LIVE_LONGEST_LOOK times as long if items come in bursts. `stops` (NULL = never)
   and the end of the run end this and other calls early. The texts of the view belong to the pipeline. WEIR_OK: free it with
   weir__verdict_view_free(). WEIR_ENOMEM; WEIR_EOF if the run ended meanwhile. */
int weir__live_view(weir_pipeline *pipeline, int64_t time_ns, const atomic_bool *stops, verdict_view *view);

/* The same, but a look in which the consumer takes nothing is repeated, each time twice as long, up to longest_ns.
   Where tasks report work, an item is on its way: then it is up to four times that. */
int weir__live_look(weir_pipeline *pipeline, int64_t time_ns, int64_t longest_ns, const atomic_bool *stops,
                    verdict_view *view);

/* WEIR_OK, or why the engine refused; then as much as possible is as it was before. */
int weir__live_apply(weir_pipeline *pipeline, const live_setting *setting);

/* The present setting of a stage (index of the view), or of the pool (node -1). False = the pipeline has ended. */
bool weir__live_setting(weir_pipeline *pipeline, int node, live_setting *setting);

/* WEIR_OK, or why the engine refused one of them; then as much as possible is as it was before. */
int weir__live_apply_all(weir_pipeline *pipeline, const live_setting *settings, uint32_t num);

/* What a trial found: throughput with the other setting / with the present one. */
typedef struct live_trial {
    double gain, low, high; /* 95 % interval; NAN = not known: too few items, or the run ended */
    double rate;            /* items per second with the present setting */
    double other_rate;
    double elapsed_s;
    uint32_t num_pairs;
    bool needs_memory; /* ended because it needed too much */
} live_trial;

/* What a trial counts: items that the consumer takes (node -1), or the work that the tasks of a node report. */
typedef struct live_unit {
    int node;
    double per_item;          /* units of an item, on the average */
    double unevenness;        /* of items: variance / mean² of the times that tasks take for them */
    const verdict_view *view; /* from which all this is known; it outlives the trial */
} live_unit;

/* The items, unless these are few in a slice and a stage reports the work within them. */
live_unit weir__live_unit(const verdict_view *view, int64_t slice_ns);

/*
 * Runs the present and the other settings in alternation, A B B A …, one slice each. Compares what is done in each
 * pair of slices, in the given unit. settle_ns passes after each change before items count: tasks that began before
 * it. What a queue loses during the slices of a setting does not count as flow. Of few items, that is not known: then
 * the interval reaches down to what all nodes can keep up. In the end the present settings are back. WEIR_OK, also if
 * the run ended (num_pairs then is small); or why the engine refused the change.
 */
int weir__live_try(weir_pipeline *pipeline, const live_set *set, int64_t settle_ns, live_unit unit,
                   const weir_live_options *options, const atomic_bool *stops, live_trial *trial);

/* "takes 4 to 12 s": how long such a trial is expected to take, if its first pairs of slices agree, and at most. */
void weir__live_forecast(char *text, size_t size, int64_t settle_ns, live_unit unit,
                         const weir_live_options *options);

/* A part of the event "trial" in which weir__live_try() notes settings and what they brought: part *at of *num, from 0.
   False: the text is none of them. */
bool weir__live_parse_trial(const char *text, uint32_t *at, uint32_t *num, live_setting *now, live_setting *other,
                            live_trial *trial);

/* Adds the trial to what helps, or was tried; as often as it was tried, the last result counts. */
void weir__live_keep_trial(full_verdict *verdict, const live_set *set, const live_trial *trial);

/* Twice the slots of the stage that limits were tried: adds the result to the sentence, and its confidence.
   has_second_limit: other stages are used nearly as much. A single stage that brings nothing then says nothing about
   what they bring together. */
void weir__live_conclude(full_verdict *verdict, const live_trial *trial, bool has_second_limit);

/* The stages of the set limit together: says so, with what twice the slots of each bring. `alone`: those of the stage that the
   verdict has named. */
void weir__live_conclude_set(full_verdict *verdict, const live_set *set, const live_trial *trial,
                             const live_trial *alone);

/* Brings more: certainly more, and as much as is worth a change. Brings less: certainly less than that. Otherwise the
   trial has not decided. */
bool weir__live_brings_more(const live_trial *trial);
bool weir__live_brings_nothing(const live_trial *trial);

/* How long a trial would have to be to decide, of which this one is a sample: its interval is as wide as 1 / sqrt(time). */
double weir__live_seconds_to_decide(const live_trial *trial);

/* A part of a set brings more, and nothing shows that it is less than the whole set brings. */
bool weir__live_brings_as_much(const live_trial *part, const live_trial *whole);

/* Stages whose slots are used nearly as much as those of the most used one, of which WEIR_WORTH_GAIN is not left; in the
   order of the pipeline. Only together they may be a limit that can be measured. Returns their number. */
uint32_t weir__live_candidates(const verdict_view *view, int nodes[LIVE_MOST_PARTS]);

/* Twice as many, but not above `most` (more stay as they are). */
uint32_t weir__live_twice(uint32_t count, uint32_t most);

/* Twice the slots of each node, up to most_slots, with as many more threads, up to most_threads of the pool. False = the
   pipeline has ended, or nothing would change. */
bool weir__live_double(weir_pipeline *pipeline, const int *nodes, uint32_t num, uint32_t most_slots,
                       uint32_t most_threads, live_set *set);

/* The index of the node of that name; -1 = there is none. */
int weir__live_find(const verdict_view *view, const char *name);

/* Until tasks that began before a change of these nodes (-1 = the pool) have ended, and the queues have filled or emptied. */
int64_t weir__live_settle_ns(const verdict_view *view, const int *nodes, uint32_t num, int64_t longest_ns);

/* A slice with few items says little: it is made longer, unless work is counted. */
int64_t weir__live_slice_ns(const verdict_view *view, int64_t slice_ns, int64_t longest_ns);

/* Memory of the process; 0 = not known. */
uint64_t weir__live_resident_bytes(void);

/*
 * The logarithm of the ratio of the sums of `count` pairs, and half the width of its 95 % interval; INFINITY for one
 * pair. This is the ratio estimator (Cochran, Sampling Techniques, 1977, chapter 6): what is delivered in all the
 * time with one setting over what is with the other one. A mean of ratios would take a setting whose rate is uneven
 * for a slow one.
 */
double weir__ratio_interval(const double *before, const double *after, uint32_t count, double *half_width);

/*
 * The pairs of slices of a trial. A trial that ends as soon as its interval is narrow ends where the deviation of its
 * pairs happens to be small. A usual interval would then contain the truth in only 90 % of the trials (Chow and
 * Robbins, Annals of Mathematical Statistics 36, 1965). So it counts as narrow only with the largest deviation so
 * far, and its interval is that wide.
 */
enum { LIVE_MOST_PAIRS = 64, LIVE_LEAST_PAIRS = 3 };
typedef struct live_pairs {
    double rates[2][LIVE_MOST_PAIRS]; /* with the present setting, and with the other one */
    uint32_t num;
    double mean, half;        /* the logarithm of the ratio, and half of its interval */
    double largest_deviation; /* of the pairs so far */
} live_pairs;

/* Adds a pair; not more than LIVE_MOST_PAIRS. Returns half of the interval that counts if the trial ends because it is narrow. */
double weir__live_pairs_add(live_pairs *pairs, double before, double after);

/* Half of the 95 % interval of such a logarithm, as far as the lengths of tasks alone explain it. The number of tasks
   that end in a time has the variance unevenness × number (Cox, Renewal Theory, 1962). Tasks that wait for each other
   are more even than that. */
double weir__renewal_interval(double unevenness, double num_before, double num_after);

/* The mean of `count` values and half the width of its 95 % interval by Student's t; INFINITY for one value. */
double weir__mean_interval(const double *values, uint32_t count, double *half_width);

#endif
