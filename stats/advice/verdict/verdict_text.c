/* The verdict as text. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"
#include "common/text_escape.h"
#include "common/text_fill.h"
#include "common/text_stream.h"
#include "stats/advice/verdict/verdict_view.h"

enum { MOST_WIDTH = 80, MOST_LINES = 20, MOST_ADVICE = 3, MOST_OTHER_JOBS = 1, GAIN_WIDTH = 16 };

/* How much of a verdict is printed. */
typedef struct extent {
    size_t num_evidence;
    int num_advice; /* of each list */
    unsigned what;  /* WEIR_VERDICT_ALL | … */
    bool is_mixed;  /* the list has what was measured and what was predicted */
    size_t width;
} extent;

/* Breaks lines at spaces; all but the first are indented as far as `before` is long. */
static void put_filled(FILE *out, const extent *of, const char *before, const char *text)
{
    char harmless[4 * VERDICT_TEXT_BYTES];
    size_t indent = strlen(before);
    weir__text_escape(text, harmless, sizeof harmless);
    fputs(before, out);
    weir__text_fill(out, harmless, harmless + strlen(harmless), indent, indent, of->width);
}

/* A row of the table: "   1.20x to 1.30x   fewer slots: --concurrency 2" */
static void put_advice(FILE *out, const weir_verdict_advice *a, const extent *of)
{
    char before[64] = "", text[3 * VERDICT_TEXT_BYTES], cpus[80] = "";
    if (!isnan(a->gain) && !isnan(a->error))
        snprintf(before, sizeof before, "%.2fx +/- %.2f", fmin(a->gain, 1e6), fmin(a->gain * a->error, 1e6));
    else if (!isnan(a->gain))
        snprintf(before, sizeof before, "%.2fx to %.2fx", fmin(a->low, 1e6), fmin(a->high, 1e6));
    size_t length = strlen(before);
    memmove(before + (length < GAIN_WIDTH ? GAIN_WIDTH - length : 0), before, length + 1);
    memset(before, ' ', length < GAIN_WIDTH ? GAIN_WIDTH - length : 0);
    strcat(before, "   ");
    if (isnan(a->gain))
        strcpy(before, "  * ");
    if (!isnan(a->more_cpus) && fabs(a->more_cpus) >= 0.05)
        snprintf(cpus, sizeof cpus, " (%.1f CPUs %s)", fmin(fabs(a->more_cpus), 1e9),
                 a->more_cpus > 0 ? "more" : "less");
    snprintf(text, sizeof text, "%s%s%s%s%s", a->change, *a->options ? ": " : "", a->options, cpus,
             a->is_measured || isnan(a->gain) || !of->is_mixed ? "" : ", predicted");
    put_filled(out, of, before, text);
    if (of->what & WEIR_VERDICT_CODE && *a->code)
        put_filled(out, of, "                   C: ", a->code);
    if (*a->assumes && !isnan(a->gain)) {
        snprintf(text, sizeof text, "if %s; as now if not", a->assumes);
        put_filled(out, of, "                   ", text);
    }
    if (of->what & WEIR_VERDICT_ALL && *a->next)
        put_filled(out, of, "                   then the limit is: ", a->next);
}

/* What was measured and brings nothing is evidence, not advice. */
static bool is_help(const weir_verdict_advice *a)
{
    return !a->is_measured || a->low > 1;
}

typedef enum advice_kind { HELPS, TRIED, OTHER_JOBS } advice_kind;

static advice_kind kind_of(const weir_verdict_advice *a)
{
    return !is_help(a) ? TRIED : a->changes_job ? OTHER_JOBS : HELPS;
}

static void put_list(FILE *out, const weir_verdict *v, advice_kind kind, extent of)
{
    static const char *const headings[] = { "What helps", "What was tried and does not help",
                                            "Less accurate pictures" };
    int most = kind == OTHER_JOBS && of.num_advice > MOST_OTHER_JOBS ? MOST_OTHER_JOBS : of.num_advice, count = 0;
    int num_measured = 0, num_predicted = 0;
    for (size_t i = 0; i < v->num_advice; i++)
        if (kind_of(&v->advice[i]) == kind && !isnan(v->advice[i].gain)) {
            num_measured += v->advice[i].is_measured;
            num_predicted += !v->advice[i].is_measured;
        }
    of.is_mixed = num_measured && num_predicted;
    for (size_t i = 0; i < v->num_advice; i++) {
        if (kind_of(&v->advice[i]) != kind || (!(of.what & WEIR_VERDICT_ALL) && count == most))
            continue;
        if (count++ == 0)
            fprintf(out, "\n%s%s%s\n", headings[kind],
                    kind == HELPS && v->changed_unix_ns ? " while the first of the two is the limit" : "",
                    num_measured    ? " (measured: items per second, 1.00x = as now):"
                    : num_predicted ? " (predicted: items per second, 1.00x = as now):"
                                    : ":");
        put_advice(out, &v->advice[i], &of);
    }
}

static void put_throughput(FILE *out, const weir_verdict *v, const extent *of)
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
    put_filled(out, of, "Throughput: ", text);
}

/* The one thing to do: what decides, or else the first change for a command line. */
static void put_next(FILE *out, const weir_verdict *v, const extent *of)
{
    char command[VERDICT_TEXT_BYTES];
    if (*v->missing) {
        fputc('\n', out);
        put_filled(out, of, "To find out: ", v->missing);
        return;
    }
    for (size_t i = 0; i < v->num_advice; i++)
        if (*v->advice[i].options && !v->advice[i].changes_job && is_help(&v->advice[i])) {
            snprintf(command, sizeof command, "weir record DIR %s, then weir compare", v->advice[i].options);
            fputc('\n', out);
            put_filled(out, of, "Next: ", command);
            return;
        }
}

static void put_all(FILE *out, const weir_verdict *v, const extent *of)
{
    bool has_other = v->other_kind != WEIR_VERDICT_UNKNOWN;
    put_filled(out, of, "Limit: ", v->sentence);
    if (has_other)
        put_filled(out, of, v->changed_unix_ns ? "And:   " : "Or:    ", v->other_sentence);
    if (v->kind != WEIR_VERDICT_UNKNOWN && v->confidence < 0.005)
        fprintf(out, "Confidence: %s\n", weir_verdict_certainty(v));
    else if (v->kind != WEIR_VERDICT_UNKNOWN)
        fprintf(out, "Confidence: %s (%.0f %%)%s\n", weir_verdict_certainty(v), 100 * v->confidence,
                v->changed_unix_ns ? "; the limit changed during the run"
                : has_other        ? "; the data cannot tell the two apart"
                                   : "");
    put_throughput(out, v, of);
    if (of->num_evidence)
        fputs("\nWhy:\n", out);
    for (size_t i = 0; i < of->num_evidence; i++)
        put_filled(out, of, "  * ", v->evidence[i]);
    put_list(out, v, TRIED, *of);
    put_list(out, v, HELPS, *of);
    put_list(out, v, OTHER_JOBS, *of);
    put_next(out, v, of);
}

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* As much of the evidence as fits with one change of each list, then as many changes as fit. */
void weir_verdict_write(const weir_verdict *v, unsigned what, size_t width, FILE *out)
{
    size_t columns = width > 0 && width < MOST_WIDTH ? width : MOST_WIDTH;
    if (!v || !out)
        return;
    for (extent of = { v->num_evidence, MOST_ADVICE, what, false, columns };;) {
        char *text = NULL;
        size_t size;
        FILE *memory = what & WEIR_VERDICT_ALL ? NULL : weir__text_stream(&text, &size);
        if (!memory) {
            put_all(out, v, &of);
            return;
        }
        put_all(memory, v, &of);
        if (fclose(memory) != 0) {
            put_all(out, v, &of);
            return;
        }
        if ((size_t)count_lines(text) * columns <= MOST_LINES * MOST_WIDTH || of.num_evidence == 0) {
            fputs(text, out);
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

int weir_verdict_write_limit(FILE *out, weir_recording *recording, const weir_filter *filter, weir_error *error)
{
    weir_verdict *v;
    if (!out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = weir_verdict_read(recording, filter, &v, error);
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
