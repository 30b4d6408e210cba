#include "tools/view/function_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/view/stack_view.h"

static void print_head(const stack_view *stacks)
{
    uint64_t count = stacks_count(stacks), num_lost = stacks_lost(stacks);
    double period_s = (double)stacks_period_ns(stacks) / 1e9;
    prose_line(stdout, "%" PRIu64 " samples (not calls), one each %.1f ms of CPU time: %.1f s", count,
               1000 * period_s, period_s * (double)count);
    if (num_lost)
        prose_line(stdout, "%" PRIu64 " more samples were lost: they came faster than they were recorded.", num_lost);
    puts("\nself: samples in the function itself; total: also in functions that it called");
}

static void print_table(const tool_call *call, const stack_view *stacks, const function_output *how)
{
    if (tool_format(call) == TABLE_TEXT)
        print_head(stacks);
    stacks_print(stacks, stdout, tool_format(call), how->top, how->reverse);
}

int function_report(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                    const function_output *how, weir_error *error)
{
    stack_view *stacks;
    int status = stacks_read(recording, filter, &stacks, error);
    if (status != WEIR_OK)
        return status;
    if (how->sql)
        printf("%s;\n", weir_recording_sql(recording));
    else if (!stacks_count(stacks))
        status = weir_error_set(error, WEIR_ENOTFOUND, 0,
                                "no samples of functions match the filters; weir record --stacks and WEIR_STACKS=1 "
                                "record them, --list contents shows what was recorded");
    else if (how->form == FUNCTION_FLAME_GRAPH)
        stacks_write_flame_graph(stacks, stdout);
    else if (how->form == FUNCTION_FOLDED)
        stacks_write_folded(stacks, stdout);
    else
        print_table(call, stacks, how);
    stacks_free(stacks);
    return status;
}
