/* The verdict's answer for exports: the kind and the stage, without evidence and advice. */
#include "stats/advice/verdict/verdict_view.h"

#include <stdio.h>

/* A step in the totals: the consumer is a training loop. */
static bool marks_steps(const weir_totals *totals)
{
    for (int subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals->of[subject].count; i++)
            if (totals->of[subject].all[i].key.last_step >= totals->of[subject].all[i].key.first_step)
                return true;
    return false;
}

static void name_limit(const weir_verdict *verdict, weir_named_limit *limit)
{
    *limit = (weir_named_limit){ .kind = weir_verdict_word(verdict->kind), .number = (int)verdict->kind };
    snprintf(limit->stage, sizeof limit->stage, "%s", verdict->name);
}

static int judge_totals(const weir_totals *totals, const weir_records *stages, weir_named_limit *limit,
                        weir_error *error)
{
    verdict_view view;
    full_verdict *made = NULL;
    if (weir__verdict_view_totals(&view, totals, totals, stages)) {
        view.trains = marks_steps(totals);
        made = weir__verdict_judge(&view);
        weir__verdict_view_free(&view);
    }
    if (!made)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the limit");
    name_limit(&made->shown, limit);
    weir_verdict_free(&made->shown);
    return WEIR_OK;
}

static int read_limit(weir_recording *recording, const weir_filter *filter, weir_named_limit *limit,
                      weir_error *error)
{
    weir_verdict *verdict;
    int status = weir_verdict_read(recording, filter, &verdict, error);
    if (status == WEIR_OK)
        name_limit(verdict, limit);
    if (status == WEIR_OK)
        weir_verdict_free(verdict);
    return status;
}

static const char *kind_word(int number)
{
    return weir_verdict_word((weir_verdict_kind)number);
}

const weir_limit_rules *weir_verdict_limit_rules(void)
{
    static const weir_limit_rules rules = {
        .word = kind_word,
        .judge = judge_totals,
        .read = read_limit,
    };
    return &rules;
}
