/*
 * What would help, for a recording: changes that the user can make, each simulated with the model of weir/whatif.h. A gain has the
 * error that the model had where such changes were made. What more slots would get from something outside weir, no recording
 * tells: that is what the gain assumes, and the command that measures it is told.
 */
#include "stats/advice/model/model.h"
#include "stats/advice/verdict/live.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"

/* Other seeds change predictions by 0.2 % (0.02 % by default). Laps differ more. */
enum { NUM_STEPS = 6000 };

/* The relative error of the model, beside that of the recording: of the changes that docs/whatif.md compares with
   measurements, 61 of 68 are within it. */
static const double replay_error = 0.10;

/* What the recorded videos took; sums. */
typedef struct decoding {
    int64_t num_items, num_frames, frames_ns, run_ns; /* frames_ns: what depends on their number */
} decoding;

typedef struct advising {
    full_verdict *verdict;
    char command[1024];          /* of the run */
    weir_model *model;           /* NULL = cannot be made from these records */
    const weir_model_node *node; /* that limits; NULL = none */
    double base_cpus;            /* predicted for the recorded settings */
    double deviation;            /* of the predictions; see is_too_short() */
    live_trial concluding;       /* twice the slots of the stage that limits; gain 0 = was not tried */
    live_set parts, set;         /* parts: the settings of the trial that is being read; set: those that were tried
                                    together */
    live_trial together;         /* what the set brought */
    int status;                  /* of the first error */
    weir_error *error;
} advising;

const char *weir__verdict_short_name(const char *name, char *text, size_t size)
{
    assert(name);
    const char *colon = strrchr(name, ':');
    name = colon ? colon + 1 : name;
    snprintf(text, size, "%.*s", (int)strcspn(name, "["), name);
    return text;
}

void weir__verdict_text(const char *field, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf((char *)(uintptr_t)field, VERDICT_TEXT_BYTES, format, values);
    va_end(values);
}

weir_verdict_advice *weir__verdict_new_advice(full_verdict *v)
{
    size_t at = v->shown.num_advice;
    v->shown.num_advice += at < VERDICT_MAX_ADVICE; /* what has no room is not shown */
    memset(v->advice_texts[at], 0, sizeof v->advice_texts[at]);
    v->advice[at] = (weir_verdict_advice){
        .change = v->advice_texts[at][0],
        .options = v->advice_texts[at][1],
        .code = v->advice_texts[at][2],
        .next = v->advice_texts[at][3],
        .assumes = v->advice_texts[at][4],
        .stage = v->advice_texts[at][5],
        .gain = NAN,
        .error = NAN,
        .low = NAN,
        .high = NAN,
        .items_per_s = NAN,
        .more_cpus = NAN,
        .more_bytes = NAN,
    };
    return &v->advice[at];
}

/* Only a stage called decode is set by options of weir record. */
static bool is_decode(const char *name)
{
    char text[VERDICT_TEXT_BYTES];
    return strcmp(weir__verdict_short_name(name, text, sizeof text), "decode") == 0;
}

/* ", and 12 threads instead of 8", or nothing */
static void append_threads(char *text, size_t size, const live_setting *now, const live_setting *other)
{
    size_t used = strlen(text);
    if (other->threads != now->threads && used < size)
        snprintf(text + used, size - used, "%s%u thread%s instead of %u", used ? ", and " : "", other->threads,
                 other->threads == 1 ? "" : "s", now->threads);
}

void weir__verdict_describe_set(char *text, size_t size, const live_set *set)
{
    char name[VERDICT_TEXT_BYTES] = "";
    const live_setting *now = set->now, *other = set->other, *of_pool = NULL;
    *text = '\0';
    if (other->stage)
        weir__verdict_short_name(other->stage, name, sizeof name);
    if (other->slots == now->slots) {
        append_threads(text, size, now, other);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", other->has_own ? " for " : " in the pool",
                 other->has_own ? name : "");
        return;
    }
    for (uint32_t i = 0; i < set->num; i++) {
        size_t used = strlen(text);
        now = &set->now[i];
        other = &set->other[i];
        of_pool = other->has_own ? of_pool : other;
        if (used < size)
            snprintf(text + used, size - used, "%s%s with %u slot%s instead of %u", used ? ", " : "",
                     weir__verdict_short_name(other->stage, name, sizeof name), other->slots,
                     other->slots == 1 ? "" : "s", now->slots);
        if (other->has_own)
            append_threads(text, size, now, other);
    }
    if (of_pool)
        append_threads(text, size, set->now + (of_pool - set->other), of_pool);
}

/* The threads of the stage or pipeline, in C. */
static void append_thread_code(char *text, size_t size, uint32_t threads, const char *of)
{
    size_t used = strlen(text);
    if (used < size)
        snprintf(text + used, size - used, "%s.threads = %u in %s of the %s", used ? ", " : "", threads,
                 used ? "those" : "the options", of);
}

static void put_code(const weir_verdict_advice *advice, const live_set *set)
{
    char code[VERDICT_TEXT_BYTES] = "", name[100];
    const live_setting *of_pool = NULL;
    for (uint32_t i = 0; i < set->num; i++) {
        const live_setting *other = &set->other[i];
        size_t used = strlen(code);
        if (other->slots != set->now[i].slots && used < sizeof code)
            snprintf(code + used, sizeof code - used, "%s.concurrency = %u in the options of %s", used ? ", " : "",
                     other->slots, weir__verdict_short_name(other->stage, name, sizeof name));
        if (other->has_own)
            append_thread_code(code, sizeof code, other->threads, *code ? "same" : "stage");
        else
            of_pool = other;
    }
    if (of_pool)
        append_thread_code(code, sizeof code, of_pool->threads, "pipeline");
    weir__verdict_text(advice->code, "%s", code);
}

weir_verdict_advice *weir__verdict_new_setting(full_verdict *v, const live_set *set)
{
    weir_verdict_advice *advice = weir__verdict_new_advice(v);
    char change[VERDICT_TEXT_BYTES];
    const live_setting *now = set->now, *other = set->other;
    bool changes_slots = other->slots != now->slots;
    weir__verdict_describe_set(change, sizeof change, set);
    weir__verdict_text(advice->change, "%s", change);
    put_code(advice, set);
    if (set->num > 1)
        return advice;
    weir__verdict_text(advice->stage, "%s", other->stage ? other->stage : "");
    advice->slots = changes_slots ? other->slots : 0;
    advice->threads = other->threads != now->threads ? other->threads : 0;
    if (changes_slots && !other->has_own && is_decode(other->stage))
        weir__verdict_text(advice->options, "--concurrency %u --threads %u", other->slots, other->threads);
    else if (!changes_slots && !other->has_own)
        weir__verdict_text(advice->options, "--threads %u", other->threads);
    return advice;
}

weir_verdict_advice *weir__verdict_find_setting(full_verdict *v, const live_setting *now, const live_setting *other)
{
    uint32_t slots = other->slots != now->slots ? other->slots : 0,
             threads = other->threads != now->threads ? other->threads : 0;
    for (size_t i = 0; i < v->shown.num_advice; i++) {
        weir_verdict_advice *advice = &v->advice[i];
        if (strcmp(advice->stage, other->stage ? other->stage : "") == 0 && advice->slots == slots &&
            advice->threads == threads && slots + threads > 0)
            return advice;
    }
    return NULL;
}

static bool is_kind(const weir_model_node *node, const char *kind)
{
    return strcmp(node->kind, kind) == 0;
}

/* -- one change: an advice that is made first, and dropped again if the model predicts no gain */

static void set_in_model(advising *a, const char *node, const char *what, double value, const char *unit)
{
    char setting[VERDICT_TEXT_BYTES + 40], text[40];
    snprintf(setting, sizeof setting, "%s%s%s", node, *node ? "." : "", what);
    snprintf(text, sizeof text, "%.12g%s", value, unit);
    int status = a->status == WEIR_OK ? weir__model_set(a->model, setting, text, a->error) : WEIR_OK;
    if (status != WEIR_OK && status != WEIR_EINVAL) /* the engine would refuse it */
        a->status = status;
}

/* Runs without any change differ by as much as a doubling would bring. So the gain of a doubling cannot be
   distinguished from that. */
static bool is_too_short(const advising *a)
{
    return 1 + a->deviation >= 2 * (1 - a->deviation);
}

/* Predicts the settings that the model has now, and takes them back. False = it gains less than `least` times. */
static bool predict_change(advising *a, weir_verdict_advice *advice, double least)
{
    weir_prediction *then = NULL;
    if (a->status == WEIR_OK)
        a->status = weir__model_predict(
            a->model, &(weir_whatif_options){ .resamples = 6, .no_range = is_too_short(a) }, &then, a->error);
    weir__model_reset(a->model);
    bool gains = then && then->throughput >= least * then->baseline;
    a->deviation = then ? fmax(a->deviation, then->deviation) : a->deviation;
    double now = !then ? 0 : isnan(then->measured) ? then->baseline : then->measured;
    if (gains && !is_too_short(a) && now > 0) {
        advice->gain = then->throughput / then->baseline;
        advice->error = hypot(then->error, replay_error);
        advice->low = fmin(1, then->low / now); /* it was not measured: no range excludes that it brings nothing */
        advice->high = fmax(advice->gain, then->high / now);
        advice->items_per_s = advice->gain * now;
        advice->more_cpus = then->cpus - a->base_cpus;
        snprintf((char *)(uintptr_t)advice->next, VERDICT_TEXT_BYTES, "%s", then->limit_text);
    }
    weir_prediction_free(then);
    return gains;
}

static void propose_change(advising *a, weir_verdict_advice *advice)
{
    if (!predict_change(a, advice, WEIR_WORTH_GAIN) &&
        advice == &a->verdict->advice[a->verdict->shown.num_advice - 1])
        a->verdict->shown.num_advice--;
}

/* A change that is not simulated. */
static void suggest_change(advising *a, const char *change, const char *code)
{
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    weir__verdict_text(advice->change, "%s", change);
    weir__verdict_text(advice->code, "%s", code);
}

/* -- possible changes */

/* Of the node that limits, or, with no stage, of the pool. */
static live_setting present_setting(const advising *a)
{
    uint32_t own = a->node ? a->node->threads : 0;
    return (live_setting){ .stage = own ? a->node->name : NULL,
                           .has_own = own > 0,
                           .threads = own ? own : (uint32_t)a->model->shown.threads };
}

static void set_threads_in_model(advising *a, const live_setting *to)
{
    if (to->threads)
        set_in_model(a, to->has_own ? a->node->name : "", "threads", to->threads, "");
}

/* What no recording tells of tasks that wait. */
static void assume_service(const weir_verdict_advice *advice)
{
    weir__verdict_text(advice->assumes, "the resource that its tasks wait for can serve twice as many at once");
}

static bool mostly_waits(const weir_model_node *node)
{
    return node->time_s > 0 && node->cpu_s < 0.5 * node->time_s;
}

static void propose_slots(advising *a)
{
    live_setting now = present_setting(a), other;
    now.stage = a->node->name;
    now.slots = a->node->concurrency;
    other = now;
    other.slots = 2 * now.slots;
    other.threads = now.threads ? now.threads + now.slots : 0;
    if (weir__verdict_find_setting(a->verdict, &now, &other)) /* it was tried */
        return;
    weir_verdict_advice *advice = weir__verdict_new_setting(a->verdict, &(live_set){ 1, { now }, { other } });
    if (a->verdict->shown.kind == WEIR_VERDICT_OUTSIDE)
        assume_service(advice);
    if (a->verdict->polls)
        weir__verdict_text(advice->assumes,
                           "the consumer comes back so often that the queue of the sink does not fill up");
    set_in_model(a, a->node->name, "concurrency", other.slots, "");
    set_threads_in_model(a, &other);
    predict_change(a, advice, 0);
}

static void propose_threads(advising *a)
{
    live_setting now = present_setting(a), other = now;
    other.threads = 2 * now.threads;
    if (!now.threads || weir__verdict_find_setting(a->verdict, &now, &other))
        return;
    set_threads_in_model(a, &other);
    weir_verdict_advice *advice = weir__verdict_new_setting(a->verdict, &(live_set){ 1, { now }, { other } });
    if (mostly_waits(a->node))
        assume_service(advice);
    propose_change(a, advice);
}

static void propose_own_threads(advising *a, const weir_model_node *node)
{
    char name[VERDICT_TEXT_BYTES];
    bool is_worker = is_kind(node, "stage") || is_kind(node, "source");
    if (!is_worker || node->threads || !mostly_waits(node))
        return;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    assume_service(advice);
    weir__verdict_text(advice->change, "%u private thread%s for %s, whose tasks mostly wait", node->concurrency,
                       node->concurrency == 1 ? "" : "s", weir__verdict_short_name(node->name, name, sizeof name));
    weir__verdict_text(advice->code, ".threads = %u in the options of %s", node->concurrency, name);
    set_in_model(a, node->name, "threads", node->concurrency, "");
    propose_change(a, advice);
}

static void propose_completion(advising *a)
{
    char name[VERDICT_TEXT_BYTES], setting[VERDICT_TEXT_BYTES + 40];
    if (a->node->output_order != WEIR_ORDER_INPUT)
        return;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    weir__verdict_short_name(a->node->name, name, sizeof name);
    snprintf(setting, sizeof setting, "%s.output_order", a->node->name);
    weir__model_set(a->model, setting, "completion", NULL);
    weir__verdict_text(advice->change, "results of %s in the order of completion", name);
    weir__verdict_text(advice->options, "%s", is_decode(a->node->name) ? "--order completion" : "");
    weir__verdict_text(advice->code, ".output_order = WEIR_ORDER_COMPLETION in the options of %s", name);
    propose_change(a, advice);
}

static void propose_queue(advising *a, const weir_model_node *node)
{
    char name[VERDICT_TEXT_BYTES];
    uint32_t items = node->queue_items, more = items < 8 ? 32 : 4 * items;
    bool is_sink = is_kind(node, "sink"), is_source = is_kind(node, "source");
    if (items > WEIR_MAX_QUEUE_ITEMS / 4)
        return;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    set_in_model(a, node->name, "queue_items", more, "");
    if (node->queue_bytes)
        set_in_model(a, node->name, "queue_bytes", 4 * (double)node->queue_bytes, "");
    weir__verdict_short_name(node->name, name, sizeof name);
    weir__verdict_text(advice->change, "a queue of %u items%s after %s instead of %u", more,
                       node->queue_bytes ? " and four times the bytes" : "", name, items);
    if (is_sink || is_source || is_decode(node->name))
        weir__verdict_text(advice->options, "--%squeue-items %u",
                           is_sink     ? "sink-"
                           : is_source ? "source-"
                                       : "",
                           more);
    weir__verdict_text(advice->code, ".queue_items = %u in the options of %s", more, name);
    predict_change(a, advice, WEIR_WORTH_GAIN); /* the model does not know every burst */
}

/* -- a change of the job itself */

static int take_decoding(void *self, const weir_row *row, weir_error *error)
{
    (void)error;
    *(decoding *)self =
        (decoding){ weir_row_int(row, 0), weir_row_int(row, 1), weir_row_int(row, 2), weir_row_int(row, 3) };
    return WEIR_OK;
}

/* Half of the frames, unless the run has chosen frames already. */
static void propose_fewer_frames(advising *a, weir_recording *recording, const weir_filter *filter)
{
    static const char *const choices[] = { "--at",     "--frames",    "--every",  "--rate", "--count",
                                           "--random", "--keyframes", "--window", "--first" };
    decoding d = { 0 };
    weir_filter items = *filter;
    items.name = a->node->name;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strstr(a->command, choices[i]))
            return;
    if (a->status == WEIR_OK)
        a->status = weir_recording_query(
            recording, &items,
            "SELECT sum(t.codec <> ''), sum(t.num_frames), CAST(1e9 * sum(max(t.demux_time, 0) + "
            "max(t.decode_time, 0) + max(t.scale_time, 0)) AS INTEGER), CAST(1e9 * sum(t.elapsed) "
            "AS INTEGER) FROM items t",
            NULL, take_decoding, &d, a->error);
    double frames = d.num_items > 0 ? round(0.5 * (double)d.num_frames / (double)d.num_items) : 0;
    if (frames < 2 || d.run_ns <= 0)
        return;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    weir__verdict_text(advice->change, "half of the frames: only the first %.0f of each video", frames);
    weir__verdict_text(advice->options, "--first %.0f", frames);
    weir__verdict_text(advice->code, ".sampling.first = %.0f in weir_video_config", frames);
    advice->changes_job = true;
    set_in_model(a, a->node->name, "time", 1 - 0.5 * fmin(1, (double)d.frames_ns / (double)d.run_ns), "x");
    propose_change(a, advice);
}

/* -- all of them */

static void propose_cpus(advising *a)
{
    const model_state now = a->model->shown;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    weir__verdict_text(advice->change, "a machine, or a quota, with twice the CPUs");
    set_in_model(a, "", "cpus", 2 * now.cpus, "");
    set_in_model(a, "", "threads", 2 * now.threads, "");
    propose_change(a, advice);
}

static void propose_end_of_others(advising *a)
{
    if (!(a->model->shown.background > 0))
        return;
    weir_verdict_advice *advice = weir__verdict_new_advice(a->verdict);
    weir__verdict_text(advice->change, a->verdict->shown.world > 1 ? "CPUs that other ranks and programs do not use"
                                                                   : "stop other programs that use the CPUs");
    set_in_model(a, "", "background", 0, "");
    propose_change(a, advice);
}

static void propose_all(advising *a, weir_recording *recording, const weir_filter *filter)
{
    full_verdict *v = a->verdict;
    weir_verdict_kind kind = v->shown.kind;
    for (size_t i = 0; i < a->model->num_nodes; i++) {
        weir_model_node node = a->model->shown.nodes[i]; /* the original changes with the settings */
        size_t length = strlen(node.name);
        if (kind == WEIR_VERDICT_QUEUE && strncmp(v->name, node.name, length) == 0 && v->name[length] == '_')
            propose_queue(a, &node);
        else if (kind == WEIR_VERDICT_THREADS)
            propose_own_threads(a, &node);
    }
    if (kind == WEIR_VERDICT_CPUS) {
        propose_end_of_others(a);
        propose_cpus(a);
    }
    if (!a->node)
        return;
    if ((kind == WEIR_VERDICT_SLOTS || kind == WEIR_VERDICT_OUTSIDE) && is_kind(a->node, "stage"))
        propose_slots(a);
    if (kind == WEIR_VERDICT_THREADS ||
        kind == WEIR_VERDICT_CPUS) /* more threads get more of CPUs that others use, too */
        propose_threads(a);
    if (kind == WEIR_VERDICT_ORDER)
        propose_completion(a);
    if (is_decode(a->node->name) && a->node->cpu_s >= 0.5 * a->node->time_s)
        propose_fewer_frames(a, recording, filter);
}

/* -- what was tried while the pipeline ran */

static bool was_tried(const advising *a)
{
    return a->concluding.gain > 0;
}

/* Adds the part to the trial of which it is one: its parts follow each other. True = the trial is complete. */
static bool add_part(live_set *set, uint32_t at, uint32_t num, const live_setting *now, const live_setting *other)
{
    if (at == 0)
        set->num = 0;
    if (at != set->num) { /* one of them is missing, or no longer true */
        set->num = 0;
        return false;
    }
    set->now[at] = *now;
    set->other[at] = *other;
    return ++set->num == num;
}

/* If settings are still as they were. */
static int take_trial(void *self, const weir_row *row, weir_error *error)
{
    advising *a = self;
    live_setting now, other;
    live_trial trial;
    uint32_t part, num;
    (void)error;
    if (!weir__live_parse_trial(weir_row_text(row, 1), &part, &num, &now, &other, &trial))
        return WEIR_OK;
    size_t at = weir__model_find(a->model, weir_row_text(row, 0));
    const weir_model_node *node = at < a->model->num_nodes ? &a->model->shown.nodes[at] : NULL;
    bool has_own = node && node->threads;
    uint32_t threads = has_own ? node->threads : (uint32_t)a->model->shown.threads;
    if (now.threads != threads || (now.slots && (!node || now.slots != node->concurrency)))
        return WEIR_OK;
    now.stage = other.stage = node ? node->name : NULL;
    now.has_own = other.has_own = has_own;
    if (!add_part(&a->parts, part, num, &now, &other))
        return WEIR_OK;
    live_set set = a->parts;
    a->parts.num = 0;
    weir__live_keep_trial(a->verdict, &set, &trial);
    if (num > 1 && (num >= a->set.num || weir__live_brings_as_much(&trial, &a->together))) {
        a->set = set; /* a smaller one is a part of the one before */
        a->together = trial;
    } else if (num == 1 && now.slots && other.slots == 2 * now.slots && strcmp(node->name, a->verdict->name) == 0)
        a->concluding = trial;
    return WEIR_OK;
}

static void take_trials(advising *a, weir_recording *recording, int64_t run_id)
{
    weir_filter filter = { .run_id = run_id };
    full_verdict *v = a->verdict;
    if (a->status == WEIR_OK)
        a->status = weir_recording_query(recording, &filter,
                                         "SELECT category, detail FROM events WHERE event_name = 'trial' ORDER BY id",
                                         NULL, take_trial, a, a->error);
    if (!was_tried(a) || (v->shown.kind != WEIR_VERDICT_SLOTS && v->shown.kind != WEIR_VERDICT_OUTSIDE))
        return;
    bool has_set = a->set.num > 0;
    if (has_set && weir__live_brings_more(&a->together) && !weir__live_brings_more(&a->concluding))
        weir__live_conclude_set(v, &a->set, &a->together, &a->concluding);
    else
        weir__live_conclude(v, &a->concluding,
                            has_set ? !weir__live_brings_nothing(&a->together)
                                    : v->shown.other_kind != WEIR_VERDICT_UNKNOWN);
}

/* What a program is started with tells its options. */
typedef enum program_kind { PROGRAM_OTHER, PROGRAM_WEIR_RECORD, PROGRAM_ANALYSIS, PROGRAM_PYTHON } program_kind;

static program_kind program_of(const char *command)
{
    size_t length = strcspn(command, " ");
    char program[1024];
    snprintf(program, sizeof program, "%.*s", (int)length, command);
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    if (strcmp(name, "weir") == 0 && strncmp(command + length, " record ", 8) == 0)
        return PROGRAM_WEIR_RECORD;
    if (strncmp(name, "python", strlen("python")) == 0 || strncmp(name, "ipython", strlen("ipython")) == 0)
        return PROGRAM_PYTHON;
    return strcmp(name, "performance_analysis") == 0 ? PROGRAM_ANALYSIS : PROGRAM_OTHER;
}

static const char loaded[] = "loading needs no change; only a faster training step would help";

static const char measures_in_c[] = "weir_explain_live()";
static const char consumers_in_c[] = "several threads that consume: each of them may call weir_pipeline_next()";
static const char waiting_in_c[] = "weir_pipeline_next(pipeline, &item, WEIR_FOREVER) or weir_pipeline_poll_fd()";

/* What the programs call things. */
static const struct {
    const char *experiment; /* what changes settings while the pipeline runs, and measures what they bring */
    const char *consumers;
    const char *waiting; /* how to wait for items instead of asking; NULL = it does that */
} words[] = {
    [PROGRAM_OTHER] = { measures_in_c, consumers_in_c, waiting_in_c },
    [PROGRAM_ANALYSIS] = { measures_in_c, consumers_in_c, waiting_in_c },
    [PROGRAM_WEIR_RECORD] = { "weir record DIR --explain", loaded, NULL }, /* it plays the training of --headspace */
    [PROGRAM_PYTHON] = { "explain(live=True)", "several threads that iterate over the pipeline", NULL },
};

/* Changes that are not settings. */
static void suggest_others(advising *a)
{
    const struct {
        weir_verdict_kind kind;
        const char *change;
    } others[] = {
        { WEIR_VERDICT_NONE, loaded },
        { WEIR_VERDICT_CONSUMER, words[program_of(a->command)].consumers },
        { WEIR_VERDICT_FAILURES, "a list without the items that fail: weir failures lists them" },
        { WEIR_VERDICT_SOURCE, "a source that lists or fetches ahead, or several sources and a merge" },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].kind == a->verdict->shown.kind)
            suggest_change(a, others[i].change, "");
    if (a->verdict->shown.kind == WEIR_VERDICT_ORDER && a->node && a->node->output_order != WEIR_ORDER_INPUT)
        suggest_change(a, "longer epochs: several passes over the items in each, or steps that the consumer counts",
                       "");
    const char *waiting = words[program_of(a->command)].waiting;
    if (a->verdict->polls && waiting)
        suggest_change(a, "a consumer that waits for items instead of asking again and again", waiting);
}

void weir__verdict_fit_options(full_verdict *v, const char *command)
{
    program_kind kind = program_of(command ? command : "");
    for (size_t i = 0; i < v->shown.num_advice && kind != PROGRAM_WEIR_RECORD; i++) {
        weir_verdict_advice *a = &v->advice[i];
        if (kind == PROGRAM_ANALYSIS && *a->options && a->slots > 0)
            weir__verdict_text(a->options, "--concurrency %u", a->slots);
        else
            *(char *)(uintptr_t)a->options = '\0';
    }
}

static const char *experiment_with(const char *command)
{
    return words[program_of(command)].experiment;
}

static bool has_options(const full_verdict *v)
{
    for (size_t i = 0; i < v->shown.num_advice; i++)
        if (*v->advice[i].options && !v->advice[i].changes_job)
            return true;
    return false;
}

/* The one thing that would decide, or, if no option helps, that says what faster code would bring. */
static void say_next(const advising *a)
{
    full_verdict *v = a->verdict;
    bool is_of_spdl = !*a->command;
    bool is_open = v->shown.kind == WEIR_VERDICT_OUTSIDE || v->shown.kind == WEIR_VERDICT_UNKNOWN ||
                   v->shown.other_kind != WEIR_VERDICT_UNKNOWN || v->is_short;
    if (v->shown.changed_unix_ns)
        weir__verdict_text(v->missing,
                           "explain each part alone: weir explain with --until or --since and the time of "
                           "the change");
    else if (is_open && !was_tried(a))
        weir__verdict_text(v->missing, "%s changes settings while the pipeline runs, and measures what they bring",
                           experiment_with(a->command));
    else if (v->shown.kind != WEIR_VERDICT_NONE && !was_tried(a) && !has_options(v) && !is_of_spdl)
        weir__verdict_text(v->missing, "%s measures what a faster source, stage or consumer would bring",
                           experiment_with(a->command));
}

/* -- what the items say, and where the program waits */

/* "a.mp4 1.2 s, b.mp4 0.9 s" */
typedef struct slow_items {
    char text[VERDICT_TEXT_BYTES - 40];
} slow_items;

static int append_item(void *self, const weir_record *record, weir_error *error)
{
    slow_items *items = self;
    const weir_item_record *item = &record->item;
    const char *slash = strrchr(item->label, '/');
    char time[WEIR_FORMAT_BYTES];
    size_t used = strlen(items->text);
    (void)error;
    weir__text_format_time(time, 1e-9 * (double)item->run_ns);
    snprintf(items->text + used, sizeof items->text - used, "%s%.80s %s", used ? ", " : "",
             slash ? slash + 1 : item->label, time);
    return WEIR_OK;
}

typedef struct long_span {
    char name[128];
    double total_s;
} long_span;

static void find_long_span(const weir_total_list *spans, long_span *longest)
{
    for (size_t i = 0; i < spans->count; i++) {
        const weir_total *span = &spans->all[i];
        double total_s = 1e-9 * (double)span->metrics.span.total_ns;
        if (strcmp(span->kind, "span") == 0 && total_s > longest->total_s) {
            longest->total_s = total_s;
            snprintf(longest->name, sizeof longest->name, "%s", span->key.name);
        }
    }
}

static int take_trace(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    snprintf(self, VERDICT_TEXT_BYTES - 60, "%s", record->event.detail);
    return WEIR_OK;
}

/* Of a stage that waits: its slowest items, the longest span of the program, and the trace. */
static int tell_places(full_verdict *v, weir_recording *recording, const weir_filter *filter, weir_error *error)
{
    slow_items items = { "" };
    long_span longest = { "", 0 };
    char trace[VERDICT_TEXT_BYTES - 60] = "";
    weir_filter own = *filter;
    weir_totals totals;
    own.name = v->name;
    own.descending = false;
    own.longest_first = true;
    own.limit = 3;
    int status = weir_recording_each(recording, WEIR_RECORD_ITEM, &own, append_item, &items, error);
    own = *filter;
    own.name = "trace_file";
    if (status == WEIR_OK)
        status = weir_recording_each(recording, WEIR_RECORD_EVENT, &own, take_trace, trace, error);
    own.name = NULL;
    if (status == WEIR_OK)
        status = weir_totals_read(recording, &own,
                                  &(weir_grouping){ .by = WEIR_BY_NAME, .subjects = 1u << WEIR_SUBJECT_SPAN },
                                  &totals, error);
    if (status != WEIR_OK)
        return status;
    find_long_span(&totals.of[WEIR_SUBJECT_SPAN], &longest);
    weir_totals_free(&totals);
    if (*items.text)
        weir__verdict_add_evidence(v, "its slowest items: %s", items.text);
    if (longest.total_s > 0)
        weir__verdict_add_evidence(v, "the longest span in the program: %s, %.3g s in all", longest.name,
                                   longest.total_s);
    if (*trace)
        weir__verdict_add_evidence(v, "weir trace %s shows where each slot waits", trace);
    return WEIR_OK;
}

/* Largest gain first; what changes the job itself last. */
static int by_gain(const void *left, const void *right)
{
    const weir_verdict_advice *p = left, *q = right;
    double a = isnan(p->gain) ? 0 : round(50 * p->gain), b = isnan(q->gain) ? 0 : round(50 * q->gain);
    if (p->changes_job != q->changes_job)
        return p->changes_job - q->changes_job;
    if (a != b)
        return (a < b) - (a > b);
    return (p->change > q->change) - (p->change < q->change); /* the simpler one was proposed first */
}

/* False = nothing can be predicted. That is not a failure: in the recording no part of the pipeline takes any
   time. */
static bool predict_base(advising *a)
{
    weir_prediction *now = NULL;
    weir_error why = { 0 };
    a->status = weir__model_predict(a->model, &(weir_whatif_options){ .no_range = true }, &now, &why);
    a->base_cpus = now ? now->cpus : NAN;
    weir_prediction_free(now);
    if (a->status == WEIR_EINVAL) {
        a->status = WEIR_OK;
        return false;
    }
    if (a->status != WEIR_OK)
        weir_error_set(a->error, why.status, why.library_code, "%s", why.message);
    return true;
}

/* A recording that lacks what a model needs is no failure: then there is no model. */
static int read_model(advising *a, weir_recording *recording, const weir_filter *filter)
{
    weir_error why = { 0 };
    int status = weir__model_read(recording, filter, &a->model, &why);
    bool is_missing = status == WEIR_EUNSUPPORTED || status == WEIR_ENOTFOUND || status == WEIR_EINVAL;
    if (status == WEIR_OK || is_missing)
        return WEIR_OK;
    return weir_error_set(a->error, why.status, why.library_code, "%s", why.message);
}

/* The node that the verdict names, as it was recorded: the model's own changes with the settings. */
static void find_named_node(advising *a, weir_model_node *node)
{
    for (size_t i = 0; i < a->model->num_nodes && !a->node; i++) {
        *node = a->model->shown.nodes[i];
        a->node = strcmp(node->name, a->verdict->name) == 0 ? node : NULL;
    }
}

int weir__verdict_advise(full_verdict *verdict, weir_recording *recording, const weir_filter *filter,
                         weir_error *error)
{
    advising a = { .verdict = verdict, .error = error };
    weir_model_node node;
    weir_run_record run;
    if (weir_recording_find_run(recording, filter->run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : filter->run_id, &run,
                                NULL) == WEIR_OK)
        snprintf(a.command, sizeof a.command, "%s", run.command);
    if (verdict->shown.kind == WEIR_VERDICT_UNKNOWN) {
        say_next(&a);
        return WEIR_OK;
    }
    int status =
        verdict->shown.kind == WEIR_VERDICT_OUTSIDE ? tell_places(verdict, recording, filter, error) : WEIR_OK;
    if (status == WEIR_OK)
        status = read_model(&a, recording, filter);
    if (status != WEIR_OK)
        return status;
    if (a.model) {
        find_named_node(&a, &node);
        a.model->num_steps = NUM_STEPS;
        if (predict_base(&a)) {
            take_trials(&a, recording, run.run_id);
            propose_all(&a, recording, filter);
        }
    }
    bool is_complete = a.status == WEIR_OK || a.status == WEIR_ELIMIT; /* without what takes too long to simulate */
    if (is_complete)
        suggest_others(&a);
    say_next(&a);
    if (is_too_short(&a) && !was_tried(&a))
        weir__verdict_text(verdict->missing, "the run is too short to predict what changes bring; %s measures it",
                           experiment_with(a.command));
    weir__model_free(a.model);
    weir__verdict_fit_options(verdict, a.command);
    qsort(verdict->advice, verdict->shown.num_advice, sizeof *verdict->advice, by_gain);
    return is_complete ? WEIR_OK : a.status;
}
