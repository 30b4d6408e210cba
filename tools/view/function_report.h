/* weir query --by function: where the CPU time went, by samples. */
#ifndef TOOLS_VIEW_FUNCTION_REPORT_H
#define TOOLS_VIEW_FUNCTION_REPORT_H

#include <weir/query.h>

#include "tools/cli/command.h"

typedef enum function_form { FUNCTION_TABLE, FUNCTION_FOLDED, FUNCTION_FLAME_GRAPH } function_form;

typedef struct function_output {
    function_form form;
    int64_t top; /* rows of the table; 0 = all */
    bool reverse;
    bool sql; /* the statement that reads the samples, instead */
} function_output;

/* Prints the samples that match the filter. WEIR_OK; WEIR_ENOTFOUND = there are none; or a failure. */
int function_report(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                    const function_output *how, weir_error *error);

#endif
