/*
 * One scene of `weir-bench verdict`: it is run, the verdict is made from its recording or while it runs, and judged by
 * the scene's truth.
 */
#ifndef BENCH_VERDICT_SCENE_TRIAL_H
#define BENCH_VERDICT_SCENE_TRIAL_H

#include <stdbool.h>

#include "bench/verdict/scene_bounds.h"

typedef enum answer {
    ANSWER_RIGHT,
    ANSWER_UNSURE,
    ANSWER_WRONG,
    ANSWER_SURELY_WRONG,
    ANSWER_LOADED, /* it says CPUs, and other programs used them: the scene was not what it was built to be */
    NUM_ANSWERS
} answer;

extern const char *const answer_words[NUM_ANSWERS];

enum { MOST_PREDICTIONS = 2 };

/* A prediction that was replayed: the gain that was said and its range, and what a run with that setting brought. */
typedef struct replay {
    char change[80];
    double gain, low, high, measured;
    bool assumes; /* something that no recording tells */
} replay;

/* A gain that the verdict has measured, and its 95 % interval; high 0 = none. */
typedef struct said_gain {
    double gain, low, high;
} said_gain;

/* The result of one scene; without pointers, because it comes from another process. */
typedef struct scene_result {
    bool is_known; /* there is a verdict */
    answer answer;
    char verdict[400];                            /* in short; or why there is none */
    int num_predictions, num_contained, num_near; /* checked; the range contains it; within 15 % */
    replay replays[MOST_PREDICTIONS];
    char prediction[160];
    double others_cpus;
    cpu_delay delay;              /* live: of the threads of the run */
    char stage[64];               /* the stage or source that it names; "" = none */
    said_gain doubling, together; /* live: what was measured of twice the slots */
    char limit[128], other[128];  /* "kind:stage", as in scene.truth; other "" = none */
    bool is_decided, is_clear;    /* its confidence is at least WEIR_VERDICT_LIKELY, WEIR_VERDICT_CLEAR */
    double items_per_s;           /* as the verdict says */
    bool names_several;           /* it says that several stages are the limit together */
} scene_result;

typedef struct scene_trial {
    const scene *of;
    double run_s; /* length of a recorded run */
    bool is_live, verbose;
    double live_s;     /* live: the source ends after so long (0 = a minute) */
    double start_up_s; /* live: of slow tasks, in addition to that of threads */
} scene_trial;

/* For bench_measure(): *trial is a scene_trial, *result a zeroed scene_result. Returns 0, or -1 after an error message on
   stderr if the scene could not be run. */
int scene_trial_run(const void *trial, void *result);

/* By the right answers, as in scene.truth. A right answer with a wrong gain is a wrong one. */
answer scene_trial_judge(const char *truth, const scene_result *result, bool are_gains_right);

/* A wrong answer about a scene that computes is not judged if other programs used its CPUs. */
void scene_trial_excuse_load(const scene *of, scene_result *result);

#endif
