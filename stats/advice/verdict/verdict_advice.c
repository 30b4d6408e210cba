/*
 * What would help: changes that the user can make, each simulated with the model of weir/whatif.h. Changes that the
 * model cannot represent (another machine's disk, a lock that is split) are named without figures.
 */
#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/whatif.h>

#define LEAST_GAIN 1.03 /* less is within the error of the model */

/* The text of an advice. */
enum { TEXT_CHANGE, TEXT_OPTIONS, TEXT_CODE, TEXT_NEXT, TEXT_ASSUMES };

/* What the recorded items say about decoding; times are sums. */
typedef struct decoding {
    double run_s, demux_s, decode_s, scale_s;
    double num_items, num_frames;
    char codecs[VERDICT_TEXT_BYTES]; /* " h264 vp9 "; "" = no videos, or not known */
    char command[1024];              /* of the run */
} decoding;

typedef struct advising {
    full_verdict *verdict;
    decoding decoding;
    weir_model *model;            /* NULL = cannot be made from these records */
    const weir_model_node *node;  /* that limits; NULL = none */
    double base_cpus, base_bytes; /* predicted for the recorded settings */
    int status;                   /* of the first error */
    weir_error *error;
} advising;

static double setting_of(const advising *a, const char *name, const char *what)
{
    char setting[VERDICT_TEXT_BYTES + 40];
    snprintf(setting, sizeof setting, "%s%s%s", name, *name ? "." : "", what);
    return weir_model_get(a->model, setting);
}

/* "decode" of "0:1:decode[10]" */
static const char *short_name(const char *name, char *text, size_t size)
{
    for (int i = 0; i < 2; i++) {
        const char *colon = strchr(name, ':');
        name = colon ? colon + 1 : name;
    }
    snprintf(text, size, "%.*s", (int)strcspn(name, "["), name);
    return text;
}

static bool is_kind(const weir_model_node *node, const char *kind)
{
    return strcmp(node->kind, kind) == 0;
}

/* -- one advice */

static weir_verdict_advice *new_advice(advising *a)
{
    full_verdict *v = a->verdict;
    if (v->shown.num_advice == VERDICT_MAX_ADVICE)
        return NULL;
    size_t at = v->shown.num_advice++;
    memset(v->advice_texts[at], 0, sizeof v->advice_texts[at]);
    v->advice[at] = (weir_verdict_advice){
        .change = v->advice_texts[at][TEXT_CHANGE],
        .options = v->advice_texts[at][TEXT_OPTIONS],
        .code = v->advice_texts[at][TEXT_CODE],
        .next = v->advice_texts[at][TEXT_NEXT],
        .assumes = v->advice_texts[at][TEXT_ASSUMES],
        .gain = NAN,
        .low = NAN,
        .high = NAN,
        .items_per_s = NAN,
        .more_cpus = NAN,
        .more_bytes = NAN,
    };
    return &v->advice[at];
}

static void write_text(const char *field, const char *text)
{
    snprintf((char *)(uintptr_t)field, VERDICT_TEXT_BYTES, "%s", text);
}

/* A change and the settings of the model that represent it. */
typedef struct proposal {
    char change[VERDICT_TEXT_BYTES], options[VERDICT_TEXT_BYTES], code[VERDICT_TEXT_BYTES];
    const char *assumes;
    bool is_bound; /* it brings at most what is predicted */
    bool is_risky; /* it may bring nothing */
    struct {
        char name[VERDICT_TEXT_BYTES + 40], value[32];
    } sets[3];
    int num_sets;
} proposal;

__attribute__((format(printf, 4, 5))) static void set(proposal *p, const char *node, const char *what,
                                                      const char *format, ...)
{
    va_list values;
    snprintf(p->sets[p->num_sets].name, sizeof p->sets[0].name, "%s%s%s", node, *node ? "." : "", what);
    va_start(values, format);
    vsnprintf(p->sets[p->num_sets++].value, sizeof p->sets[0].value, format, values);
    va_end(values);
}

__attribute__((format(printf, 2, 3))) static void write_to(char *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(text, VERDICT_TEXT_BYTES, format, values);
    va_end(values);
}

/* Only a stage called decode is set by options of weir record. */
static bool is_decode(const char *name)
{
    char text[VERDICT_TEXT_BYTES];
    return strcmp(short_name(name, text, sizeof text), "decode") == 0;
}

static void keep(advising *a, const proposal *p, const weir_prediction *then)
{
    weir_verdict_advice *advice = new_advice(a);
    char next[VERDICT_TEXT_BYTES];
    if (!advice)
        return;
    double baseline = then->baseline, now = isnan(then->measured) ? baseline : then->measured;
    write_text(advice->change, p->change);
    write_text(advice->options, p->options);
    write_text(advice->code, p->code);
    write_text(advice->assumes, p->assumes ? p->assumes : "");
    if (a->verdict->is_short && !p->assumes)
        write_text(advice->assumes, "the run is much longer than the recorded one");
    advice->low =
        p->is_risky || p->is_bound || a->verdict->is_short ? fmin(1, then->low / baseline) : then->low / baseline;
    advice->high = (p->is_bound ? then->throughput : then->high) / baseline;
    if (p->is_bound)
        return;
    weir_prediction_describe_limit(then, next, sizeof next);
    write_text(advice->next, next);
    advice->gain = then->throughput / baseline;
    advice->items_per_s = advice->gain * now;
    advice->more_cpus = then->cpus - a->base_cpus;
    advice->more_bytes = then->memory_bytes - a->base_bytes;
}

/* Simulates the change and keeps it if it brings more than `least` times the present throughput. After an error nothing
   more is simulated. */
static void propose_above(advising *a, const proposal *p, double least)
{
    weir_prediction *then = NULL;
    int status = a->status;
    for (int i = 0; i < p->num_sets && status == WEIR_OK; i++)
        status = weir_model_set(a->model, p->sets[i].name, p->sets[i].value, a->error);
    if (status == WEIR_OK)
        a->status = weir_model_predict(a->model, &(weir_predict_options){ .resamples = 6 }, &then, a->error);
    else if (status != WEIR_EINVAL) /* the engine would refuse it */
        a->status = status;
    weir_model_reset(a->model);
    if (then && then->throughput >= least * then->baseline)
        keep(a, p, then);
    weir_prediction_free(then);
}

static void propose(advising *a, const proposal *p)
{
    propose_above(a, p, LEAST_GAIN);
}

/* A change that is not simulated. */
static void suggest(advising *a, const char *change, const char *options, const char *code)
{
    weir_verdict_advice *advice = new_advice(a);
    if (!advice)
        return;
    write_text(advice->change, change);
    write_text(advice->options, options);
    write_text(advice->code, code);
}

/* -- possible changes */

/* More tasks of a node run at once: what else must hold. */
static void assume(const advising *a, const weir_model_node *node, proposal *p)
{
    weir_verdict_kind kind = a->verdict->shown.kind, other = a->verdict->shown.other_kind;
    bool waits = node->cpu_s < 0.5 * node->time_s;
    p->assumes =
        waits ? "its tasks do not wait for each other (a lock), and what they wait for can serve more of them at once"
              : "a task needs the same CPU time when more of them run at once";
    if (a->verdict->polls)
        p->assumes = "the consumer comes back often enough for what the queue of the sink holds";
    p->is_risky = a->verdict->polls || (waits && (kind == WEIR_VERDICT_STORAGE || kind == WEIR_VERDICT_NETWORK ||
                                                  kind == WEIR_VERDICT_LOCK || other == WEIR_VERDICT_LOCK));
}

static void propose_slots(advising *a, bool with_threads)
{
    char name[VERDICT_TEXT_BYTES];
    proposal p = { .num_sets = 0 };
    uint32_t slots = a->node->concurrency, more = 2 * slots;
    double threads = setting_of(a, "", "threads");
    uint32_t wanted = (uint32_t)fmax(more, 2 * threads); /* threads may be NAN */
    if (with_threads && (a->node->threads || isnan(threads)))
        return;
    short_name(a->node->name, name, sizeof name);
    assume(a, a->node, &p);
    set(&p, a->node->name, "concurrency", "%u", more);
    if (a->node->threads)
        set(&p, a->node->name, "threads", "%u", 2 * a->node->threads);
    if (with_threads)
        set(&p, "", "threads", "%u", wanted);
    char and_change[VERDICT_TEXT_BYTES] = "", and_code[VERDICT_TEXT_BYTES] = "", and_options[40] = "";
    if (with_threads) {
        write_to(and_change, ", and %u threads in the pool instead of %.0f", wanted, threads);
        write_to(and_code, ", .threads = %u in those of the pipeline", wanted);
        snprintf(and_options, sizeof and_options, " --threads %u", wanted);
    }
    write_to(p.change, "%s with %u slots instead of %u%s", name, more, slots, and_change);
    if (a->node->threads)
        write_to(p.code, ".concurrency = %u, .threads = %u in the options of %s", more, 2 * a->node->threads, name);
    else
        write_to(p.code, ".concurrency = %u in the options of %s%s", more, name, and_code);
    if (is_decode(a->node->name) && !a->node->threads)
        write_to(p.options, "--concurrency %u%s", more, and_options);
    double least = LEAST_GAIN; /* more threads only if they bring more than the slots alone */
    for (size_t i = 0; i < a->verdict->shown.num_advice && with_threads; i++)
        least = fmax(least, LEAST_GAIN * a->verdict->advice[i].gain);
    propose_above(a, &p, least);
}

static void propose_threads(advising *a)
{
    proposal p = { .num_sets = 0 };
    double threads = setting_of(a, "", "threads");
    if (isnan(threads))
        return;
    if (a->node)
        assume(a, a->node, &p);
    set(&p, "", "threads", "%.0f", 2 * threads);
    write_to(p.change, "%.0f threads in the pool instead of %.0f", 2 * threads, threads);
    write_to(p.options, "--threads %.0f", 2 * threads);
    write_to(p.code, ".threads = %.0f in the options of the pipeline", 2 * threads);
    propose(a, &p);
}

/* For a stage or source that blocks threads of the pool, or has too few threads of its own. */
static void propose_own_threads(advising *a, const weir_model_node *node)
{
    char name[VERDICT_TEXT_BYTES];
    proposal p = { .num_sets = 0 };
    if (node->threads >= node->concurrency || is_kind(node, "sink") || node->time_s <= 0 ||
        node->cpu_s >= 0.5 * node->time_s)
        return;
    assume(a, node, &p);
    set(&p, node->name, "threads", "%u", node->concurrency);
    short_name(node->name, name, sizeof name);
    if (node->threads)
        write_to(p.change, "%u private threads for %s instead of %u", node->concurrency, name, node->threads);
    else
        write_to(p.change,
                 "%u private thread%s for %s, whose tasks mostly wait: the threads of the pool are then free for "
                 "other stages",
                 node->concurrency, node->concurrency == 1 ? "" : "s", name);
    write_to(p.code, ".threads = %u in the options of %s", node->concurrency, name);
    propose(a, &p);
}

static void propose_completion(advising *a)
{
    char name[VERDICT_TEXT_BYTES];
    proposal p = { .num_sets = 0 };
    if (a->node->output_order != WEIR_ORDER_INPUT)
        return;
    set(&p, a->node->name, "output_order", "completion");
    write_to(p.change, "results of %s in the order of completion", short_name(a->node->name, name, sizeof name));
    write_to(p.options, "%s", is_decode(a->node->name) ? "--order completion" : "");
    write_to(p.code, ".output_order = WEIR_ORDER_COMPLETION in the options of %s", name);
    propose(a, &p);
}

static void propose_queue(advising *a, const weir_model_node *node)
{
    char name[VERDICT_TEXT_BYTES];
    proposal p = { .num_sets = 0 };
    uint32_t items = node->queue_items;
    if (items > WEIR_MAX_QUEUE_ITEMS / 4)
        return;
    uint32_t more = items < 8 ? 32 : 4 * items;
    set(&p, node->name, "queue_items", "%u", more);
    if (node->queue_bytes)
        set(&p, node->name, "queue_bytes", "%.0f", 4 * (double)node->queue_bytes);
    write_to(p.change, "a queue of %u items%s after %s instead of %u", more,
             node->queue_bytes ? " and four times the bytes" : "", short_name(node->name, name, sizeof name), items);
    write_to(p.options, "--%squeue-items %u",
             is_kind(node, "sink")     ? "sink-"
             : is_kind(node, "source") ? "source-"
                                       : "",
             more);
    if (!is_kind(node, "sink") && !is_kind(node, "source") && !is_decode(node->name))
        p.options[0] = '\0';
    write_to(p.code, ".queue_items = %u in the options of %s", more, name);
    size_t num_advice = a->verdict->shown.num_advice;
    propose(a, &p);
    if (a->verdict->shown.num_advice == num_advice) /* the model does not know every burst */
        suggest(a, p.change, p.options, p.code);
}

static void propose_cheaper(advising *a, const weir_model_node *node, const char *what, const char *factor,
                            const char *change)
{
    char name[VERDICT_TEXT_BYTES];
    proposal p = { .num_sets = 0 };
    set(&p, node->name, what, "%s", factor);
    write_to(p.change, "%s: %s", short_name(node->name, name, sizeof name), change);
    propose(a, &p);
}

static void propose_less_waiting(advising *a)
{
    propose_cheaper(a, a->node, "wait_time", "0.5x",
                    "half the waiting per item (faster storage, a cache, a nearer server)");
}

static void propose_cpus(advising *a)
{
    proposal p = { .num_sets = 0 };
    double cpus = setting_of(a, "", "cpus"), threads = setting_of(a, "", "threads");
    if (isnan(cpus) || isnan(threads))
        return;
    set(&p, "", "cpus", "%.3f", 2 * cpus);
    set(&p, "", "threads", "%.0f", 2 * threads);
    write_to(p.change, "a machine, or a quota, with twice the CPUs");
    propose(a, &p);
}

static void propose_alone(advising *a)
{
    proposal p = { .num_sets = 0 };
    set(&p, "", "background", "0");
    write_to(p.change, "stop the other programs, or give this one a higher priority");
    write_to(p.options, "nice -n -5 weir …");
    p.assumes = "they leave all CPUs to this one";
    propose(a, &p);
}

/* -- cheaper decoding, at the price of accuracy: docs/tuning.md has figures */

typedef struct cheaper_decoding {
    const char *option, *value, *code, *change;
    const char *codecs; /* that have it; "" = it depends */
    double at_most;     /* the share of the decoding time that it can save; 0 = not known */
} cheaper_decoding;

#define WITH_LOOP_FILTER " h264 hevc vp8 vp9 "

static const cheaper_decoding cheaper[] = {
    { "--loop-filter", " references", ".loop_filter = WEIR_LOOP_FILTER_REFERENCES",
      "decode without the loop filter on frames that no other frame refers to (slightly less accurate)",
      WITH_LOOP_FILTER, 1.0 / 3 },
    { "--loop-filter", " none", ".loop_filter = WEIR_LOOP_FILTER_NONE",
      "decode without the loop filter (less accurate: errors grow until the next keyframe)", WITH_LOOP_FILTER,
      1.0 / 3 },
    { "--fast-decode", "", ".fast_decode = true",
      "decode with shortcuts that the codec's standard does not allow (less accurate; the gain depends on the files: "
      "bench/option_costs.py measures it)",
      "", 0 },
    { "--lowres", " 1", ".lowres = 1", "decode at half the width and height (less accurate)",
      " mjpeg mpeg1video mpeg2video mpeg4 ", 0.75 },
};

static bool has_codec(const decoding *d, const char *codecs)
{
    char word[VERDICT_TEXT_BYTES];
    for (const char *at = d->codecs + strspn(d->codecs, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, " %.*s ", (int)length, at);
        if (strstr(codecs, word))
            return true;
        at += length;
    }
    return *codecs == '\0';
}

static void propose_cheaper_decoding(advising *a)
{
    const decoding *d = &a->decoding;
    for (size_t i = 0; i < sizeof cheaper / sizeof cheaper[0]; i++) {
        const cheaper_decoding *c = &cheaper[i];
        proposal p = { .is_bound = true };
        if (strstr(d->command, c->option) || !has_codec(d, c->codecs))
            continue;
        write_to(p.change, "%s", c->change);
        write_to(p.options, "%s%s", c->option, c->value);
        write_to(p.code, "%s in weir_video_config", c->code);
        set(&p, a->node->name, "time", "%.3fx", 1 - c->at_most * d->decode_s / d->run_s);
        if (c->at_most > 0)
            propose(a, &p);
        else
            suggest(a, p.change, p.options, p.code);
    }
}

static void propose_fewer_frames(advising *a)
{
    static const char *const choices[] = { "--at",     "--frames",    "--every",  "--rate", "--count",
                                           "--random", "--keyframes", "--window", "--first" };
    const decoding *d = &a->decoding;
    double frames = round(0.5 * d->num_frames / d->num_items);
    proposal p = { .num_sets = 0 };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strstr(d->command, choices[i]))
            return;
    if (frames < 2)
        return;
    set(&p, a->node->name, "time", "%.3fx", 1 - 0.5 * (d->demux_s + d->decode_s + d->scale_s) / d->run_s);
    write_to(p.change, "half of the frames: only the first %.0f of each video", frames);
    write_to(p.options, "--first %.0f", frames);
    write_to(p.code, ".sampling.first = %.0f in weir_video_config", frames);
    p.assumes = "the videos have about as many frames each";
    propose(a, &p);
}

/* Whether the limit is the CPUs, or a competitor for them. */
static bool is_of_cpus(weir_verdict_kind kind)
{
    return kind >= WEIR_VERDICT_CPUS && kind <= WEIR_VERDICT_STOLEN;
}

static void propose_for_stage(advising *a, weir_verdict_kind kind)
{
    bool is_serial = kind == WEIR_VERDICT_LOCK || kind == WEIR_VERDICT_OWN_THREADS || kind == WEIR_VERDICT_MEMORY;
    bool more_slots = !is_serial && !is_of_cpus(kind) && kind != WEIR_VERDICT_THREADS;
    double time_s = a->node->time_s, cpu_s = a->node->cpu_s;
    bool is_video = a->decoding.run_s > 0, computes = cpu_s >= 0.3 * time_s;
    if (kind == WEIR_VERDICT_STORAGE) /* more slots may only make a queue for the disk */
        propose_less_waiting(a);
    if (more_slots)
        propose_slots(a, false);
    if (kind == WEIR_VERDICT_SLOTS)
        propose_threads(a);
    if (more_slots || (kind == WEIR_VERDICT_THREADS && a->verdict->shown.other_kind == WEIR_VERDICT_SLOTS &&
                       strcmp(a->verdict->name, a->verdict->other_name) == 0))
        propose_slots(a, true);
    propose_completion(a);
    if (is_video && (computes || kind == WEIR_VERDICT_OWN_THREADS)) {
        propose_fewer_frames(a);
        propose_cheaper_decoding(a);
    } else if (computes)
        propose_cheaper(a, a->node, "cpu_time", "0.7x", "30 % less CPU time per item");
    if (cpu_s < 0.7 * time_s && !is_serial && kind != WEIR_VERDICT_STORAGE)
        propose_less_waiting(a);
}

static void propose_all(advising *a)
{
    weir_verdict_kind kind = a->verdict->shown.kind;
    if (kind == WEIR_VERDICT_EPOCHS) /* the model has none */
        return;
    for (size_t i = 0; i < weir_model_num_nodes(a->model); i++) {
        weir_model_node node = *weir_model_node_at(a->model, i); /* the original changes with the settings */
        bool is_queue = (kind == WEIR_VERDICT_BURSTS || kind == WEIR_VERDICT_BYTES) &&
                        strncmp(a->verdict->name, node.name, strlen(node.name)) == 0;
        if (is_queue)
            propose_queue(a, &node);
        else if (is_kind(&node, "sink") && (kind == WEIR_VERDICT_CONSUMER || kind == WEIR_VERDICT_NONE))
            propose_cheaper(a, &node, "time", "0.5x", "a consumer that takes half the time per item");
        else if (kind == WEIR_VERDICT_THREADS)
            propose_own_threads(a, &node);
    }
    if (kind == WEIR_VERDICT_THREADS)
        propose_threads(a);
    if (a->node && is_kind(a->node, "source"))
        propose_cheaper(a, a->node, "time", "0.5x",
                        "half the time per item (list or fetch ahead, several sources and a merge)");
    else if (a->node)
        propose_for_stage(a, kind);
    if (kind == WEIR_VERDICT_OTHERS)
        propose_alone(a);
    if (is_of_cpus(kind))
        propose_cpus(a);
}

static void suggest_slots(advising *a, uint32_t slots, const char *why)
{
    proposal p = { .num_sets = 0 };
    char name[VERDICT_TEXT_BYTES];
    short_name(a->node->name, name, sizeof name);
    write_to(p.change, "%s %s (%u instead of %u)", why, name, slots, a->node->concurrency);
    write_to(p.options, "--concurrency %u", slots);
    if (!is_decode(a->node->name))
        *p.options = '\0';
    write_to(p.code, ".concurrency = %u in the options of %s", slots, name);
    suggest(a, p.change, p.options, p.code);
}

/* Changes that the model cannot represent. */
static void suggest_others(advising *a)
{
    static const struct {
        weir_verdict_kind kind;
        const char *change, *options, *code;
    } others[] = {
        { WEIR_VERDICT_NONE, "loading needs no change; only a faster training step would help", "", "" },
        { WEIR_VERDICT_CONSUMER, "several threads that consume: each of them may call weir_pipeline_next()", "", "" },
        { WEIR_VERDICT_THROTTLED, "a larger CPU quota for the container", "docker run --cpus N", "" },
        { WEIR_VERDICT_STOLEN, "a machine whose CPUs are not shared", "", "" },
        { WEIR_VERDICT_STORAGE, "fewer and larger files (tar archives), or a cache on a faster disk", "--tar", "" },
        { WEIR_VERDICT_NETWORK, "a nearer server, or a copy of the data on a local disk", "", "" },
        { WEIR_VERDICT_LOCK, "split the lock, or do less while it is held: more slots do not help a lock", "", "" },
        { WEIR_VERDICT_OWN_THREADS, "set the codec or library to one thread, and use more slots instead", "", "" },
        { WEIR_VERDICT_EPOCHS,
          "longer epochs: several passes over the items in each, or no epochs but steps that the consumer counts", "",
          "" },
        { WEIR_VERDICT_GIANTS, "split giant items into pieces, or route them to a branch with slots of its own", "",
          "weir_builder_route()" },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].kind == a->verdict->shown.kind)
            suggest(a, others[i].change, others[i].options, others[i].code);
    if (*a->decoding.codecs && a->verdict->shown.kind == WEIR_VERDICT_GIANTS)
        suggest(a, "split long videos into pieces", "--piece-frames 256", ".piece_frames = 256 in weir_video_config");
    if (a->node && a->verdict->shown.kind == WEIR_VERDICT_LOCK && a->verdict->shown.other_kind == WEIR_VERDICT_SLOTS)
        suggest_slots(a, 2 * a->node->concurrency, "if its tasks do not wait for each other: more slots for");
    if (a->verdict->polls)
        suggest(a, "a consumer that waits for items instead of asking again and again", "",
                "weir_pipeline_next(pipeline, &item, WEIR_FOREVER) or weir_pipeline_poll_fd()");
    if (a->node && a->verdict->shown.kind == WEIR_VERDICT_MEMORY)
        suggest_slots(a, (a->node->concurrency + 1) / 2,
                      "less memory: shorter queues, smaller pieces, or fewer slots for");
}

/* -- what the items say */

static void add_item(decoding *d, const weir_item_record *item)
{
    char word[VERDICT_TEXT_BYTES];
    if (!*item->codec || item->run_ns <= 0 || item->decode_ns < 0)
        return;
    d->num_items++;
    d->num_frames += item->num_frames > 0 ? (double)item->num_frames : 0;
    d->run_s += 1e-9 * (double)item->run_ns;
    d->demux_s += item->demux_ns > 0 ? 1e-9 * (double)item->demux_ns : 0;
    d->decode_s += 1e-9 * (double)item->decode_ns;
    d->scale_s += item->scale_ns > 0 ? 1e-9 * (double)item->scale_ns : 0;
    snprintf(word, sizeof word, " %.60s ", item->codec);
    size_t length = strlen(d->codecs);
    if (!strstr(d->codecs, word))
        snprintf(d->codecs + length, sizeof d->codecs - length, "%s", word + (length > 0));
}

static int read_decoding(weir_reader *reader, const weir_filter *filter, decoding *d, weir_error *error)
{
    enum { ENOUGH = 1000 };
    weir_query *query;
    const weir_record *record;
    weir_run_record run;
    weir_filter items = *filter;
    items.name = NULL;
    items.descending = items.longest_first = false;
    items.limit = ENOUGH;
    if (weir_reader_find_run(reader, filter->run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : filter->run_id, &run, NULL) ==
        WEIR_OK)
        snprintf(d->command, sizeof d->command, "%s", run.command);
    int status = weir_query_begin(reader, WEIR_RECORD_ITEM, &items, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        add_item(d, &record->item);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int by_gain(const void *left, const void *right)
{
    const weir_verdict_advice *p = left, *q = right;
    double a = isnan(p->gain) ? 0 : round(50 * p->gain), b = isnan(q->gain) ? 0 : round(50 * q->gain);
    if (isnan(p->gain) && isnan(q->gain)) { /* then by what they bring at most */
        a = isnan(p->high) ? 0 : p->high;
        b = isnan(q->high) ? 0 : q->high;
    }
    if (a != b)
        return (a < b) - (a > b);
    return (p->change > q->change) - (p->change < q->change); /* the simpler one was proposed first */
}

static void predict_base(advising *a)
{
    weir_prediction *now = NULL;
    a->status = weir_model_predict(a->model, &(weir_predict_options){ .no_range = true }, &now, a->error);
    a->base_cpus = now ? now->cpus : NAN;
    a->base_bytes = now ? now->memory_bytes : NAN;
    weir_prediction_free(now);
}

int weir_verdict_advise(full_verdict *verdict, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    advising a = { .verdict = verdict, .error = error };
    weir_error why = { 0 };
    weir_model_node node;
    if (verdict->shown.kind == WEIR_VERDICT_UNKNOWN)
        return WEIR_OK;
    int status = weir_model_read(reader, filter, &a.model, &why);
    bool is_missing = status == WEIR_EUNSUPPORTED || status == WEIR_ENOTFOUND || status == WEIR_EINVAL;
    if (status != WEIR_OK && !is_missing)
        return weir_error_set(error, why.status, why.library_code, "%s", why.message);
    for (size_t i = 0; a.model && i < weir_model_num_nodes(a.model) && !a.node; i++) {
        node = *weir_model_node_at(a.model, i); /* the original changes with the settings */
        a.node = strcmp(node.name, verdict->name) == 0 ? &node : NULL;
    }
    if (a.node && is_decode(a.node->name))
        a.status = read_decoding(reader, filter, &a.decoding, error);
    if (a.model && a.status == WEIR_OK) {
        predict_base(&a);
        propose_all(&a);
    }
    bool is_complete = a.status == WEIR_OK || a.status == WEIR_ELIMIT; /* without what takes too long to simulate */
    if (is_complete)
        suggest_others(&a);
    weir_model_free(a.model);
    qsort(verdict->advice, verdict->shown.num_advice, sizeof *verdict->advice, by_gain);
    return is_complete ? WEIR_OK : a.status;
}
