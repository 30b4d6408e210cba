#include "stages/cache/step_times.h"

#include <math.h>
#include <stdio.h>

void weir__step_times_add(weir_step_times *times, double step_s)
{
    double before = step_s - times->mean_s;
    times->mean_s += before / (double)++times->num_steps;
    times->squares += before * (step_s - times->mean_s);
}

static weir_headspace_times summary_of(const weir_step_times *times)
{
    double num_steps = (double)times->num_steps;
    weir_headspace_times sums = { .num_steps = times->num_steps, .mean_s = times->mean_s };
    if (times->num_steps > 1)
        sums.standard_error_s = sqrt(times->squares / (num_steps - 1) / num_steps);
    return sums;
}

/* The error of a quotient of two independent means, to first order. */
weir_headspace_result weir__step_times_compare(const weir_step_times *loader, const weir_step_times *replayed)
{
    weir_headspace_result result = { .loader = summary_of(loader), .replayed = summary_of(replayed) };
    if (loader->num_steps == 0 || replayed->num_steps == 0 || loader->mean_s <= 0)
        return result;
    double quotient = replayed->mean_s / loader->mean_s;
    double error =
        1.96 * hypot(result.replayed.standard_error_s, quotient * result.loader.standard_error_s) / loader->mean_s;
    result.cost = 1 - quotient;
    result.cost_low = result.cost - error;
    result.cost_high = result.cost + error;
    return result;
}

void weir__step_times_describe(weir_headspace_result *result)
{
    char *text = result->text;
    size_t size = sizeof result->text;
    unsigned long long num_steps = result->loader.num_steps;
    double loader_ms = result->loader.mean_s * 1e3, replayed_ms = result->replayed.mean_s * 1e3;
    if (!result->is_complete)
        snprintf(text, size,
                 "what loading costs is not known yet: %llu steps with loader results and %llu with replayed ones "
                 "count so far, and the pipeline must make at least %llu results",
                 num_steps, (unsigned long long)result->replayed.num_steps, (unsigned long long)result->num_needed);
    else if (result->cost_low <= 0)
        snprintf(text, size,
                 "loading costs you nothing that can be measured (%.1f to %.1f %% of each step): %.3g ms a step, "
                 "%.3g ms with results from memory (%llu steps each)",
                 result->cost_low * 100, result->cost_high * 100, loader_ms, replayed_ms, num_steps);
    else
        snprintf(text, size,
                 "loading costs you %.1f %% of each step (%.1f to %.1f %%): %.3g ms a step, %.3g ms with results "
                 "from memory (%llu steps each)",
                 result->cost * 100, result->cost_low * 100, result->cost_high * 100, loader_ms, replayed_ms,
                 num_steps);
}
