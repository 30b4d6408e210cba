/*
 * Trace files say what each slot, queue, item, span and counter did, and when. They are in Chrome's format, which the
 * Perfetto UI opens. docs/trace-files.md describes the tracks and how to read them.
 *
 *     weir_trace_open("trace.json.gz", NULL, &file, &error);
 *     weir_observer observer = weir_trace_observer(file);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_trace_close(file, &error);
 *
 * A file is written about once a second, and only grows. So the file of a killed program can be opened: it shows what
 * happened, and what was open, up to the last second. Only its closing bracket is missing, which viewers do not need.
 */
#ifndef WEIR_TRACE_FILE_H
#define WEIR_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/observer.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_trace_file weir_trace_file;

/* Which steps (weir_pipeline_mark_step()) are written: after skip_first steps, cycles of wait + warmup + active steps;
   the `active` steps of each cycle are written to a separate file. */
typedef struct weir_trace_schedule {
    uint64_t skip_first, wait, warmup;
    uint64_t active; /* 0 = no schedule: everything is written */
    uint64_t repeat; /* number of cycles (0 = any) */
} weir_trace_schedule;

/* Setting this struct to all-zero is equivalent to defaults. Strings are copied. */
typedef struct weir_trace_options {
    const char *run;     /* {run} in paths (NULL = the time of opening: "20260131-235959") */
    const char *node_id; /* {node} in paths (NULL = the host's name) */
    int32_t rank;        /* {rank} in paths */
    int32_t local_rank;  /* {local_rank}: among the processes of the machine */
    uint32_t world_size; /* {world_size}: processes of the job (0, 1 = no job) */
    /* existing traces are replaced (default: opening fails with WEIR_EINVAL, also if one has the name of a later file: that of
       any {step}, {batch} and {epoch}) */
    bool overwrite;
    bool no_flows;      /* no arrows that follow items: smaller files */
    uint64_t max_bytes; /* approximate size of a file, which keeps the last events (0 = no limit) */
    /* files to keep; older files of this object are removed, and their names are not used again (0 = keep all) */
    uint32_t keep;
    weir_trace_schedule schedule;
    /*
     * Triggers. If one of these is set, events are kept in memory (max_bytes, 0 = 64 MiB). When a trigger occurs, a
     * file is written with the events of the last last_ns (0 = 10 s). Files do not overlap: further triggers are
     * ignored for last_ns after each file.
     */
    bool on_stall;   /* a task runs longer than weir_pipeline_options.stall_warning_ns */
    bool on_failure; /* a task fails */
    bool on_request; /* weir_trace_request() */
    int64_t last_ns;
    /* Called for each complete file, for example to upload it (NULL = no call). On the observer thread, or on the
       thread that calls weir_trace_close(). */
    void (*finished)(void *self, const char *path);
    void *finished_self;
    int64_t flush_interval_ns; /* how often the file is written (0 = 1 s) */
    bool force;                /* with overwrite: files that are not traces are replaced, too (see weir/output.h) */
} weir_trace_options;

/* For the inline function below. */
WEIR_API int weir_trace_open_sized(const char *path, const weir_trace_options *options, size_t options_size,
                                   weir_trace_file **file, weir_error *error);

/*
 * Creates the file under a hidden name, and its folders. It gets its name when the run starts; until then an older file
 * stays. A link is replaced, not followed. In the path, {run}, {node}, {rank}, {local_rank}, {world_size}, {step} (the
 * last one marked), {batch} (how many steps were marked) and {epoch} are replaced. If a file would overwrite an earlier
 * file of this object, a number is added: "trace.2.json". A name that ends with ".gz" selects compression. On failure
 * *file is NULL, and *error (may be NULL) holds one line that names the path and the problem. Failures are
 * WEIR_EINVAL, WEIR_EIO, WEIR_ENOMEM and WEIR_EUNSUPPORTED (compressed, in a build without zlib). options may be
 * NULL.
 */
static inline int weir_trace_open(const char *path, const weir_trace_options *options, weir_trace_file **file,
                                  weir_error *error)
{
    return weir_trace_open_sized(path, options, sizeof *options, file, error);
}

/* The observer to give to a pipeline; valid until weir_trace_close(). All-zero for NULL. One pipeline at a time:
   attaching a second one fails with WEIR_EBUSY; later pipelines continue the file. */
WEIR_API weir_observer weir_trace_observer(weir_trace_file *file);

/* With triggers (on_request): writes what is in memory. Without: writes the file now, not only after
   flush_interval_ns. It takes up to a second; a pipeline must be recording. Any thread; async-signal-safe. NULL does
   nothing. */
WEIR_API void weir_trace_request(weir_trace_file *file);

/*
 * Writes the remaining events, closes the file and frees the object. Call it after the pipeline has been freed.
 * WEIR_OK; or the first failure, with *error (may be NULL) filled: WEIR_EIO, WEIR_ENOMEM, or WEIR_ELIMIT if records
 * were lost. NULL is fine.
 */
WEIR_API int weir_trace_close(weir_trace_file *file, weir_error *error);

/* An interval of a trace, in time from its beginning: time 0 for weir_trace_merge(), the first event for
   weir_trace_times_read(). All-zero: the whole trace. */
typedef struct weir_trace_interval {
    int64_t since_ns, until_ns; /* until_ns 0 = to its end */
} weir_trace_interval;

/*
 * Writes one trace from several: of ranks, or of other programs (Chrome's format, as an array or an object with
 * "traceEvents"), compressed or not. Each input becomes a separate process with its tracks. Clocks are aligned by the
 * wall time that each file of weir contains. A file without it starts at the same time as the earliest file, unless its
 * times are Unix times. Only what lies in the interval is written (NULL = everything), with spans cut off at its ends. Memory
 * use does not depend on the size of the files; large ones need room for a temporary file. force: an existing file
 * that is not a trace is replaced, too (see weir/output.h). WEIR_OK, WEIR_EIO, WEIR_EINVAL, WEIR_EDATA (an input is
 * not a trace) and others; *error (may be NULL) names the file. Any thread.
 */
WEIR_API int weir_trace_merge(const char *out_path, const char *const *in_paths, size_t num_ins,
                              const weir_trace_interval *interval, bool force, weir_error *error);

/* -- where the time went -- */

typedef enum weir_trace_by {
    WEIR_TRACE_BY_NAME = 0,
    WEIR_TRACE_BY_TRACK,   /* name, track and process */
    WEIR_TRACE_BY_PROCESS, /* name and process: a rank */
} weir_trace_by;

typedef struct weir_trace_facts {
    int64_t length_ns;                                       /* of the interval */
    uint64_t num_events, num_failures, num_stalls, num_gaps; /* in the interval; gaps: records were lost */
    bool is_complete;                                        /* the array has its end */
} weir_trace_facts;

/* All spans of one name, from begin to end; only the time within the interval. */
typedef struct weir_trace_time {
    const char *process, *track, *name; /* "" = of all; valid during the call */
    uint64_t count;
    int64_t total_ns;
    int64_t self_ns; /* without the spans inside */
} weir_trace_time;

/*
 * Adds up the spans of a trace of weir or of another program, compressed or not. Parts of tasks have "(part)" behind
 * their names; open spans count to the end. interval NULL = the whole trace. Fills *facts, then calls `each`, the largest
 * self time first. WEIR_OK, WEIR_EINVAL, WEIR_ENOTFOUND, WEIR_EIO, WEIR_EDATA (it is not a trace), WEIR_ENOMEM; *error (may
 * be NULL) names the file. Large traces are sorted in a temporary file. Any thread.
 */
WEIR_API int weir_trace_times_read(const char *path, const weir_trace_interval *interval, weir_trace_by by,
                                   weir_trace_facts *facts, void (*each)(void *self, const weir_trace_time *time),
                                   void *self, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
