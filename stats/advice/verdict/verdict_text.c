/* The verdict as text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weir/escape.h>

#include "format.h"
#include "text_fill.h"
#include "verdict.h"

enum { WIDTH = 80 };

/* Breaks lines at spaces; all but the first are indented as far as `before` is long. */
static void put_filled(FILE *out, const char *before, const char *text)
{
    char harmless[4 * VERDICT_TEXT_BYTES];
    size_t indent = strlen(before);
    weir_text_escape(text, harmless, sizeof harmless);
    fputs(before, out);
    weir_text_fill(out, harmless, harmless + strlen(harmless), indent, indent, WIDTH);
}

/* Lines that are copied stay whole. */
static void put_line(FILE *out, const char *before, const char *text)
{
    fputs(before, out);
    weir_text_escape_to(out, text);
    fputc('\n', out);
}

/* "2.00 times as many items per second (1.80 to 2.20), 1.5 CPUs more, 30 MB of memory less" */
static void put_prediction(FILE *out, const weir_verdict_advice *a)
{
    char text[VERDICT_TEXT_BYTES], cpus[80] = "", memory[80] = "", bytes[WEIR_FORMAT_BYTES];
    if (!isnan(a->more_cpus) && fabs(a->more_cpus) >= 0.05)
        snprintf(cpus, sizeof cpus, ", %.1f CPUs %s", fabs(a->more_cpus), a->more_cpus > 0 ? "more" : "less");
    if (!isnan(a->more_bytes) && fabs(a->more_bytes) >= 1e6) {
        weir_text_format_bytes(bytes, fabs(a->more_bytes));
        snprintf(memory, sizeof memory, ", %s of memory %s", bytes, a->more_bytes > 0 ? "more" : "less");
    }
    snprintf(text, sizeof text, "%.2f times as many items per second (%.2f to %.2f)%s%s", a->gain, a->low, a->high,
             cpus, memory);
    put_filled(out, "      predicted: ", text);
}

static void put_advice(FILE *out, const weir_verdict_advice *a)
{
    put_filled(out, "  * ", a->change);
    if (!isnan(a->gain))
        put_prediction(out, a);
    else if (!isnan(a->high))
        fprintf(out, "      at most %.2f times as many items per second\n", a->high);
    if (*a->assumes)
        put_filled(out, "      assumes that ", a->assumes);
    if (*a->options)
        put_line(out, "      command line: ", a->options);
    if (*a->code)
        put_line(out, "      C: ", a->code);
    if (*a->next)
        put_filled(out, "      then the limit is: ", a->next);
}

void weir_verdict_write(const weir_verdict *v, FILE *out)
{
    char text[256];
    if (!v || !out)
        return;
    bool has_other = v->other_kind != WEIR_VERDICT_UNKNOWN;
    put_filled(out, "Limit: ", v->sentence);
    if (has_other)
        put_filled(out, v->changed_unix_ns ? "And:   " : "Or:    ", v->other_sentence);
    if (v->kind != WEIR_VERDICT_UNKNOWN)
        fprintf(out, "Confidence: %s (%.0f %%)%s\n", weir_verdict_certainty(v), 100 * v->confidence,
                v->changed_unix_ns ? "; the limit changed during the run"
                : has_other        ? "; the data cannot tell the two apart"
                                   : "");
    if (!isnan(v->items_per_s)) {
        snprintf(text, sizeof text, "%.2f items per second in the steady part (%" PRId64 " of %" PRId64 " laps)",
                 v->items_per_s, v->num_laps, v->num_laps + v->num_cut_laps);
        put_filled(out, "Throughput: ", text);
    }
    if (v->num_evidence)
        fputs("\nEvidence:\n", out);
    for (size_t i = 0; i < v->num_evidence; i++)
        put_filled(out, "  * ", v->evidence[i]);
    if (*v->missing) {
        fputc('\n', out);
        put_filled(out, "To find out: ", v->missing);
    }
    if (v->num_advice)
        fprintf(out, "\nWhat would help%s, most first:\n",
                v->changed_unix_ns ? " while the first of the two is the limit" : "");
    for (size_t i = 0; i < v->num_advice; i++)
        put_advice(out, &v->advice[i]);
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
        weir_text_escape_to(out, v->sentence);
        if (is_known)
            fprintf(out, " (%s; weir explain tells why)\n", weir_verdict_certainty(v));
        else
            fputs(" (weir explain says what to record to find out)\n", out);
    }
    weir_verdict_free(v);
    return WEIR_OK;
}
