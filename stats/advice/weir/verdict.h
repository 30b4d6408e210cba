/*
 * The verdict: what limits a run, why, and what would help. docs/verdict.md has the model, its formulas and its limits.
 *
 *     weir_verdict_read(reader, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &verdict, &error);
 *     puts(verdict->sentence);
 *     weir_verdict_free(verdict);
 */
#ifndef WEIR_VERDICT_H
#define WEIR_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/export.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_verdict_kind {
    WEIR_VERDICT_UNKNOWN,     /* the data does not show the limit */
    WEIR_VERDICT_NONE,        /* the pipeline waits for a training loop, as it should */
    WEIR_VERDICT_CONSUMER,    /* the pipeline waits for the consumer */
    WEIR_VERDICT_SOURCE,      /* a source makes items too slowly */
    WEIR_VERDICT_SLOTS,       /* the slots of a stage are always busy */
    WEIR_VERDICT_THREADS,     /* a pool has too few threads; `name` is the stage or source that takes most of them */
    WEIR_VERDICT_CPUS,        /* the process uses all CPUs */
    WEIR_VERDICT_OTHERS,      /* other programs use the CPUs */
    WEIR_VERDICT_THROTTLED,   /* the CPU quota of the control group is used up */
    WEIR_VERDICT_STOLEN,      /* other virtual machines use the CPUs */
    WEIR_VERDICT_STORAGE,     /* tasks of a stage wait for a disk */
    WEIR_VERDICT_NETWORK,     /* tasks of a stage wait for the network */
    WEIR_VERDICT_LOCK,        /* tasks of a stage wait for each other */
    WEIR_VERDICT_OWN_THREADS, /* a stage computes in separate threads, such as those of a codec */
    WEIR_VERDICT_MEMORY,      /* the machine lacks memory */
    WEIR_VERDICT_BYTES,       /* the byte bound of a queue */
    WEIR_VERDICT_ORDER,       /* results wait for an earlier one (output in input order) */
    WEIR_VERDICT_BRANCH,      /* one branch of a route */
    WEIR_VERDICT_INPUT,       /* one input of a merge */
    WEIR_VERDICT_BURSTS,      /* items come in bursts, and a queue is too small for them */
    WEIR_VERDICT_GIANTS,      /* a few items take most of a stage's time */
    WEIR_VERDICT_EPOCHS,      /* epochs are so short that slots often wait for the last items of one */
    WEIR_NUM_VERDICTS
} weir_verdict_kind;

/* A change that would help. */
typedef struct weir_verdict_advice {
    const char *change;  /* "decode with 4 slots instead of 2" */
    const char *options; /* for a command line: "--concurrency 4"; "" = not an option of weir record */
    const char *code;    /* C: ".concurrency = 4"; "" = no setting */
    double gain;         /* predicted throughput / the present one; NAN = not predicted */
    double low, high;    /* its range; without a gain, high is an upper bound, and NAN = not known */
    double items_per_s;  /* predicted */
    double more_cpus;    /* additional CPUs in use; NAN = not known */
    double more_bytes;   /* the same for memory */
    const char *next;    /* the next limit; "" = not known */
    const char *assumes; /* what the prediction assumes; "" = nothing in particular */
    uint64_t reserved[3];
} weir_verdict_advice;

/* Made by the library; it may grow at its end. Texts belong to it. */
typedef struct weir_verdict {
    weir_verdict_kind kind;
    const char *name;     /* of the stage, source or queue; "" = none */
    const char *sentence; /* the limit, in plain words */
    double confidence;    /* 0 to 1 */
    /* A second limit that is about as likely, because the data cannot distinguish it from the first, or that was the
       limit in another part of the run (changed_unix_ns); UNKNOWN = none. */
    weir_verdict_kind other_kind;
    const char *other_name, *other_sentence;
    const char *missing; /* the recording that would decide, if the data cannot; "" = none */
    const char *const *evidence;
    size_t num_evidence;
    const weir_verdict_advice *advice; /* largest gain first */
    size_t num_advice;

    /* Only the steady part counts, without the start-up and the tail. */
    double items_per_s; /* delivered to the consumer; NAN = not known */
    int64_t start_unix_ns, end_unix_ns;
    int64_t num_laps, num_cut_laps; /* laps that count; laps that do not */
    /* The limit changed here, from one of `kind` and `other_kind` to the other; `kind` is that of the longer part, and
       the advice is for it. 0 = it did not change */
    int64_t changed_unix_ns;
} weir_verdict;

/*
 * The verdict on the records that match: a run, a phase, a range of time or steps, one rank or several runs of the same
 * pipeline. The filter's name, order and limit are ignored. If nothing was recorded, the kind is UNKNOWN. On success
 * free it with weir_verdict_free(). WEIR_EINVAL, WEIR_ENOMEM, and the errors of weir/query.h.
 */
WEIR_API int weir_verdict_read(weir_reader *reader, const weir_filter *filter, weir_verdict **verdict,
                               weir_error *error);

/* The same with advice. This takes longer, because each change is simulated. */
WEIR_API int weir_verdict_explain(weir_reader *reader, const weir_filter *filter, weir_verdict **verdict,
                                  weir_error *error);

/*
 * The verdict on totals by name from the caller; all of them count. The connections of the nodes are not known, so the
 * nodes are treated as a chain in the order of their numbers. NULL = out of memory, or totals is NULL.
 */
WEIR_API weir_verdict *weir_verdict_of_totals(const weir_totals *totals);

/* NULL is fine. */
WEIR_API void weir_verdict_free(weir_verdict *verdict);

/* "slots", "threads", … for programs. */
WEIR_API const char *weir_verdict_word(weir_verdict_kind kind);

/* "clear", "likely" or "unsure". */
WEIR_API const char *weir_verdict_certainty(const weir_verdict *verdict);

/* The sentence, the evidence and the advice, as text of several lines. */
WEIR_API void weir_verdict_write(const weir_verdict *verdict, FILE *out);

/* One line of the summary: "Limit: …", or nothing if nothing was delivered. See weir/summary.h. */
WEIR_API int weir_verdict_write_limit(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error);

/* The queue from which the consumer takes items; NULL = none. */
WEIR_API const weir_total *weir_totals_sink_queue(const weir_totals *totals);

#ifdef __cplusplus
}
#endif

#endif
