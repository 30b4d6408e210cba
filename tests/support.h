/*
 * Shared by the tests of the engine: a time limit, and gates and counters to wait on (no test sleeps). There are also
 * items whose releases are counted, small operations, and an observer that records its calls.
 *
 * cmocka's assertions work on the main thread only; code on other threads uses REQUIRE.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/engine.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- the frame of a test ------------------------------------------------------------------------------------ */

/* a test that takes longer is aborted, and its name is printed; sanitizer builds get four times as long */
enum { TEST_SECONDS = 240 };

/* For TEST_MAIN(): each test has a time limit, and its log does not go to stderr. */
int test_setup(void **state);
int test_teardown(void **state);

/* The number of lines logged in this test at this level, and the last one of them. */
uint64_t logged_lines(weir_log_level level);
void last_logged_line(weir_log_level level, char *line, size_t size);

/* How far times of steps may be from weir_clock_ns(), each: see engine/state/step_clock.h. */
enum { CLOCKS_APART_NS = 1000 };

/* For any thread: prints the failed condition, and aborts. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __FILE__, __LINE__))

_Noreturn void require_failed(const char *condition, const char *file, int line);

pthread_t thread_start(void *(*main)(void *), void *argument);
void thread_join(pthread_t thread);

/* ---- waiting ------------------------------------------------------------------------------------------------ */

/* Threads wait at a gate until it is open or has a permit for them. Initialise it with GATE or gate_init(); all-
   zero is not valid. */
typedef struct test_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    uint64_t permits;
    uint64_t waiting; /* threads that wait at it now */
    uint64_t passed;
} test_gate;

#define GATE \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

void gate_init(test_gate *gate);
void gate_pass(test_gate *gate);                            /* waits */
void gate_let(test_gate *gate, uint64_t permits);           /* lets this many more threads pass */
void gate_open(test_gate *gate);                            /* lets all pass from now on */
void gate_shut(test_gate *gate);                            /* closes the gate and removes the permits */
void gate_await_waiting(test_gate *gate, uint64_t waiting); /* waits until this many threads wait at it */
uint64_t gate_waiting(test_gate *gate);

/* A counter that threads can wait for. */
typedef struct test_counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t value, highest;
} test_counter;

#define COUNTER \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

void counter_init(test_counter *counter);
void counter_add(test_counter *counter, int64_t change);
int64_t counter_value(test_counter *counter);
int64_t counter_highest(test_counter *counter);
void counter_await(test_counter *counter, int64_t at_least);

/* ---- items -------------------------------------------------------------------------------------------------- */

/* The data of a test item. It lives until the ledger is closed, so that a second release is detected. */
typedef struct test_payload {
    uint64_t value;
    struct test_ledger *ledger;
    struct test_payload *next;
    atomic_bool released;
} test_payload;

/* All payloads of a test. */
typedef struct test_ledger {
    pthread_mutex_t lock;
    test_payload *all;
    uint64_t made;
    test_counter released;
} test_ledger;

#define LEDGER \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .released = COUNTER \
    }

void ledger_init(test_ledger *ledger);

/* Puts a new payload into *item; other fields are unchanged. */
void ledger_fill(test_ledger *ledger, weir_item *item, uint64_t value, size_t size_bytes);

/* Asserts that every payload was released, and frees them. Main thread only. */
void ledger_close(test_ledger *ledger);

uint64_t item_value(const weir_item *item);

/* ---- operations --------------------------------------------------------------------------------------------- */

/* A source of the numbers 0, 1, 2 … Its config is used in place and must outlive the pipeline. */
typedef struct test_numbers {
    test_ledger *ledger;
    uint64_t count;
    size_t size_bytes;  /* of each item */
    bool labelled;      /* with "item-%llu" */
    test_gate *gate;    /* passed before each item (NULL = none) */
    int end_status;     /* result after the last item (0 = WEIR_EOF) */
    test_counter *made; /* (NULL = not counted) */
} test_numbers;

extern const weir_op numbers_op;

/* Passes its input on. */
extern const weir_op pass_op;

/* The function of an operation: runs until it is asked to stop, and fails with WEIR_EIO. */
int run_until_asked(void *worker, weir_item *in, weir_item *out, weir_task *task);

/* Waits at the gate in its config, then passes its input on. */
extern const weir_op gated_op;

/* Pending tasks, to be completed by the test. */
typedef struct test_pending {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct test_pending_task {
        weir_task *task;
        weir_item *in;
    } tasks[1024]; /* a ring */
    uint64_t num_added, num_taken;
    pthread_t thread;  /* of pending_start() */
    const char *label; /* label for the results (NULL = inherited) */
} test_pending;

#define PENDING \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

/* Puts each task into its config, a test_pending, and returns WEIR_PENDING. */
extern const weir_op pending_op;

void pending_init(test_pending *pending);
void pending_add(test_pending *pending, weir_task *task, weir_item *in);

/* Waits for the oldest task; *in (may be NULL) is its input. NULL = pending_end() was called and none are left. */
weir_task *pending_take(test_pending *pending, weir_item **in);
void pending_await(test_pending *pending, uint64_t num_waiting);

/* Starts a thread that completes the tasks, oldest first, by passing on their input. */
void pending_start(test_pending *pending);
void pending_end(test_pending *pending);

/* Adds the one source that most tests use. */
weir_builder *builder_with(const test_numbers *numbers);

/* Builds the pipeline, which must succeed. */
weir_pipeline *build(weir_builder *builder, const weir_pipeline_options *options);

/* Takes and releases all results; returns their number. *status is the last result of weir_pipeline_next(). */
uint64_t drain(weir_pipeline *pipeline, int *status);

/* The same when the end must be WEIR_EOF. */
uint64_t drain_all(weir_pipeline *pipeline);

/* Waits until no task is left, all results are delivered or dropped, and every item is accounted for. */
void await_work_end(weir_pipeline *pipeline);

/* The value of the next result, which must exist. */
uint64_t next_value(weir_pipeline *pipeline);

/* The stage of this name; zeros = there is none. */
weir_stage_snapshot stage_snapshot(weir_pipeline *pipeline, const char *stage);

/* Waits until this many slots of the stage are in that state, a field of weir_stage_snapshot. */
#define AWAIT_SLOTS(pipeline, stage, state, expected) \
    while (stage_snapshot(pipeline, stage).state != (expected)) \
    sched_yield()

weir_account account_of(weir_pipeline *pipeline, const char *stage);

/* Asserts that the account is balanced. */
void assert_account_is_exact(const weir_account *account);

/* ---- the observer that records ------------------------------------------------------------------------------- */

typedef struct kept_lap {
    struct kept_lap *next;
    weir_lap lap;
} kept_lap;

typedef struct stage_record {
    weir_subject_lap lap; /* name and run_times are NULL */
    char name[128];
    uint64_t lap_number;
    uint64_t histogram_count;
    char phase[64];
} stage_record;

typedef struct queue_record {
    weir_subject_lap lap; /* name and histograms are NULL */
    char name[128];
    uint64_t lap_number;
    uint64_t put_count, get_count, latency_count;
    char phase[64];
} queue_record;

typedef struct failure_record {
    weir_failure failure; /* its texts are below */
    char name[128], label[256], message[512];
} failure_record;

typedef struct event_record {
    weir_event event;
    char name[128], category[128], detail[512];
} event_record;

/* Records all calls, and checks the order of calls that observer.h describes. Names are copied. */
typedef struct test_recorder {
    weir_observer observer; /* for weir_pipeline_options */
    /* waited at in each call of failure (NULL = none); set it before building the pipeline */
    test_gate *failure_gate;
    bool may_lose_laps;                                             /* there is no memory for them */
    void (*on_lap)(struct test_recorder *recorder, void *argument); /* called after each lap, without a lock */
    void *on_lap_argument;

    pthread_mutex_t lock;
    atomic_bool inside; /* inside a call; calls never overlap */
    uint32_t num_stages;
    char (*names)[2][128]; /* of stages and queues */
    weir_stage_info *infos;
    weir_run_info run;
    bool started, ended;
    weir_run_end end;
    kept_lap *kept_laps;
    stage_record *stages;
    queue_record *queues;
    failure_record *failures;
    event_record *events;
    uint64_t num_stage_records, num_queue_records, num_failures, num_events;
    char (*lap_names)[128]; /* in the order of the first lap's calls */
    uint64_t num_lap_names, calls_in_lap;
    test_counter laps;              /* complete ones */
    test_counter failures_reported; /* counted before waiting at failure_gate */
    test_counter ends;
} test_recorder;

void recorder_init(test_recorder *recorder);
void recorder_free(test_recorder *recorder);

/* After weir_pipeline_free(): the sums of all laps of a stage or queue, by its full name. */
weir_subject_lap recorder_stage_total(test_recorder *recorder, const char *name);
weir_subject_lap recorder_queue_total(test_recorder *recorder, const char *name);

/* The number of failures that were not reported, according to the events "dropped". */
uint64_t recorder_dropped_failures(test_recorder *recorder);

/* The number of events of this name. */
uint64_t recorder_events_named(test_recorder *recorder, const char *name);

#endif
