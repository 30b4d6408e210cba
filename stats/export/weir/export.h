/*
 * The formats in which metrics and traces are exported to other programs, as rows of one table. A program can offer all formats
 * without code for any of them. weir record, weir export, their help, man pages and completions do so:
 *
 *     weir_export_open(weir_export_find("openmetrics"), "weir.prom", NULL, &metrics, &error);
 *     weir_observer observer = weir_export_observer(metrics);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_export_close(metrics, &error);
 *
 * weir/openmetrics.h, weir/tensorboard.h and weir/trace_file.h have the options of single formats.
 */
#ifndef WEIR_EXPORT_H
#define WEIR_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/limit.h>
#include <weir/observer.h>
#include <weir/output.h>
#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of all formats; each format uses those that it knows. Setting this struct to all-zero is equivalent to defaults.
   Strings are copied. */
typedef struct weir_export_options {
    const char *node_id; /* NULL = the host's name */
    const char *command; /* NULL = this process's command line, if the system reports it */
    int32_t rank;        /* of this process in the job */
    int32_t local_rank;  /* among the processes of the machine */
    uint32_t world_size; /* processes of the job (0, 1 = no job) */
    bool force;          /* a file of another kind is replaced, too (see weir/output.h) */
    /* Settings of single formats (see weir_export_format.settings). A setting that a format does not have is refused
       with WEIR_EINVAL. */
    bool by_lap;        /* from a database: the sums after each lap, instead of only the final ones */
    uint64_t max_bytes; /* live: keep about this much, the newest (0 = no limit) */
    int64_t last_ns;    /* live: write only when something happens, and only this much of the past (0 = write all) */
    /* The rules that name the limit, in formats that show it (NULL = no limit is shown). They must live as long as
       the export. */
    const weir_limit_rules *limit_rules;
} weir_export_options;

/* The type of a setting in weir_export_options, and how a command line writes it. */
typedef enum weir_export_value {
    WEIR_EXPORT_FLAG = 0, /* bool */
    WEIR_EXPORT_BYTES,    /* uint64_t: "64M" */
    WEIR_EXPORT_DURATION, /* int64_t, nanoseconds: "1m" */
} weir_export_value;

/* A setting of a format, and the option of a command line for it. Texts live as long as the library. */
typedef struct weir_export_setting {
    const char *name;     /* of the option, without dashes: "trace-size"; NULL ends the list */
    const char *argument; /* name of its value in the help: "SIZE"; NULL = a flag */
    const char *help;     /* one sentence, lower case, no full stop */
    weir_export_value value;
    /* True: for weir_export_write() and weir_export_write_folder(). False: for weir_export_open(). */
    bool from_database;
    size_t offset;   /* of the field in weir_export_options */
    uint64_t preset; /* the value that weir record uses if the option is not given */
} weir_export_setting;

/*
 * A format: a row of the table. Texts live as long as the library. A program may pass rows of its own to the functions below.
 * Members are required unless their comment says otherwise.
 */
typedef struct weir_export_format {
    /* One word: "openmetrics" for `weir export --format openmetrics` and `weir record --openmetrics`. */
    const char *name;
    weir_output_kind kind; /* of its file; WEIR_OUTPUT_FOLDER: it writes a folder, and names the files in it itself */
    const weir_export_setting *settings; /* NULL = none */

    /* Live. Optional: set all or none of live_help, open, observer and close. */
    const char *live_help; /* for the option of weir record: one sentence, lower case, no full stop */
    /* The format replaces {rank} and similar words in its path. Otherwise weir record gives each rank another path. */
    bool expands_path;
    const char *old_suffix;  /* of a second file that it writes beside the first: ".old"; NULL = none */
    const char *place_event; /* name of the event that has the path of the file, in a recording; NULL = none */
    int (*open)(const char *path, const weir_export_options *options, void **state, weir_error *error);
    weir_observer (*observer)(void *state);
    int (*close)(void *state, weir_error *error); /* as weir_export_close() */
    void (*request)(void *state);                 /* as weir_export_request(); NULL = nothing to do */

    /* From a database. Optional: set help and one or both functions. */
    const char *help;     /* a paragraph for the help of weir export */
    const char *examples; /* one command on each line */
    int (*write)(weir_recording *recording, const weir_filter *filter, const weir_export_options *options, FILE *out,
                 weir_error *error);
    int (*write_folder)(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                        const char *folder, weir_error *error);

    const void *reserved[4]; /* NULL */
} weir_export_format;

/* The formats of this library, in the order of the help; NULL after the last one. Any thread. */
WEIR_API const weir_export_format *weir_export_at(size_t index);

/* The format of that name; NULL = there is none. Any thread. */
WEIR_API const weir_export_format *weir_export_find(const char *name);

/* For the inline functions below. */
WEIR_API int weir_export_check_sized(const weir_export_format *format, bool from_database,
                                     const weir_export_options *options, size_t options_size, weir_error *error);

/* Checks that the format can be written live (or from a database), and that it has each setting that is given. The functions
   below make this check themselves. WEIR_OK; or WEIR_EUNSUPPORTED or WEIR_EINVAL with *error (may be NULL) filled: "laps: only
   for openmetrics". options may be NULL. */
static inline int weir_export_check(const weir_export_format *format, bool from_database,
                                    const weir_export_options *options, weir_error *error)
{
    return weir_export_check_sized(format, from_database, options, sizeof *options, error);
}

/* -- live */

typedef struct weir_export weir_export;

/* For the inline function below. */
WEIR_API int weir_export_open_sized(const weir_export_format *format, const char *path,
                                    const weir_export_options *options, size_t options_size, weir_export **opened,
                                    weir_error *error);

/*
 * Opens the file or folder, with the function of the format. Problems are found now, not later. On failure *opened is NULL, and
 * *error (may be NULL) holds one line that names the path and the problem. options may be NULL.
 */
static inline int weir_export_open(const weir_export_format *format, const char *path,
                                   const weir_export_options *options, weir_export **opened, weir_error *error)
{
    return weir_export_open_sized(format, path, options, sizeof *options, opened, error);
}

/* The observer to pass to a pipeline, one pipeline at a time. Valid until weir_export_close(). All-zero for NULL. */
WEIR_API weir_observer weir_export_observer(weir_export *opened);

/* With last_ns: writes the past now, without waiting for something to happen. Other formats ignore the call. Any thread;
   async-signal-safe. NULL does nothing. */
WEIR_API void weir_export_request(weir_export *opened);

/* Writes the rest and frees the export. Call it after the pipeline has been freed. WEIR_OK; or the first failure, with *error
   (may be NULL) filled; WEIR_ELIMIT if some records were lost because they came too fast. NULL is fine. */
WEIR_API int weir_export_close(weir_export *opened, weir_error *error);

/* -- from a database */

/* For the inline functions below. */
WEIR_API int weir_export_write_sized(const weir_export_format *format, weir_recording *recording,
                                     const weir_filter *filter, const weir_export_options *options,
                                     size_t options_size, FILE *out, weir_error *error);
WEIR_API int weir_export_write_folder_sized(const weir_export_format *format, weir_recording *recording,
                                            const weir_filter *filter, const weir_export_options *options,
                                            size_t options_size, const char *folder, weir_error *error);

/* Writes the records that match the filter (NULL = all). WEIR_OK; WEIR_ENOTFOUND if there is no run; WEIR_EIO if writing fails;
   WEIR_EUNSUPPORTED if the format is only written to a folder; others as for queries. options may be NULL. */
static inline int weir_export_write(const weir_export_format *format, weir_recording *recording,
                                    const weir_filter *filter, const weir_export_options *options, FILE *out,
                                    weir_error *error)
{
    return weir_export_write_sized(format, recording, filter, options, sizeof *options, out, error);
}

/* The same, to files in a folder, which is created if it is missing. WEIR_EUNSUPPORTED if the format is written to one file. */
static inline int weir_export_write_folder(const weir_export_format *format, weir_recording *recording,
                                           const weir_filter *filter, const weir_export_options *options,
                                           const char *folder, weir_error *error)
{
    return weir_export_write_folder_sized(format, recording, filter, options, sizeof *options, folder, error);
}

#ifdef __cplusplus
}
#endif

#endif
