#include "bench/verdict/random_scene.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/random.h"

/* -- chance */

static double uniform(uint64_t *random)
{
    return (double)(weir__random_next(random) >> 11) * 0x1p-53;
}

static bool chance(uint64_t *random, double share)
{
    return uniform(random) < share;
}

static double log_uniform(uint64_t *random, double least, double most)
{
    return least * exp(uniform(random) * log(most / least));
}

static uint32_t between(uint64_t *random, uint32_t least, uint32_t most)
{
    return least + (uint32_t)weir__random_below(random, most - least + 1);
}

/* -- parts. Lengths are relative: the limit is scaled to its items per second at the end */

#define MOST_BOUND 12

static const char *const stage_names[SCENE_STAGES] = { "read", "parse", "scale" };

static uint32_t draw_slots(uint64_t *random)
{
    return chance(random, 0.5) ? between(random, 1, 2) : between(random, 1, 8);
}

/* At most two resources; a stage behind them uses one of those that are there. */
static uint32_t draw_resource(uint64_t *random, scene *of, double bound)
{
    uint32_t r = of->resources[0].servers == 0 ? 0 : 1;
    if (of->resources[r].servers > 0)
        return r + 1;
    scene_resource *resource = &of->resources[r];
    double kind = uniform(random);
    resource->servers = kind < 0.75 ? 1 : between(random, 2, 4);
    resource->computes = kind >= 0.45 && kind < 0.75;
    resource->exponential = !resource->computes && chance(random, 0.25);
    resource->service_ms = 1000 * resource->servers / bound;
    return r + 1;
}

static void draw_work(uint64_t *random, scene *of, scene_stage *stage)
{
    double kind = uniform(random), bound = log_uniform(random, 1, MOST_BOUND), ms = 1000 * stage->slots / bound;
    scene_work *work = &stage->work;
    if (kind < 0.45)
        work->wait_ms = ms;
    else if (kind < 0.7)
        work->cpu_ms = ms;
    else if (kind < 0.78) {
        work->cpu_ms = ms * (0.1 + 0.8 * uniform(random));
        work->wait_ms = ms - work->cpu_ms;
    } else {
        work->uses = draw_resource(random, of, bound);
        work->wait_ms = chance(random, 0.5) ? ms * uniform(random) : 0;
        return;
    }
    work->exponential = chance(random, 0.25);
    if (!work->exponential && chance(random, 0.08)) {
        work->every = between(random, 20, 100);
        work->tail_ms = work->wait_ms * log_uniform(random, 5, 30);
        work->giant_cpu_ms = work->cpu_ms * log_uniform(random, 5, 30);
    }
}

static void draw_stages(uint64_t *random, scene *of)
{
    double kind = uniform(random);
    uint32_t num_stages = kind < 0.4 ? 1 : kind < 0.75 || of->shape == SCENE_MERGE ? 2 : 3;
    for (uint32_t i = 0; i < num_stages; i++) {
        of->stages[i].name = stage_names[i];
        of->stages[i].slots = draw_slots(random);
        draw_work(random, of, &of->stages[i]);
    }
}

static void draw_end(uint64_t *random, scene_work *work)
{
    double ms = 1000 / log_uniform(random, 1, MOST_BOUND);
    if (!chance(random, 0.55))
        return;
    if (chance(random, 0.5))
        work->cpu_ms = ms;
    else
        work->wait_ms = ms;
}

static void draw_sources(uint64_t *random, scene *of)
{
    scene_work *second = &of->stages[2].work;
    draw_end(random, &of->source);
    if (of->shape != SCENE_MERGE)
        return;
    if (of->source.cpu_ms + of->source.wait_ms <= 0)
        of->source.wait_ms = 1000 / log_uniform(random, 1, MOST_BOUND);
    *second = of->source;
    if (!chance(random, 0.5))
        *second = (scene_work){ .wait_ms = 1000 / log_uniform(random, 1, MOST_BOUND) };
}

static void draw_failures(uint64_t *random, scene *of)
{
    scene_stage *stage = &of->stages[chance(random, 0.5) && of->stages[1].name ? 1 : 0];
    if (stage->work.uses || stage->work.every)
        return;
    stage->work.fail_share = 0.05 + 0.85 * uniform(random);
    stage->work.fail_length = chance(random, 0.5) ? log_uniform(random, 0.05, 0.3) : 1 + 2 * uniform(random);
}

static void draw_change(uint64_t *random, scene *of)
{
    scene_stage *stage = &of->stages[chance(random, 0.5) && of->stages[1].name ? 1 : 0];
    if (stage->work.uses || stage->work.every || stage->work.fail_share > 0)
        return;
    if (chance(random, 0.5)) {
        of->change_s = 1;
        stage->work.growth = log_uniform(random, 0.02, 0.2);
        return;
    }
    double factor = log_uniform(random, 1.5, 4);
    of->change_s = 2 + 2 * uniform(random);
    of->alternates = true;
    stage->later = stage->work;
    stage->later.cpu_ms *= factor;
    stage->later.wait_ms *= factor;
}

static uint32_t count_slots(const scene *of)
{
    uint32_t slots = of->shape == SCENE_MERGE ? 2 : 1;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        slots += of->stages[i].name ? of->stages[i].slots : 0;
    return slots;
}

static void draw_threads(uint64_t *random, scene *of)
{
    double kind = uniform(random);
    uint32_t slots = count_slots(of);
    if (of->shape == SCENE_MERGE || kind < 0.75)
        of->threads = slots + between(random, 1, 8);
    else
        of->threads = kind < 0.85 ? slots : between(random, 1, slots - 1);
}

/* -- joint limits */

/* The stage whose slots, without a resource, are the limit; SCENE_STAGES = there is none. */
static uint32_t find_limit(const scene *of, uint32_t cpus, double *bound)
{
    scene_bounds bounds;
    scene_bounds_find(of, &(bound_setting){ .cpus = cpus }, &bounds);
    *bound = scene_bounds_least(bounds.high);
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (of->stages[i].name && bounds.high[i] <= *bound && !of->stages[i].work.uses)
            return i;
    return SCENE_STAGES;
}

/* Gives the slots of a stage this bound; the item's visits to the stages behind it stay. */
static void set_bound(scene *of, uint32_t i, uint32_t cpus, double bound)
{
    scene_work *work = &of->stages[i].work;
    scene_bounds bounds;
    if (work->uses || work->every)
        *work = (scene_work){ .wait_ms = 1 };
    scene_bounds_find(of, &(bound_setting){ .cpus = cpus }, &bounds);
    work->cpu_ms *= bounds.high[i] / bound;
    work->wait_ms *= bounds.high[i] / bound;
}

static void draw_joint(uint64_t *random, scene *of, uint32_t cpus)
{
    double bound, kind = uniform(random);
    uint32_t limit = find_limit(of, cpus, &bound), num_stages = 1, other;
    while (num_stages < SCENE_STAGES && of->stages[num_stages].name)
        num_stages++;
    if (limit == SCENE_STAGES)
        return;
    other = (limit + between(random, 1, num_stages > 1 ? num_stages - 1 : 1)) % num_stages;
    if (num_stages > 1 && kind < 0.6) {
        for (uint32_t i = 0; i < num_stages; i++)
            if (i != limit && (i == other || kind < 0.2))
                set_bound(of, i, cpus, bound);
    } else if (kind < 0.8 || of->shape == SCENE_MERGE)
        of->consumer = (scene_work){ .wait_ms = 1000 / bound };
    else {
        double visits = 1;
        for (uint32_t i = 0; i < num_stages; i++)
            visits /= 1 - of->stages[i].work.fail_share;
        of->source = (scene_work){ .wait_ms = 1000 / bound / visits };
    }
}

static void draw_burst(uint64_t *random, scene *of)
{
    bool is_source = chance(random, 0.5) && of->shape != SCENE_MERGE;
    scene_work *work = is_source ? &of->source : &of->consumer;
    if (work->cpu_ms + work->wait_ms <= 0)
        work->wait_ms = 1000 / log_uniform(random, 1, MOST_BOUND);
    work->burst = between(random, 4, 24);
    work->cpu_ms *= work->burst;
    work->wait_ms *= work->burst;
}

/* -- a whole scene */

static void scale_work(scene_work *work, double by)
{
    work->cpu_ms *= by;
    work->wait_ms *= by;
    work->tail_ms *= by;
    work->giant_cpu_ms *= by;
}

/* So that the limit lets this many items through each second. */
static void scale_lengths(scene *of, uint32_t cpus, double items_per_s)
{
    scene_bounds bounds;
    uint32_t load = of->load;
    of->load = 0;
    scene_bounds_find(of, &(bound_setting){ .cpus = cpus }, &bounds);
    of->load = load;
    double by = scene_bounds_least(bounds.high) / items_per_s;
    scale_work(&of->source, by);
    scale_work(&of->consumer, by);
    for (uint32_t i = 0; i < SCENE_STAGES; i++) {
        scale_work(&of->stages[i].work, by);
        scale_work(&of->stages[i].later, by);
    }
    for (uint32_t i = 0; i < SCENE_RESOURCES; i++)
        of->resources[i].service_ms *= by;
}

static void draw_backlog(uint64_t *random, scene *of, double items_per_s)
{
    if (of->shape != SCENE_MERGE && of->source.burst == 0 && of->source.cpu_ms + of->source.wait_ms > 0)
        of->backlog_items = 1 + (uint32_t)((3 + 3 * uniform(random)) * items_per_s);
}

static void draw_once(uint64_t *random, uint32_t cpus, scene *of)
{
    double items_per_s = chance(random, 0.25) ? log_uniform(random, 0.5, 30) : log_uniform(random, 30, 2000);
    bool has_backlog = chance(random, 0.05);
    *of = (scene){ .shape = chance(random, 0.12) ? SCENE_MERGE : SCENE_CHAIN };
    draw_stages(random, of);
    draw_sources(random, of);
    draw_end(random, &of->consumer);
    if (chance(random, 0.15))
        draw_failures(random, of);
    if (chance(random, 0.1))
        draw_change(random, of);
    draw_threads(random, of);
    if (chance(random, 0.3))
        draw_joint(random, of, cpus);
    if (chance(random, 0.08))
        draw_burst(random, of);
    of->marks_steps = of->consumer.cpu_ms + of->consumer.wait_ms > 0 && chance(random, 0.15);
    of->load = chance(random, 0.25) ? between(random, 1, 4) : 0;
    scale_lengths(of, cpus, items_per_s);
    if (has_backlog)
        draw_backlog(random, of, items_per_s);
}

/* A wait that a timer can keep, a task whose end a trial can await. */
static bool is_measurable(double ms)
{
    return ms <= 0 || (ms >= 0.5 && ms <= 4000);
}

static bool can_run(const scene *of)
{
    bool can = is_measurable(of->source.wait_ms) && is_measurable(of->consumer.wait_ms) &&
               of->source.cpu_ms <= 4000 && of->consumer.cpu_ms <= 4000;
    for (uint32_t i = 0; i < SCENE_STAGES; i++) {
        const scene_work *w = &of->stages[i].work;
        can = can && is_measurable(w->wait_ms) && w->cpu_ms <= 4000 && w->tail_ms <= 4000 && w->giant_cpu_ms <= 4000;
        can = can && (w->fail_share <= 0 || is_measurable(w->fail_length * w->wait_ms));
    }
    for (uint32_t i = 0; i < SCENE_RESOURCES; i++)
        can = can && is_measurable(of->resources[i].service_ms);
    return can;
}

/* -- in words */

typedef struct words {
    char *text;
    size_t size, length;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *to, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(to->text + to->length, to->size - to->length, format, values);
    va_end(values);
    to->length += length > 0 && (size_t)length < to->size - to->length ? (size_t)length : 0;
}

static void say_work(words *to, const scene *of, const scene_work *w)
{
    const char *and = "";
    if (w->cpu_ms > 0) {
        say(to, "%.4g ms compute", w->cpu_ms);
        and = " and ";
    }
    if (w->wait_ms > 0) {
        say(to, "%s%.4g ms wait", and, w->wait_ms);
        and = " and ";
    }
    if (w->uses) {
        const scene_resource *r = &of->resources[w->uses - 1];
        say(to, "%s%.4g ms ", and, r->service_ms);
        if (r->servers > 1)
            say(to, "semaphore of %u", r->servers);
        else
            say(to, "%s", r->computes ? "lock while computing" : "disk");
        say(to, "%s", r->exponential ? " of random length" : "");
    }
    if (w->burst > 1)
        say(to, " after each %u items", w->burst);
    if (w->exponential)
        say(to, " of random length");
    if (w->every)
        say(to, ", each %u-th %.4g ms", w->every, w->tail_ms + w->giant_cpu_ms);
    if (w->fail_share > 0)
        say(to, ", %.0f %% fail in %.2g x the time", 100 * w->fail_share, w->fail_length);
    if (w->growth > 0)
        say(to, ", %.0f %% longer each second", 100 * w->growth);
}

static void say_scene(random_scene *into)
{
    const scene *of = &into->scene;
    words to = { into->line, sizeof into->line, 0 };
    if (of->source.cpu_ms + of->source.wait_ms > 0) {
        say(&to, "source ");
        say_work(&to, of, &of->source);
        say(&to, "%s", of->backlog_items ? "" : ", ");
    }
    if (of->backlog_items)
        say(&to, " after %u items at once, ", of->backlog_items);
    if (of->shape == SCENE_MERGE) {
        say(&to, "source ");
        say_work(&to, of, &of->stages[2].work);
        say(&to, ", ");
    }
    for (uint32_t i = 0; i < SCENE_STAGES && of->stages[i].name; i++) {
        const scene_stage *stage = &of->stages[i];
        say(&to, "%s%s %u x ", i > 0 ? ", " : "", stage->name, stage->slots);
        say_work(&to, of, &stage->work);
        if (of->alternates && stage->later.cpu_ms + stage->later.wait_ms > 0) {
            say(&to, " (every other %.1f s: ", of->change_s);
            say_work(&to, of, &stage->later);
            say(&to, ")");
        }
    }
    if (of->consumer.cpu_ms + of->consumer.wait_ms > 0) {
        say(&to, ", %s ", of->marks_steps ? "training loop" : "consumer");
        say_work(&to, of, &of->consumer);
    }
    if (of->load)
        say(&to, ", %u other program%s", of->load, of->load > 1 ? "s" : "");
    say(&to, ", %u thread%s", of->threads, of->threads > 1 ? "s" : "");
}

int random_scene_count_answers(const char *text)
{
    int num = 0;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        num++;
        word += strcspn(word, " ");
    }
    return num;
}

void random_scene_draw(uint64_t seed, uint64_t number, uint32_t cpus, random_scene *into)
{
    uint64_t random = weir__random_seed(seed, number);
    *into = (random_scene){ .num_redrawn = 0 };
    for (;; into->num_redrawn++) {
        draw_once(&random, cpus, &into->scene);
        scene_truth_find(&into->scene, cpus, NULL, &into->truth);
        if (can_run(&into->scene) && !into->truth.is_close &&
            random_scene_count_answers(into->truth.answers) <= RANDOM_MOST_ANSWERS)
            break;
    }
    snprintf(into->name, sizeof into->name, "random %llu", (unsigned long long)number);
    into->scene.name = into->name;
    into->scene.truth = into->truth.answers;
    say_scene(into);
}
