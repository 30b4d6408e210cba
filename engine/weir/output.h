/*
 * Files that a program writes: what may be replaced by what.
 *
 * The rule is the same for everything that weir writes. An output replaces nothing but a file of its own kind, which
 * is recognised by its content. It never replaces an input, or the file that stdout or stderr goes to. Its name must
 * not say that it is something else. Functions of the library that write files follow it, and programs can ask for
 * their own files:
 *
 *     if (weir_output_check("losses.csv", WEIR_OUTPUT_CSV, NULL, &error) != WEIR_OK)
 *         …                                     // error.message says why, and what to do
 */
#ifndef WEIR_OUTPUT_H
#define WEIR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is written. */
typedef enum weir_output_kind {
    /* Bytes without a mark, such as raw video: replaces a file that is not recognised as any other. */
    WEIR_OUTPUT_RAW = 0,
    WEIR_OUTPUT_METRICS, /* OpenMetrics text */
    WEIR_OUTPUT_TRACE,   /* Chrome's format, compressed or not (then known by gzip's header) */
    WEIR_OUTPUT_PAGE,    /* HTML */
    WEIR_OUTPUT_JSON,
    WEIR_OUTPUT_CSV,
    WEIR_OUTPUT_PNG,
    WEIR_OUTPUT_SVG,
    WEIR_OUTPUT_PDF,
    WEIR_OUTPUT_NPY,
    WEIR_OUTPUT_SAFETENSORS,
    WEIR_OUTPUT_CHECKPOINT, /* of weir_checkpoint_store() */
    WEIR_OUTPUT_DATABASE,   /* SQLite: of statistics, or an index. It is added to, never replaced */
    WEIR_OUTPUT_INDEX,      /* of a dataset: such a database, too */
    WEIR_OUTPUT_LIST,       /* text with lines that is not a playlist */
    WEIR_OUTPUT_FOLDER,
} weir_output_kind;

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_output_rules {
    bool force; /* a file of another kind may be replaced, too; but never an input */
    /* num_inputs files that must stay; with those beside a database (-wal, -shm, -journal), whether they exist or not. "-" is
       stdin. Borrowed during the call */
    const char *const *inputs;
    size_t num_inputs;
} weir_output_rules;

/* For the inline function below. */
WEIR_API int weir_output_check_sized(const char *path, weir_output_kind kind, const weir_output_rules *rules,
                                     size_t rules_size, weir_error *error);

/*
 * Says whether a file of this kind may be written to the path. It may if there is no file, an empty file, a file of this
 * kind, a pipe or a device. "-" is stdout, which must not be an input. The path of a database is not a special name of
 * SQLite (":memory:", "file:…"). Links are followed. Changes nothing. rules may be NULL. WEIR_OK; or WEIR_EINVAL
 * (WEIR_EDATA if a database is to be extended, and the file is not one). Then *error (may be NULL) has one line with the
 * path, the reason, and what to do. Any thread.
 */
static inline int weir_output_check(const char *path, weir_output_kind kind, const weir_output_rules *rules,
                                    weir_error *error)
{
    return weir_output_check_sized(path, kind, rules, sizeof *rules, error);
}

/* Whether there is a file of that kind, by its first bytes; also what weir reads. Pipes and devices are not read. Any thread. */
WEIR_API bool weir_output_is(const char *path, weir_output_kind kind);

/* Whether both paths are the same file, by any link. It need not exist yet. Any thread. */
WEIR_API bool weir_output_is_same(const char *path, const char *other);

/*
 * Takes text that is written to a stream. text has size_bytes bytes, above 0, and no NUL at its end; it is valid during the call.
 * Returns WEIR_OK, or a negative status: writing to the stream fails then.
 */
typedef int weir_text_function(void *self, const char *text, size_t size_bytes);

/*
 * Makes a stream that passes what is written to a function of the program. So functions that take a FILE *
 * (summaries, verdicts, exports, span dumps) need no file. It is buffered: the function is called on the thread that
 * fills the buffer, or calls fflush() or fclose(). The program closes the stream with fclose(), which returns EOF if
 * the function has refused the last text; ferror() tells it of earlier ones. NULL = out of memory. Any
 * thread.
 */
WEIR_API FILE *weir_text_open(weir_text_function *write, void *self);

/*
 * Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed. Otherwise a file that is opened later could
 * get one of them, and log lines would be written into that file. Reading and writing these descriptors fails as
 * before. Call this function first in main(), as every program of weir does. It changes nothing if the three
 * descriptors are open. They are open unless the caller closed them (`prog 2>&-`, a daemon).
 */
WEIR_API void weir_standard_files_open(void);

#ifdef __cplusplus
}
#endif

#endif
