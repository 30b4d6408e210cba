/* The summary of a recorded run, as text for a person. */
#ifndef WEIR_SUMMARY_H
#define WEIR_SUMMARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds a line about the selected records below "Database: PATH", for example what limits them: weir_verdict_write_limit()
 * of weir/verdict.h, in the library weir-advice. What it writes is printed only if the whole summary can be made.
 * WEIR_OK, or a failure, which then is that of the summary, with *error filled.
 */
typedef int weir_summary_line(FILE *out, weir_recording *recording, const weir_filter *filter, weir_error *error);

/*
 * Writes the summary of all records that match the filter (NULL = all). The summary begins with "PIPELINE PERFORMANCE
 * SUMMARY" between its two rules. It ends with the rule below "Database: PATH". The database is only read; a writer
 * may be using it. line may be NULL. The metrics of several runs are aggregated by name. totals: those of that filter
 * (WEIR_BY_NAME) if they have already been read, else NULL.
 *
 * When something is missing, a line between "Database: PATH" and the last rule says so: the run has not ended (it is
 * running, or was killed), or entries could not be written.
 *
 * WEIR_OK; WEIR_ENOTFOUND (no such file, no such run); WEIR_EDATA (not a weir database, or damaged); WEIR_EIO and
 * others; *error (may be NULL) names the path. Nothing is written unless everything could be read.
 */
WEIR_API int weir_summary_write(FILE *out, weir_recording *recording, const weir_filter *filter,
                                const weir_totals *totals, weir_summary_line *line, weir_error *error);

/*
 * Prints only what a reader must know about the selected records, with one line for each. For example, the process was
 * suspended, entries or records of a trace were lost, folders could not be read, or items succeeded with damage. If there
 * is nothing of that kind, it prints nothing. totals: those of the filter. Results as above.
 */
WEIR_API int weir_summary_write_notes(FILE *out, weir_recording *recording, const weir_filter *filter,
                                      const weir_totals *totals, weir_error *error);

/*
 * Writes the failures that match the filter (NULL = all). It writes their number, then the first at_most of them, one per
 * line with label, reason, stage and status. At the end it writes how many more there are. If there were none, it writes
 * nothing.
 *
 * Control characters in labels and messages are printed as \n, \x1b, …; all other bytes as they are.
 * Results as above.
 */
WEIR_API int weir_summary_write_failures(FILE *out, weir_recording *recording, const weir_filter *filter,
                                         size_t at_most, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
