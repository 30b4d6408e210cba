/* The verdict as text. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "text_escape.h"
#include "text_fill.h"
#include "verdict.h"

enum { WIDTH = 80, MOST_LINES = 20, MOST_ADVICE = 3, MOST_OTHER_JOBS = 1 };

/* How much of a verdict is printed. */
typedef struct extent {
    size_t num_evidence;
    int num_advice; /* of each of the two lists */
    bool all;       /* also what predictions assume, all options and code */
} extent;

/* Breaks lines at spaces; all but the first are indented as far as `before` is long. */
static void put_filled(FILE *out, const char *before, const char *text)
{
    char harmless[4 * VERDICT_TEXT_BYTES];
    size_t indent = strlen(before);
    weir__text_escape(text, harmless, sizeof harmless);
    fputs(before, out);
    weir__text_fill(out, harmless, harmless + strlen(harmless), indent, indent, WIDTH);
}

/* "measured: 2.00 times as many items per second (1.80 to 2.20)", "1.5 CPUs more" */
static void put_gain(FILE *out, const weir_verdict_advice *a)
{
    char text[VERDICT_TEXT_BYTES], cpus[80] = "";
    if (!isnan(a->more_cpus) && fabs(a->more_cpus) >= 0.05)
        snprintf(cpus, sizeof cpus, ", %.1f CPUs %s", fabs(a->more_cpus), a->more_cpus > 0 ? "more" : "less");
    snprintf(text, sizeof text, "%.2f to %.2f times as many items per second%s", a->low, a->high, cpus);
    put_filled(out, a->is_measured ? "      measured: " : "      predicted: ", text);
}

static void put_advice(FILE *out, const weir_verdict_advice *a, bool all)
{
    put_filled(out, "  * ", a->change);
    if (!isnan(a->gain))
        put_gain(out, a);
    if (*a->assumes && all)
        put_filled(out, "      assumes that ", a->assumes);
    if (*a->options && all)
        fprintf(out, "      command line: %s\n", a->options);
    if (*a->code && (all || !*a->options))
        put_filled(out, "      C: ", a->code);
    if (*a->next && all)
        put_filled(out, "      then the limit is: ", a->next);
}

/* What was measured and brings nothing is evidence, not advice. */
static bool is_help(const weir_verdict_advice *a)
{
    return !a->is_measured || a->low > 1;
}

static void put_list(FILE *out, const weir_verdict *v, bool changes_job, const extent *of)
{
    const char *heading = changes_job          ? "\nIf the job itself may change:\n"
                          : v->changed_unix_ns ? "\nWhat would help while the first of the two is the limit:\n"
                                               : "\nWhat would help:\n";
    int most = changes_job && of->num_advice > MOST_OTHER_JOBS ? MOST_OTHER_JOBS : of->num_advice, count = 0;
    for (size_t i = 0; i < v->num_advice; i++) {
        const weir_verdict_advice *a = &v->advice[i];
        if (a->changes_job != changes_job || !is_help(a) || (!of->all && count == most))
            continue;
        if (count++ == 0)
            fputs(heading, out);
        put_advice(out, a, of->all);
    }
}

static void put_trials(FILE *out, const weir_verdict *v)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (!is_help(&v->advice[i])) {
            put_filled(out, "  * ", v->advice[i].change);
            put_gain(out, &v->advice[i]);
        }
}

static void put_throughput(FILE *out, const weir_verdict *v)
{
    char text[256], who[80] = "";
    if (isnan(v->items_per_s))
        return;
    if (v->world > 1 && v->num_ranks > 1)
        snprintf(who, sizeof who, " by %" PRIu32 " of the %" PRIu32 " ranks together", v->num_ranks, v->world);
    else if (v->world > 1)
        snprintf(who, sizeof who, " by rank %" PRId32 " of %" PRIu32, v->rank, v->world);
    if (v->num_laps)
        snprintf(text, sizeof text, "%.2f items per second%s in the steady part (%" PRId64 " of %" PRId64 " laps)",
                 v->items_per_s, who, v->num_laps, v->num_laps + v->num_cut_laps);
    else
        snprintf(text, sizeof text, "%.2f items per second%s", v->items_per_s, who);
    put_filled(out, "Throughput: ", text);
}

/* The one thing to do: what decides, or else the first change for a command line. */
static void put_next(FILE *out, const weir_verdict *v)
{
    char command[VERDICT_TEXT_BYTES];
    if (*v->missing) {
        fputc('\n', out);
        put_filled(out, "To find out: ", v->missing);
        return;
    }
    for (size_t i = 0; i < v->num_advice; i++)
        if (*v->advice[i].options && !v->advice[i].changes_job && is_help(&v->advice[i])) {
            snprintf(command, sizeof command, "weir record DIR %s, then weir compare", v->advice[i].options);
            fputc('\n', out);
            put_filled(out, "Next: ", command);
            return;
        }
}

static void put_all(FILE *out, const weir_verdict *v, const extent *of)
{
    bool has_other = v->other_kind != WEIR_VERDICT_UNKNOWN;
    put_filled(out, "Limit: ", v->sentence);
    if (has_other)
        put_filled(out, v->changed_unix_ns ? "And:   " : "Or:    ", v->other_sentence);
    if (v->kind != WEIR_VERDICT_UNKNOWN)
        fprintf(out, "Confidence: %s (%.0f %%)%s\n", weir_verdict_certainty(v), 100 * v->confidence,
                v->changed_unix_ns ? "; the limit changed during the run"
                : has_other        ? "; the data cannot tell the two apart"
                                   : "");
    put_throughput(out, v);
    if (of->num_evidence)
        fputs("\nEvidence:\n", out);
    for (size_t i = 0; i < of->num_evidence; i++)
        put_filled(out, "  * ", v->evidence[i]);
    put_trials(out, v);
    put_list(out, v, false, of);
    put_list(out, v, true, of);
    put_next(out, v);
}

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* As much of the evidence as fits with one change of each list, then as many changes as fit. */
void weir_verdict_write(const weir_verdict *v, bool all, FILE *out)
{
    if (!v || !out)
        return;
    for (extent of = { v->num_evidence, MOST_ADVICE, all };;) {
        char *text = NULL;
        size_t size;
        FILE *memory = all ? NULL : open_memstream(&text, &size);
        if (!memory) {
            put_all(out, v, &of);
            return;
        }
        put_all(memory, v, &of);
        bool fits = fclose(memory) == 0 && text && count_lines(text) <= MOST_LINES;
        if (fits || of.num_evidence == 0) {
            fputs(text ? text : "", out);
            free(text);
            return;
        }
        free(text);
        if (of.num_advice > 1)
            of.num_advice--;
        else
            of.num_evidence--;
    }
}

int weir_verdict_write_limit(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_verdict *v;
    if (!out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = weir_verdict_read(reader, filter, &v, error);
    if (status != WEIR_OK)
        return status;
    bool is_known = v->kind != WEIR_VERDICT_UNKNOWN;
    if (is_known || v->items_per_s > 0) {
        fputs("Limit: ", out);
        weir__text_escape_to(out, v->sentence);
        if (is_known)
            fprintf(out, " (%s; weir explain tells why)\n", weir_verdict_certainty(v));
        else
            fputs(" (weir explain says what to record to find out)\n", out);
    }
    weir_verdict_free(v);
    return WEIR_OK;
}
