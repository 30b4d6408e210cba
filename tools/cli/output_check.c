#include "tools/cli/output_check.h"

#include <stdio.h>
#include <string.h>

int output_check(const char *path, weir_output_kind kind, const weir_output_rules *rules, weir_error *error)
{
    weir_output_rules forced = *rules;
    forced.force = true;
    int status = weir_output_check(path, kind, rules, error);
    bool is_added_to = kind == WEIR_OUTPUT_DATABASE || kind == WEIR_OUTPUT_INDEX; /* and never replaced */
    if (status != WEIR_OK && !is_added_to && weir_output_check(path, kind, &forced, NULL) == WEIR_OK) {
        size_t length = strlen(error->message);
        snprintf(error->message + length, sizeof error->message - length, ", or --force");
    }
    return status;
}
