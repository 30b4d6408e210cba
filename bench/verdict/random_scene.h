/*
 * Pipelines made by chance, for `weir-bench verdict --random`: nobody made them with the rules of the verdict in mind.
 * Pipeline n of a seed is the same on every machine with as many CPUs. Its truth is computed (scene_bounds.h).
 *
 * How likely each property is:
 *   stages           one 40 %, two 35 %, three 25 %; with two sources at most two
 *   items per second of the limit: 25 % from 0.5 to 30, else 30 to 2,000, evenly on a logarithmic scale
 *   slots            1 to 8, half of the stages at most 2
 *   a stage          waits 45 %, computes 25 %, does both 8 %, uses a resource 22 %: a disk with one head, a lock that is
 *                    held while computing, a semaphore of 2 to 4; half of these also wait by themselves
 *   lengths          of a stage: exponential 25 %, a tail (each 20th to 100th task, 5 to 30 times as long) 8 %
 *   bounds           of each part: 1 to 12 times that of another one, evenly on a logarithmic scale
 *   source, consumer has work 55 % each (half of them compute); the consumer marks steps 15 %
 *   two sources      12 %, merged by arrival; equal in half of them
 *   joint limits     30 %: another stage, all stages, the consumer or the source gets the bound of the slots that limit
 *   threads          enough 75 %, one for each slot 10 %, fewer 15 %
 *   other programs   25 %: 1 to 4 of them compute
 *   failing tasks    15 %: a share of 5 to 90 % of those of a stage, 0.05 to 0.3 or 1 to 3 times as long as the others
 *   change           10 %: the work of a stage grows from the first second on, or is another one every 2 to 4 s
 *   bursts           8 %: of 4 to 24 items, of the source or the consumer
 *   a backlog        5 %: the source has made items for 3 to 6 s before its own pace begins
 * A pipeline is drawn again if a bound is neither equal to the limit nor 1.25 times away, or more than three answers
 * would be right. It is also drawn again if a wait is shorter than 0.5 ms, or a task longer than 4 s.
 *
 * Not drawn: output in input order, epochs, routes, stages with threads of their own, tasks that are pending.
 */
#ifndef BENCH_VERDICT_RANDOM_SCENE_H
#define BENCH_VERDICT_RANDOM_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/verdict/scene.h"
#include "bench/verdict/scene_bounds.h"

/* scene.name and scene.truth point into it: it must not be moved. */
typedef struct random_scene {
    scene scene;
    scene_truth truth;
    char name[32], line[400]; /* "random 7"; what it is, in words */
    uint32_t num_redrawn;     /* before it: draws that could not be judged */
} random_scene;

/* Where more answers than these are right, one of them says little. */
enum { RANDOM_MOST_ANSWERS = 3 };

/* Of a truth, as in scene.truth. */
int random_scene_count_answers(const char *text);

/* Any thread. */
void random_scene_draw(uint64_t seed, uint64_t number, uint32_t cpus, random_scene *into);

#endif
