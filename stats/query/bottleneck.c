/* See docs/reading-the-metrics.md, which explains the method. */
#include <weir/bottleneck.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* From this share on, the stage's slots are busy most of the time, so the stage is the bottleneck. */
#define TAKEN_SHARE 0.6

/* If slots wait for a thread this long per busy second, more slots would only wait more. */
#define STARVED_RATIO 0.25

static double value_of(const weir_total *total, const char *measure)
{
    return weir_measure_of(total->subject, measure, &total->metrics, total->elapsed_ns);
}

const weir_total *weir_totals_sink_queue(const weir_totals *totals)
{
    if (!totals)
        return NULL;
    const weir_total_list *flow = &totals->of[WEIR_SUBJECT_FLOW], *queues = &totals->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < flow->count; i++) {
        const char *name = flow->all[i].key.name;
        size_t length = strlen(name);
        for (size_t j = 0; j < queues->count && strcmp(flow->all[i].kind, "sink") == 0; j++)
            if (strncmp(queues->all[j].key.name, name, length) == 0 &&
                strcmp(queues->all[j].key.name + length, "_queue") == 0)
                return &queues->all[j];
    }
    return queues->count ? &queues->all[queues->count - 1] : NULL; /* older databases have no sinks: the last queue */
}

/* The stage whose slots are busiest; NULL = not known. */
static const weir_total *find_most_taken(const weir_total_list *stages, double *share)
{
    const weir_total *most = NULL;
    *share = -1;
    for (size_t i = 0; i < stages->count; i++) {
        double taken = value_of(&stages->all[i], "busy_share") + value_of(&stages->all[i], "wait_thread_share");
        if (taken > *share) {
            most = &stages->all[i];
            *share = taken;
        }
    }
    return most;
}

/* The source whose slots wait for threads, so that it only appears to be slow; NULL = none. */
static const weir_total *find_starved_source(const weir_total_list *flow)
{
    for (size_t i = 0; i < flow->count; i++) {
        double busy = value_of(&flow->all[i], "busy_share"), thread = value_of(&flow->all[i], "wait_thread_share");
        if (strcmp(flow->all[i].kind, "source") == 0 && busy + thread >= TAKEN_SHARE &&
            thread >= STARVED_RATIO * busy)
            return &flow->all[i];
    }
    return NULL;
}

static weir_bottleneck without_stages(const weir_total *sink)
{
    double occupied = sink ? value_of(sink, "occupancy_rate") : NAN;
    if (isnan(occupied))
        return (weir_bottleneck){ .kind = WEIR_BOTTLENECK_UNKNOWN, .share = NAN };
    return (weir_bottleneck){ .kind = occupied > 0.5 ? WEIR_BOTTLENECK_SINK : WEIR_BOTTLENECK_SOURCE, .share = NAN };
}

/* No stage is busy: the bottleneck is upstream or downstream of the stages. */
static weir_bottleneck outside_stages(const weir_totals *totals, const weir_total *sink)
{
    const weir_total_list *stages = &totals->of[WEIR_SUBJECT_STAGE];
    const weir_total *first = &stages->all[0], *last = &stages->all[stages->count - 1];
    const weir_total *starved = find_starved_source(&totals->of[WEIR_SUBJECT_FLOW]);
    double in = value_of(first, "wait_in_share"), out = value_of(last, "wait_out_share");
    double turn = value_of(last, "wait_turn_share");
    if (in >= out + turn && starved)
        return (weir_bottleneck){ WEIR_BOTTLENECK_THREADS, starved->key.name,
                                  value_of(starved, "wait_thread_share") };
    if (in >= out + turn)
        return (weir_bottleneck){ WEIR_BOTTLENECK_SOURCE, NULL, in };
    /* Older databases count waiting for a turn as waiting for room. */
    bool has_room = sink && value_of(sink, "occupancy_rate") < 0.5;
    if (turn > out || (turn == 0 && has_room))
        return (weir_bottleneck){ WEIR_BOTTLENECK_ORDER, NULL, turn > out ? turn : out };
    return (weir_bottleneck){ WEIR_BOTTLENECK_SINK, NULL, out };
}

weir_bottleneck weir_bottleneck_find(const weir_totals *totals)
{
    double taken;
    if (!totals)
        return without_stages(NULL);
    const weir_total *most = find_most_taken(&totals->of[WEIR_SUBJECT_STAGE], &taken);
    const weir_total *sink = weir_totals_sink_queue(totals);
    if (!most)
        return without_stages(sink);
    double busy = value_of(most, "busy_share"), thread = value_of(most, "wait_thread_share");
    if (taken < TAKEN_SHARE)
        return outside_stages(totals, sink);
    if (thread < STARVED_RATIO * busy)
        return (weir_bottleneck){ WEIR_BOTTLENECK_STAGE, most->key.name, busy };
    return (weir_bottleneck){ WEIR_BOTTLENECK_THREADS, most->key.name, thread };
}

const char *weir_bottleneck_word(weir_bottleneck_kind kind)
{
    static const char *const words[] = {
        [WEIR_BOTTLENECK_UNKNOWN] = "unknown", [WEIR_BOTTLENECK_STAGE] = "stage",
        [WEIR_BOTTLENECK_THREADS] = "threads", [WEIR_BOTTLENECK_SOURCE] = "source",
        [WEIR_BOTTLENECK_SINK] = "sink",       [WEIR_BOTTLENECK_ORDER] = "order",
    };
    return (size_t)kind < sizeof words / sizeof words[0] ? words[kind] : "";
}

void weir_bottleneck_describe(const weir_bottleneck *b, char *text, size_t size)
{
    if (!b || !text)
        return;
    double percent = 100 * b->share;
    switch (b->kind) {
    case WEIR_BOTTLENECK_STAGE:
        snprintf(text, size, "%s (its slots are busy for %.0f%% of their time)", b->name, percent);
        break;
    case WEIR_BOTTLENECK_THREADS:
        snprintf(text, size, "the threads (the slots of %s wait for one for %.0f%% of their time)", b->name, percent);
        break;
    case WEIR_BOTTLENECK_SOURCE:
        snprintf(text, size,
                 isnan(b->share) ? "the source (the last queue is mostly empty)"
                                 : "the source (the first stage waits for input for %.0f%% of its slot time)",
                 percent);
        break;
    case WEIR_BOTTLENECK_SINK:
        snprintf(text, size,
                 isnan(b->share) ? "the consumer (the last queue is mostly not empty)"
                                 : "the consumer (the last stage waits for room for %.0f%% of its slot time)",
                 percent);
        break;
    case WEIR_BOTTLENECK_ORDER:
        snprintf(text, size, "the order of the input (results wait for earlier ones for %.0f%% of the slot time)",
                 percent);
        break;
    case WEIR_BOTTLENECK_UNKNOWN: snprintf(text, size, "unknown (slot times were not recorded)"); break;
    }
}
