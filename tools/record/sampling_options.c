#include "tools/record/sampling_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "tools/cli/memory.h"

/* -- times */

/* Nanoseconds beyond this do not fit int64_t, or lose precision in a double. */
static const double max_seconds = 1e9;

/* "1:02:03.5": hours, minutes, seconds, all three are required, so that it is never read as a range. */
static bool parse_clock(const char *text, double *seconds)
{
    uint64_t hours, minutes;
    char number[32];
    const char *first = strchr(text, ':');
    const char *second = first ? strchr(first + 1, ':') : NULL;
    if (!second || (size_t)(first - text) >= sizeof number || second - first != 3 ||
        strspn(second + 1, "0123456789") != 2)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(first - text), text);
    if (!option_parse_number(number, 1000000, &hours))
        return false;
    snprintf(number, sizeof number, "%.2s", first + 1);
    if (!option_parse_number(number, 59, &minutes))
        return false;
    const char *rest = second + 3;
    if (*rest && (*rest != '.' || rest[1 + strspn(rest + 1, "0123456789")]))
        return false;
    double rest_seconds = strtod(second + 1, NULL);
    *seconds = (double)(hours * 3600 + minutes * 60) + rest_seconds;
    return rest_seconds < 60;
}

static bool parse_time(const char *text, int64_t *time_ns)
{
    double seconds;
    if (!option_parse_span(text, &seconds) && !parse_clock(text, &seconds))
        return false;
    *time_ns = llround(fmin(seconds, max_seconds) * (double)WEIR_SECOND);
    return seconds <= max_seconds;
}

/* -- lists */

static bool parse_index(const char *text, int64_t *index)
{
    uint64_t number;
    bool is_negative = *text == '-';
    if (!option_parse_number(text + is_negative, INT64_MAX, &number))
        return false;
    *index = is_negative ? -(int64_t)number : (int64_t)number;
    return !is_negative || number > 0; /* -0 is ambiguous: the first frame, or the one after the last */
}

static bool parse_values(char *text, bool (*parse)(const char *text, int64_t *value), sampling_list *list)
{
    for (char *end; text; text = end) {
        end = strchr(text, ',');
        if (end)
            *end++ = '\0';
        if (!parse(text, &list->values[list->num_values++]))
            return false;
    }
    return true;
}

static bool parse_list(const char *text, bool (*parse)(const char *text, int64_t *value), sampling_list *list)
{
    size_t num_values = 1;
    for (const char *c = text; *c; c++)
        num_values += *c == ',';
    free(list->values); /* the option was given before; the last one counts */
    *list = (sampling_list){ .values = memory_get(num_values, sizeof *list->values) };
    char *copy = memory_copy(text);
    bool is_list = parse_values(copy, parse, list);
    free(copy);
    return is_list;
}

/* "-0.5": before the first frame, or a timestamp below zero. */
static bool parse_signed_time(const char *text, int64_t *time_ns)
{
    bool is_negative = *text == '-';
    if (!parse_time(text + is_negative, time_ns))
        return false;
    *time_ns = is_negative ? -*time_ns : *time_ns;
    return true;
}

static bool parse_times(const char *text, void *value)
{
    return parse_list(text, parse_signed_time, value);
}

static bool parse_indices(const char *text, void *value)
{
    return parse_list(text, parse_index, value);
}

/* -- the others */

/* "5", "29.97", "30000/1001": exactly, not the nearest double. */
static bool parse_rate(const char *text, void *value)
{
    sampling_ratio *rate = value;
    enum { MAX_DECIMALS = 6 };
    char number[32];
    uint64_t num, den = 1;
    size_t length = strcspn(text, "./");
    const char *rest = text + length + (text[length] != '\0');
    bool is_decimal = text[length] == '.';
    if (strlen(text) >= sizeof number || (text[length] && !*rest) || (is_decimal && strlen(rest) > MAX_DECIMALS))
        return false;
    snprintf(number, sizeof number, "%.*s%s", (int)length, text, is_decimal ? rest : "");
    for (size_t i = 0; is_decimal && i < strlen(rest); i++)
        den *= 10;
    if (text[length] == '/' && (!option_parse_number(rest, INT32_MAX, &den) || den == 0))
        return false;
    if (!option_parse_number(number, INT32_MAX, &num) || num == 0)
        return false;
    rate->num = (uint32_t)num;
    rate->den = (uint32_t)den;
    return true;
}

/* "10:20", "90s:2m", "10:", ":2.5" */
static bool parse_window(const char *text, void *value)
{
    sampling_range *window = value;
    char start[32];
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    if (!colon || length >= sizeof start || strcmp(text, ":") == 0)
        return false;
    snprintf(start, sizeof start, "%.*s", (int)length, text);
    window->start_ns = 0;
    window->end_ns = 0;
    if (*start && (strchr(start, ':') || !parse_time(start, &window->start_ns)))
        return false;
    if (!colon[1])
        return true;
    return !strchr(colon + 1, ':') && parse_time(colon + 1, &window->end_ns) && window->end_ns > window->start_ns;
}

/* "32f", "2s", "1.5m" */
static bool parse_length(const char *text, void *value)
{
    sampling_length *interval = value;
    char number[32];
    uint64_t frames = 0;
    size_t length = strlen(text);
    *interval = (sampling_length){ 0 };
    if (length == 0 || length >= sizeof number || strchr("0123456789.", text[length - 1]))
        return false; /* a number without a unit is ambiguous */
    if (text[length - 1] != 'f')
        return parse_time(text, &interval->ns) && interval->ns > 0;
    snprintf(number, sizeof number, "%.*s", (int)length - 1, text);
    bool is_number = option_parse_number(number, UINT32_MAX, &frames) && frames > 0;
    interval->frames = (uint32_t)frames;
    return is_number;
}

/* "4", "0.2s", "40ms": a number without a unit counts frames */
static bool parse_stride(const char *text, void *value)
{
    sampling_length *stride = value;
    uint64_t frames = 0;
    *stride = (sampling_length){ 0 };
    if (option_parse_number(text, UINT32_MAX, &frames)) {
        stride->frames = (uint32_t)frames;
        return frames > 0;
    }
    return *text && !strchr("0123456789.", text[strlen(text) - 1]) && parse_time(text, &stride->ns) && stride->ns > 0;
}

static bool parse_span(const char *text, void *value)
{
    return parse_time(text, value);
}

static bool parse_seed(const char *text, void *value)
{
    return option_parse_number(text, UINT64_MAX, value);
}

const option_kind sampling_times = { .parse = parse_times,
                                     .wanted = "times, such as 1.5,250ms,2m,0:01:03.2 (hours:minutes:seconds)" };
const option_kind sampling_indices = { .parse = parse_indices, .wanted = "frame numbers, such as 0,10,-1" };
const option_kind sampling_rate = { .parse = parse_rate,
                                    .wanted = "frames per second, such as 5, 29.97 or 30000/1001" };
const option_kind sampling_window = { .parse = parse_window,
                                      .wanted = "a range of times, such as 10:20, 90s:2m, 10: or :2.5" };
const option_kind sampling_interval = { .parse = parse_length,
                                        .wanted =
                                            "a number of frames, such as 32f, or a time span, such as 2s or 500ms" };
const option_kind sampling_stride = {
    .parse = parse_stride,
    .wanted = "a number of frames, such as 4, or a time span with its unit, such as 0.2s or 40ms"
};
const option_kind sampling_span = { .parse = parse_span, .wanted = "a time span, such as 0.0001 or 5ms" };
const option_kind sampling_seed = { .parse = parse_seed, .wanted = "a whole number" };

const char *const sampling_match_names[] = { "shown", "nearest", "exact", NULL };
const char *const sampling_outside_names[] = { "near", "clamp", "fail", NULL };
const char *const sampling_origin_names[] = { "first", "stream", NULL };
const char *const sampling_clip_start_names[] = { "first", "center", "random", "even", NULL };
const char *const sampling_clip_short_names[] = { "last", "loop", "fail", NULL };

/* -- all options together */

weir_sampling sampling_choose(const sampling_settings *settings)
{
    weir_sample what = settings->at.num_values        ? WEIR_SAMPLE_TIMES
                       : settings->indices.num_values ? WEIR_SAMPLE_INDICES
                       : settings->every              ? WEIR_SAMPLE_EVERY
                       : settings->rate.num           ? WEIR_SAMPLE_RATE
                       : settings->count              ? WEIR_SAMPLE_UNIFORM
                       : settings->random             ? WEIR_SAMPLE_RANDOM
                       : settings->clip               ? WEIR_SAMPLE_CLIPS
                       : settings->keyframes          ? WEIR_SAMPLE_KEYFRAMES
                                                      : WEIR_SAMPLE_ALL;
    return (weir_sampling){
        .what = what,
        .start_ns = settings->window.start_ns,
        .end_ns = settings->window.end_ns,
        .count = (uint32_t)(settings->first + settings->count + settings->random + settings->clip), /* one of them */
        .every = (uint32_t)settings->every,
        .rate_num = settings->rate.num,
        .rate_den = settings->rate.den,
        .length_frames = settings->interval.frames,
        .length_ns = settings->interval.ns,
        .indices = settings->indices.values,
        .num_indices = settings->indices.num_values,
        .times_ns = settings->at.values,
        .num_times = settings->at.num_values,
        .match = (weir_time_match)settings->match,
        .outside = (weir_time_outside)settings->outside,
        .tolerance_ns = settings->tolerance_ns,
        .origin = (weir_time_origin)settings->origin,
        .num_clips = settings->num_clips,
        .stride_frames = settings->stride.frames,
        .stride_ns = settings->stride.ns,
        .clip_start = (weir_clip_start)settings->clip_start,
        .clip_short = (weir_clip_short)settings->clip_short,
    };
}

void sampling_free(sampling_settings *settings)
{
    free(settings->at.values);
    free(settings->indices.values);
    settings->at = settings->indices = (sampling_list){ 0 };
}
