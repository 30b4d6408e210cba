/*
 * The verdict: what limits a run, why, and what would help. docs/verdict.md has the model, its formulas and its limits.
 *
 *     weir_verdict_read(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &verdict, &error);
 *     puts(verdict->sentence);
 *     weir_verdict_free(verdict);
 */
#ifndef WEIR_VERDICT_H
#define WEIR_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/limit.h>
#include <weir/pipeline.h>
#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_verdict_kind {
    WEIR_VERDICT_UNKNOWN,  /* the data does not show the limit */
    WEIR_VERDICT_NONE,     /* the pipeline waits for a training loop, as it should */
    WEIR_VERDICT_CONSUMER, /* the pipeline waits for the consumer */
    WEIR_VERDICT_SOURCE,   /* a source makes items too slowly */
    WEIR_VERDICT_SLOTS,    /* the slots of a stage compute nearly all the time */
    /* the slots of a stage are busy, but wait for something outside weir: a disk, a server, a lock, a limit on requests.
       The figures of a recording do not tell whether more slots would get more of it: weir_explain_live() measures that */
    WEIR_VERDICT_OUTSIDE,
    WEIR_VERDICT_THREADS,  /* a pool has too few threads; `name` is the stage or source that takes most of them */
    WEIR_VERDICT_CPUS,     /* the CPUs, or the quota, are used up: by this process, its children, or by others */
    WEIR_VERDICT_ORDER,    /* results wait for an earlier one: output in input order, or the end of an epoch */
    WEIR_VERDICT_QUEUE,    /* a queue is too small, in items or bytes, for the bursts in which items come and go */
    WEIR_VERDICT_FAILURES, /* most of the time of the tasks of a stage goes into items that fail */
    WEIR_NUM_VERDICTS
} weir_verdict_kind;

/* What a change must bring to be worth it. Two runs of one pipeline differ by 5 % each (weir-bench verdict allows as
   much). */
#define WEIR_WORTH_GAIN 1.10

/* From which confidence on a verdict is called clear or likely. A clear verdict is right in four of five cases. A likely
   one is more often right than wrong. (A verdict that names two limits is right about the first one in half of the cases
   at most.) */
#define WEIR_VERDICT_CLEAR  0.8
#define WEIR_VERDICT_LIKELY 0.55

/* A change that would help. */
typedef struct weir_verdict_advice {
    const char *change;  /* "decode with 4 slots instead of 2" */
    const char *options; /* for a command line: "--concurrency 4"; "" = not an option of weir record */
    const char *code;    /* C: ".concurrency = 4"; "" = no setting */
    double gain;         /* predicted throughput / the present one; NAN = not predicted */
    /* The relative error of a prediction: about nine of ten are within gain × (1 ± error) if what they assume holds. It has the
       error of the recording, and that of the model (docs/whatif.md compares it with measurements). NAN = not predicted. */
    double error;
    /* The range of the gain, also if what it assumes does not hold. Without a gain, high is an upper bound; NAN = not known. */
    double low, high;
    double items_per_s;      /* predicted */
    double more_cpus;        /* additional CPUs in use; NAN = not known */
    double more_bytes;       /* the same for memory */
    const char *next;        /* the next limit; "" = not known */
    const char *assumes;     /* what the prediction assumes, which no recording tells; "" = nothing in particular */
    const char *stage;       /* whose slots or threads are changed; "" = none, or the threads of the pool */
    uint32_t slots, threads; /* the changed settings; 0 = as they are */
    bool is_measured;        /* in the run, not predicted: low and high are its 95 % interval */
    bool changes_job;        /* the program would do something else: fewer frames, less accurate decoding */
} weir_verdict_advice;

/* Made by the library; it may grow at its end. Texts belong to it. */
typedef struct weir_verdict {
    weir_verdict_kind kind;
    const char *name;     /* of the stage, source or queue; "" = none */
    const char *sentence; /* the limit, in plain words */
    double confidence;    /* 0 to 1 */
    /* A second limit (UNKNOWN = none). Either it is about as likely, because the data cannot distinguish it from the
       first. Or it was the limit at another time of the run (changed_unix_ns). */
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
    /* For a job of several processes (world 0 or 1 = the run is not part of one). The verdict covers num_ranks of its
       ranks. items_per_s is the sum over these, and `rank` is the last of them. */
    int32_t rank;
    uint32_t world, num_ranks;
    /* The limit changed here, from one of `kind` and `other_kind` to the other; `kind` is that of the longer time, and
       the advice is for it. 0 = it did not change */
    int64_t changed_unix_ns;
    /* The slots of these stages are the limit together ("decode and scale"; more of one alone brings nothing), and one
       advice changes all of them; "" = `name` alone is the limit. Only measured: see weir_explain_live(). */
    const char *together;
} weir_verdict;

/*
 * The verdict on the records that match: a run, a phase, a range of time or steps, one rank or several runs of the same
 * pipeline. The filter's name, order and limit are ignored. If nothing was recorded, the kind is UNKNOWN. On success
 * free it with weir_verdict_free(). WEIR_EINVAL, WEIR_ENOMEM, and the errors of weir/query.h.
 */
WEIR_API int weir_verdict_read(weir_recording *recording, const weir_filter *filter, weir_verdict **verdict,
                               weir_error *error);

/* The same with advice. This takes longer, because each change is simulated. */
WEIR_API int weir_verdict_explain(weir_recording *recording, const weir_filter *filter, weir_verdict **verdict,
                                  weir_error *error);

/* A zeroed struct selects the defaults. */
typedef struct weir_live_options {
    int64_t slice_ns;   /* how long one setting runs before the other one has its turn (0 = 0.3 s) */
    int64_t setting_ns; /* at most this long for each of the two settings of a trial (0 = 3 s) */
    double precision;   /* a trial ends when the 95 % interval of its gain is this narrow to either side (0 = 0.04) */
    /* A trial ends, and its setting is undone, when the memory of the process has grown by more than this. (0 = a
       quarter of what is free) */
    uint64_t memory_bytes;
    bool no_speedups; /* do not measure what a faster source, stage or consumer would bring */
    /* Called with a line for each trial, on the calling thread (NULL = no call). */
    void (*progress)(void *self, const char *line);
    void *progress_self;
    const char *command; /* the command line: advice has options for weir record only (NULL = another program) */
} weir_live_options;

/* For the inline function below. */
WEIR_API int weir_explain_live_sized(weir_pipeline *pipeline, const weir_live_options *options, size_t options_size,
                                     weir_verdict **verdict, weir_error *error);

/*
 * Finds by experiment what limits a pipeline that is running. The use of slots, threads and CPUs, sampled for a second,
 * names the candidate. Then one setting after the other is changed and changed back, in alternation with the present one
 * (A B B A ...). Meanwhile the items that the consumer takes are counted. The first setting is twice the slots of the
 * candidate, with as many more threads. If that brings nothing, the next one is twice the slots of all stages that are
 * used nearly as much, together. Then one thread less is tried. At the end all settings are as before. Advice with
 * is_measured has the results. For a clear result the pipeline must not be at its start or end. The call takes a few
 * seconds, and up to a minute if items are slow. For up to half of this time, the pipeline runs with other settings, whose
 * slots need memory.
 *
 * options may be NULL. Call it on a thread of your own, not on the consumer's: the consumer must go on. One call at a time for
 * a pipeline, and no tuner. WEIR_OK: *verdict is set; free it with weir_verdict_free(). WEIR_EINVAL; WEIR_ENOMEM.
 * WEIR_EUNSUPPORTED if the consumer takes no item for as long as a trial lasts (two settings). Where tasks report
 * work, that is four times as long. WEIR_EOF if the run ends before anything is known.
 */
static inline int weir_explain_live(weir_pipeline *pipeline, const weir_live_options *options, weir_verdict **verdict,
                                    weir_error *error)
{
    return weir_explain_live_sized(pipeline, options, sizeof *options, verdict, error);
}

/* NULL is fine. */
WEIR_API void weir_verdict_free(weir_verdict *verdict);

/* "slots", "threads", … for programs. */
WEIR_API const char *weir_verdict_word(weir_verdict_kind kind);

/* "clear", "likely" or "unsure". */
WEIR_API const char *weir_verdict_certainty(const weir_verdict *verdict);

/* For weir_verdict_write(); or-ed. */
enum {
    WEIR_VERDICT_ALL = 1,  /* any number of lines: all evidence and advice, and the limit after each change */
    WEIR_VERDICT_CODE = 2, /* the settings in C, too */
};

/* The sentence, the evidence and the advice, as text of at most 20 lines of 80 characters, or as much in lines of
   `width` characters; 0 or more than 80 = 80. */
WEIR_API void weir_verdict_write(const weir_verdict *verdict, unsigned what, size_t width, FILE *out);

/* One line of the summary: "Limit: …", or nothing if nothing was delivered. See weir/summary.h. */
WEIR_API int weir_verdict_write_limit(FILE *out, weir_recording *recording, const weir_filter *filter,
                                      weir_error *error);

/* For the options of exports: they then show what the verdict names as the limit. It lives as long as the program. */
WEIR_API const weir_limit_rules *weir_verdict_limit_rules(void);

#ifdef __cplusplus
}
#endif

#endif
