/* The verdict as text. */
#include <inttypes.h>
#include <math.h>

#include <weir/escape.h>
#include <weir/verdict.h>

#include "format.h"

static void put_line(FILE *out, const char *before, const char *text)
{
    fputs(before, out);
    weir_text_escape_to(out, text);
    fputc('\n', out);
}

static void put_cost(FILE *out, const weir_verdict_advice *a)
{
    char bytes[WEIR_FORMAT_BYTES];
    if (!isnan(a->more_cpus) && fabs(a->more_cpus) >= 0.05)
        fprintf(out, ", %.1f CPUs %s", fabs(a->more_cpus), a->more_cpus > 0 ? "more" : "less");
    if (!isnan(a->more_bytes) && fabs(a->more_bytes) >= 1e6) {
        weir_text_format_bytes(bytes, fabs(a->more_bytes));
        fprintf(out, ", %s of memory %s", bytes, a->more_bytes > 0 ? "more" : "less");
    }
}

static void put_advice(FILE *out, const weir_verdict_advice *a)
{
    put_line(out, "  * ", a->change);
    if (!isnan(a->gain)) {
        fprintf(out, "      predicted: %.2f times as many items per second (%.2f to %.2f)", a->gain, a->low, a->high);
        put_cost(out, a);
        fputc('\n', out);
    }
    if (*a->options)
        put_line(out, "      command line: ", a->options);
    if (*a->code)
        put_line(out, "      C: ", a->code);
    if (*a->next)
        put_line(out, "      then the limit is: ", a->next);
}

void weir_verdict_write(const weir_verdict *v, FILE *out)
{
    if (!v || !out)
        return;
    put_line(out, "Limit: ", v->sentence);
    if (v->other_kind != WEIR_VERDICT_UNKNOWN)
        put_line(out, "Or:    ", v->other_sentence);
    if (v->kind != WEIR_VERDICT_UNKNOWN)
        fprintf(out, "Confidence: %s (%.0f %%)%s\n", weir_verdict_certainty(v), 100 * v->confidence,
                v->other_kind == WEIR_VERDICT_UNKNOWN ? "" : "; the data cannot tell the two apart");
    if (!isnan(v->items_per_s))
        fprintf(out, "Throughput: %.2f items per second in the steady part (%" PRId64 " of %" PRId64 " laps)\n",
                v->items_per_s, v->num_laps, v->num_laps + v->num_cut_laps);
    if (v->num_evidence)
        fputs("\nEvidence:\n", out);
    for (size_t i = 0; i < v->num_evidence; i++)
        put_line(out, "  * ", v->evidence[i]);
    if (*v->missing)
        put_line(out, "\nTo know more: ", v->missing);
    if (v->num_advice)
        fputs("\nWhat would help, most first:\n", out);
    for (size_t i = 0; i < v->num_advice; i++)
        put_advice(out, &v->advice[i]);
}
