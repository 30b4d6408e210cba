#include "engine/resume/tracker_resume.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/resume/tracked.h"

static int load_sets(weir_tracker *tracker, tracked_source *source, const weir_done_source *from)
{
    for (size_t i = 0; i < from->num_sets; i++) {
        const weir_done_set *given = &from->sets[i];
        done_set *set;
        if (weir__tracked_add_set(tracker, source, given->epoch, &set) != WEIR_OK)
            return WEIR_ENOMEM;
        set->low = given->low;
        if (given->num_runs &&
            weir__tracked_make_room(tracker, set, given->runs[given->num_runs - 1].last) != WEIR_OK)
            return WEIR_ENOMEM;
        for (size_t j = 0; j < given->num_runs; j++)
            for (uint64_t seq = given->runs[j].first; seq <= given->runs[j].last; seq++)
                weir__done_set_add(set, seq);
    }
    return WEIR_OK;
}

/* is_new: the source has renumbered its items (weir_op.renumber). */
static int load_chunks(tracked_source *source, const weir_done_source *from, size_t checkpoint, bool is_new)
{
    if (from->num_chunks == 0)
        return WEIR_OK;
    weir_done_chunk *chunks = realloc(source->chunks, (source->num_chunks + from->num_chunks) * sizeof *chunks);
    if (!chunks)
        return WEIR_ENOMEM;
    source->chunks = chunks;
    for (size_t i = 0; i < from->num_chunks; i++) {
        weir_done_chunk chunk = from->chunks[i];
        if (is_new)
            chunk.seq = source->node->op->renumber(source->node->config, checkpoint, chunk.epoch, chunk.seq);
        if (chunk.seq != UINT64_MAX)
            chunks[source->num_chunks++] = chunk;
    }
    return WEIR_OK;
}

static int resume_source(weir_tracker *tracker, uint32_t index, weir_checkpoint *const *given, size_t num_given,
                         weir_error *error)
{
    tracked_source *source = &tracker->sources[index];
    assert(source->node);
    const weir_op *op = source->node->op;
    const weir_done_source *from = index < given[0]->num_sources ? &given[0]->sources[index] : NULL;
    if (!from || given[0]->num_sources != tracker->num_sources || strcmp(from->name, source->node->short_name) != 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the checkpoint is of another pipeline: source %" PRIu32
                              " is \"%s\", here it is \"%s\"",
                              index, from ? from->name : "", source->node->short_name);
    int status =
        op->resume ? op->resume(source->node->config, (const weir_checkpoint *const *)given, num_given, index, error)
                   : WEIR_OK;
    if (!op->renumber && num_given > 1)
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "source \"%s\" can be resumed from one checkpoint only, but %zu are given: only a sampler can divide "
            "what is left among ranks again",
            source->node->short_name, num_given);
    if (status == WEIR_SKIP && !op->renumber)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "source \"%s\" has renumbered its items (WEIR_SKIP), but its operation has no renumber",
                              source->node->short_name);
    if (status < 0)
        return status;
    int loaded = status == WEIR_OK ? load_sets(tracker, source, from) : WEIR_OK;
    for (size_t i = 0; i < num_given && loaded == WEIR_OK; i++)
        loaded = index < given[i]->num_sources
                     ? load_chunks(source, &given[i]->sources[index], i, status == WEIR_SKIP)
                     : WEIR_OK;
    return loaded == WEIR_OK ? WEIR_OK : weir__tracked_fail_memory(error);
}

static void set_epoch(weir_tracker *tracker, uint64_t epoch)
{
    tracker->epochs_delivered = epoch;
    for (uint32_t i = 0; i < tracker->num_sources; i++)
        if (tracker->sources[i].node->core.epochs)
            weir__source_begin_epoch(&tracker->sources[i].node->core, epoch);
}

/* Items before the last one that is done. */
static uint64_t count_left_over(const weir_done_set *set)
{
    uint64_t end = set->num_runs ? set->runs[set->num_runs - 1].last + 1 : set->low, num = end - set->low;
    for (size_t i = 0; i < set->num_runs; i++)
        num -= set->runs[i].last - set->runs[i].first + 1;
    return num;
}

static void add_begun(tracked_source *source, uint64_t end_epoch)
{
    if (end_epoch > source->begun_before)
        source->begun_before = end_epoch;
}

/* What the checkpoint says about epochs, or a source without any, that an earlier run has begun. Returns how many items
   before the last done ones are not done. */
static uint64_t find_begun(tracked_source *source, const weir_done_source *from)
{
    uint64_t num_left_over = 0;
    add_begun(source, from->begun_before);
    for (size_t i = 0; i < from->num_sets; i++) {
        const weir_done_set *set = &from->sets[i];
        if (set->low == 0 && set->num_runs == 0)
            continue;
        add_begun(source, set->epoch + 1);
        num_left_over += count_left_over(set);
    }
    for (size_t i = 0; i < from->num_chunks; i++)
        add_begun(source, from->chunks[i].epoch + 1);
    return num_left_over;
}

/* Also tells the core. For the core, a source without epochs belongs to the first epoch of the run. */
static void note_begun(weir__graph *graph, tracked_source *source, weir_checkpoint *const *given, size_t num_given,
                       size_t index, uint64_t first)
{
    uint64_t counted = 0, noted = 0;
    bool has_epochs = source->node->core.epochs != 0;
    for (size_t i = 0; i < num_given; i++) {
        if (index >= given[i]->num_sources)
            continue;
        const weir_done_source *from = &given[i]->sources[index];
        if (has_epochs)
            add_begun(source, given[i]->epoch);
        counted += find_begun(source, from);
        noted += from->num_left_over;
    }
    source->num_left_over =
        counted > noted ? counted : noted; /* those that were noted before may be among the others */
    graph->num_left_over += source->num_left_over;
    uint64_t begun_before = has_epochs ? source->begun_before : first + (source->begun_before > 0);
    if (begun_before > first && begun_before - first > graph->num_part_epochs)
        graph->num_part_epochs = begun_before - first;
}

static int resume_sources(weir_tracker *tracker, weir__graph *graph, weir_checkpoint *const *given, size_t num_given,
                          weir_error *error)
{
    uint64_t epoch = UINT64_MAX;
    int status = WEIR_OK;
    for (size_t i = 0; i < num_given; i++)
        epoch = given[i]->epoch < epoch ? given[i]->epoch : epoch;
    for (uint32_t i = 0; i < tracker->num_sources && status == WEIR_OK; i++)
        status = resume_source(tracker, i, given, num_given, error);
    set_epoch(tracker, epoch);
    for (uint32_t i = 0; i < tracker->num_sources && status == WEIR_OK; i++)
        note_begun(graph, &tracker->sources[i], given, num_given, i, epoch);
    return status;
}

int weir__tracker_resume(weir_tracker *tracker, weir__graph *graph, const weir_pipeline_options *options,
                         weir_error *error)
{
    size_t num_read = 0;
    weir_checkpoint **given = calloc(options->num_resume, sizeof *given);
    int status = WEIR_OK;
    if (!given)
        return weir__tracked_fail_memory(error);
    while (status == WEIR_OK && num_read < options->num_resume) {
        status = weir_checkpoint_read(options->resume[num_read], &given[num_read], error);
        num_read += status == WEIR_OK;
    }
    if (status == WEIR_OK)
        status = resume_sources(tracker, graph, given, num_read, error);
    while (num_read)
        weir_checkpoint_free(given[--num_read]);
    free(given);
    return status;
}
