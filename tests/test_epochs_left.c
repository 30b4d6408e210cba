/*
 * What is left of an epoch is what is delivered. This holds for random numbers of items, ranks and batches, each
 * order and share, with items that fail, from any epoch and after any resume. And a run that begins at an epoch is
 * the rest of a run that begins with the first.
 *
 *     WEIR_SEED=N  the random choices
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/sampler.h>
#include <weir/stages.h>

#include "common/random.h"

enum { NUM_EPOCHS = 3, MAX_RANKS = 5, MAX_ITEMS = 70, NUM_CASES = 100 };

static uint64_t chance_state;

static uint64_t below(uint64_t limit)
{
    return weir__random_below(&chance_state, limit);
}

/* A job, apart from its rank. */
typedef struct left_job {
    weir_sampler_config sampler;
    size_t batch_items;
    bool drop_last;
    uint64_t failing; /* the item that always fails */
    double sizes[MAX_ITEMS];
    uint64_t groups[MAX_ITEMS];
} left_job;

static void draw_job(left_job *job)
{
    memset(job, 0, sizeof *job);
    uint64_t num_items = 2 * MAX_RANKS + below(MAX_ITEMS - 2 * MAX_RANKS + 1);
    job->sampler = (weir_sampler_config){
        .num_items = num_items,
        .seed = below(100),
        .order = (weir_sampler_order)below(WEIR_SAMPLER_GROUPS + 1),
        .share = (weir_sampler_share)below(WEIR_SHARE_DROP + 1),
        .num_samples = below(3) ? 0 : MAX_RANKS + below(100),
    };
    for (uint64_t i = 0; i < num_items; i++) {
        job->sizes[i] = (double)below(20);
        job->groups[i] = below(9);
    }
    if (job->sampler.order >= WEIR_SAMPLER_BLOCKS)
        job->sampler.block_items = 1 + below(20);
    if (job->sampler.order == WEIR_SAMPLER_BUCKETS) {
        job->sampler.sizes = job->sizes;
        job->sampler.num_buckets = 1 + (uint32_t)below(4);
    }
    if (job->sampler.order == WEIR_SAMPLER_GROUPS)
        job->sampler.groups = job->groups;
    job->batch_items = 1 + below(7);
    job->drop_last = below(2);
    job->failing = below(num_items);
}

static int fill_entry(void *self, weir_entry *entry, weir_error *error)
{
    (void)self;
    (void)error;
    entry->path = strdup("a clip");
    return entry->path ? WEIR_OK : WEIR_ENOMEM;
}

static int fail_one(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const left_job *job = weir_task_config(task);
    const weir_entry *entry = in->data;
    (void)worker;
    if (entry->number == job->failing)
        return weir_task_fail(task, WEIR_EDATA, 0, "damaged");
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op fail_one_op = { .name = "fail_one", .run = fail_one };

static weir_pipeline *start_job(const left_job *job, weir_world world, weir_pipeline_options options)
{
    weir_sampler_source_config source = {
        .sampler = job->sampler, .items = { .fill = fill_entry }, .dataset = 99, .failed = WEIR_FAILED_REPLACE
    };
    source.sampler.world = world;
    options.threads = 1;
    options.checkpoints = WEIR_CHECKPOINTS_DONE;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    weir_builder_pipe(builder, &fail_one_op, job, 0, NULL);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ job->batch_items, job->drop_last }, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

static weir_sampler *make_sampler(const left_job *job, weir_world world)
{
    weir_sampler_config config = job->sampler;
    weir_sampler *sampler;
    weir_error error = { 0 };
    config.world = world;
    if (weir_sampler_new(&config, &sampler, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return sampler;
}

static void resume_sampler(weir_sampler *sampler, char *const *texts, size_t num_texts)
{
    weir_error error = { 0 };
    if (weir_sampler_resume(sampler, (const char *const *)texts, num_texts, 0, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

static void assert_left(const weir_sampler *sampler, const left_job *job, uint64_t items, uint64_t batches)
{
    uint64_t items_left = weir_sampler_left(sampler);
    uint64_t batches_left = weir_sampler_batches_left(sampler, job->batch_items, job->drop_last);
    bool has_all =
        job->drop_last ? items <= items_left && items_left - items < job->batch_items : items == items_left;
    if (batches != batches_left || !has_all)
        fail_msg("%" PRIu64 " items in %" PRIu64 " batches are left, %" PRIu64 " in %" PRIu64 " were delivered",
                 items_left, batches_left, items, batches);
}

/* Runs to the end, and compares each epoch from `epoch` on with what the sampler says. */
static void check_rest(weir_pipeline *pipeline, weir_sampler *sampler, const left_job *job, uint64_t epoch)
{
    weir_item item;
    uint64_t num_items = 0, num_batches = 0;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_OK) {
            assert_int_equal(item.epoch, epoch);
            num_items += ((const weir_batch *)item.data)->num_items;
            num_batches++;
            weir_item_release(&item);
            continue;
        }
        assert_int_equal(weir_sampler_begin(sampler, epoch++), WEIR_OK);
        assert_left(sampler, job, num_items, num_batches);
        num_items = num_batches = 0;
    }
    if (status != WEIR_EOF) {
        weir_error error = { 0 };
        weir_pipeline_error(pipeline, NULL, &error);
        if (strstr(error.message,
                   "cannot keep its number of items")) /* the few that could be there are all the failing one */
            return;
        fail_msg("%s: %s", weir_status_text(status), error.message);
    }
    assert_int_equal(epoch, NUM_EPOCHS);
}

/* What a checkpoint made now leaves of the epoch. */
static uint64_t left_now(weir_pipeline *pipeline, weir_sampler *sampler, uint64_t epoch)
{
    char *text;
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    resume_sampler(sampler, &text, 1);
    assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
    free(text);
    return weir_sampler_left(sampler);
}

/* Takes some batches, acknowledges most of them, and follows with the sampler what is left. Returns the checkpoint. */
static char *run_part(weir_pipeline *pipeline, weir_sampler *sampler, const left_job *job, uint64_t num_takes)
{
    weir_item item;
    char *text;
    int status = WEIR_OK;
    for (uint64_t i = 0; i < num_takes && (status == WEIR_OK || status == WEIR_EPOCH); i++) {
        status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
        if (status != WEIR_OK)
            continue;
        uint64_t before = left_now(pipeline, sampler, item.epoch);
        bool is_done = below(5) > 0;
        uint64_t num_items = is_done ? ((const weir_batch *)item.data)->num_items : 0;
        if (is_done)
            assert_int_equal(weir_item_done(pipeline, &item), WEIR_OK);
        uint64_t dropped =
            job->drop_last ? job->batch_items - 1 : 0; /* they are done as soon as the end is reached */
        assert_in_range(before - left_now(pipeline, sampler, item.epoch), num_items, num_items + dropped);
        weir_item_release(&item);
    }
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_pipeline_free(pipeline);
    return text;
}

/* The epoch with which a pipeline of these texts begins. */
static uint64_t first_epoch(char *const *texts, size_t num_texts)
{
    uint64_t epoch = UINT64_MAX;
    for (size_t i = 0; i < num_texts; i++) {
        weir_checkpoint *checkpoint;
        weir_error error = { 0 };
        assert_int_equal(weir_checkpoint_read(texts[i], &checkpoint, &error), WEIR_OK);
        epoch = checkpoint->epoch < epoch ? checkpoint->epoch : epoch;
        weir_checkpoint_free(checkpoint);
    }
    return epoch;
}

static void check_resumed(const left_job *job, weir_world world, char **texts, size_t num_texts)
{
    weir_sampler *sampler = make_sampler(job, world);
    resume_sampler(sampler, texts, num_texts);
    weir_pipeline *pipeline = start_job(
        job, world, (weir_pipeline_options){ .resume = (const char *const *)texts, .num_resume = num_texts });
    check_rest(pipeline, sampler, job, first_epoch(texts, num_texts));
    weir_pipeline_free(pipeline);
    weir_sampler_free(sampler);
}

static void check_case(const left_job *job, uint32_t num_ranks, uint32_t new_ranks)
{
    char *texts[MAX_RANKS];
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        weir_world world = { .rank = rank, .size = num_ranks };
        uint64_t begin = below(NUM_EPOCHS);
        weir_sampler *sampler = make_sampler(job, world);
        weir_pipeline *whole = start_job(job, world, (weir_pipeline_options){ .begin_epoch = begin });
        check_rest(whole, sampler, job, begin);
        weir_pipeline_free(whole);
        weir_pipeline *pipeline = start_job(job, world, (weir_pipeline_options){ 0 });
        texts[rank] = run_part(pipeline, sampler, job, below(15));
        weir_sampler_free(sampler);
    }
    for (uint32_t rank = 0; rank < num_ranks; rank++)
        check_resumed(job, (weir_world){ .rank = rank, .size = num_ranks }, &texts[rank], 1);
    for (uint32_t rank = 0; rank < new_ranks; rank++)
        check_resumed(job, (weir_world){ .rank = rank, .size = new_ranks }, texts, num_ranks);
    for (uint32_t rank = 0; rank < num_ranks; rank++)
        free(texts[rank]);
}

TEST_CASE(what_is_left_of_each_epoch_is_what_is_delivered)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("WEIR_SEED=%" PRIu64 "\n", seed);
    chance_state = seed;
    for (int i = 0; i < NUM_CASES; i++) {
        static left_job job;
        draw_job(&job);
        uint32_t num_ranks = 1 + (uint32_t)below(MAX_RANKS);
        check_case(&job, num_ranks, 1 + (uint32_t)below(MAX_RANKS));
    }
}

TEST_CASE(a_known_epoch_has_its_known_numbers)
{
    left_job job = { .sampler = { .num_items = 10, .share = WEIR_SHARE_PAD }, .batch_items = 4, .failing = 99 };
    weir_world world = { .rank = 1, .size = 3 };
    weir_sampler *sampler = make_sampler(&job, world);
    assert_int_equal(weir_sampler_left(sampler), 4);
    assert_int_equal(weir_sampler_batches_left(sampler, 4, true), 1);
    assert_int_equal(weir_sampler_batches_left(sampler, 3, true), 1);
    assert_int_equal(weir_sampler_batches_left(sampler, 3, false), 2);
    assert_int_equal(weir_sampler_batches_left(sampler, 5, true), 0);
    assert_int_equal(weir_sampler_batches_left(sampler, 0, false), 0);
    weir_pipeline *pipeline = start_job(&job, world, (weir_pipeline_options){ 0 });
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    weir_item_done(pipeline, &item);
    weir_item_release(&item);
    char *text;
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    resume_sampler(sampler, &text, 1);
    assert_int_equal(weir_sampler_count(sampler), 4);
    assert_int_equal(weir_sampler_left(sampler), 0);
    assert_int_equal(weir_sampler_begin(sampler, 1), WEIR_OK);
    assert_int_equal(weir_sampler_left(sampler), 4);
    free(text);
    weir_pipeline_free(pipeline);
    weir_sampler_free(sampler);
}

TEST_CASE(a_sampler_is_not_resumed_from_something_else)
{
    left_job job = { .sampler = { .num_items = 10, .seed = 3 }, .batch_items = 4 }, other = job;
    other.sampler.seed = 4;
    weir_world world = { .size = 1 };
    weir_pipeline *pipeline = start_job(&other, world, (weir_pipeline_options){ 0 });
    char *text;
    weir_error error = { 0 };
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_sampler *sampler = make_sampler(&job, world);
    assert_int_equal(weir_sampler_resume(sampler, (const char *const *)&text, 1, 0, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "seed=4"));
    error = (weir_error){ 0 };
    assert_int_equal(weir_sampler_resume(sampler, (const char *const *)&text, 1, 1, &error), WEIR_EDATA);
    const char *nothing = "nothing";
    error = (weir_error){ 0 };
    assert_int_equal(weir_sampler_resume(sampler, &nothing, 1, 0, &error), WEIR_EDATA);
    free(text);
    weir_sampler_free(sampler);
    weir_pipeline_free(pipeline);
}

/* ---- beginning at an epoch --------------------------------------------------------------------------------------- */

/* Two sources, merged at random. */
static weir_pipeline *start_merged(uint64_t begin_epoch, char *const *texts, size_t num_texts)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    for (uint64_t i = 0; i < 2; i++) {
        weir_sampler_source_config source = {
            .sampler = { .num_items = 20, .order = WEIR_SAMPLER_SHUFFLED, .seed = i, .world = { .size = 1 } },
            .items = { .fill = fill_entry },
        };
        weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    }
    weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_RANDOM, .seed = 5 }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .threads = 1,
                                      .begin_epoch = begin_epoch,
                                      .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                      .resume = (const char *const *)texts,
                                      .num_resume = num_texts };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* One word for each item, from this epoch on; at most `most` items. */
static void list_items(weir_pipeline *pipeline, uint64_t from, uint64_t most, char *list, size_t size)
{
    weir_item item;
    size_t length = strlen(list);
    int status = WEIR_OK;
    while (most > 0 &&
           ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH)) {
        if (status == WEIR_EPOCH)
            continue;
        const weir_entry *entry = item.data;
        if (item.epoch >= from)
            length +=
                (size_t)snprintf(list + length, size - length, "%" PRIu64 "/%" PRIu64 "/%" PRIu64 ":%" PRIu64 " ",
                                 item.epoch, entry->epoch, (uint64_t)item.source, entry->number);
        most--;
        weir_item_release(&item);
    }
}

TEST_CASE(a_run_that_begins_at_an_epoch_is_the_rest_of_the_whole_run)
{
    for (uint64_t epoch = 0; epoch <= NUM_EPOCHS; epoch++) {
        static char whole[1 << 14], rest[1 << 14];
        whole[0] = rest[0] = 0;
        weir_pipeline *pipeline = start_merged(0, NULL, 0);
        list_items(pipeline, epoch, UINT64_MAX, whole, sizeof whole);
        weir_pipeline_free(pipeline);
        pipeline = start_merged(epoch, NULL, 0);
        list_items(pipeline, 0, UINT64_MAX, rest, sizeof rest);
        weir_pipeline_free(pipeline);
        assert_string_equal(rest, whole);
        assert_true(epoch == NUM_EPOCHS || strlen(rest) > 100);
    }
}

TEST_CASE(a_run_that_began_at_an_epoch_can_be_resumed)
{
    static char parts[1 << 14];
    parts[0] = 0;
    weir_pipeline *pipeline = start_merged(1, NULL, 0);
    list_items(pipeline, 0, 50, parts, sizeof parts);
    char *text;
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_pipeline_free(pipeline);
    pipeline = start_merged(0, &text, 1);
    list_items(pipeline, 0, UINT64_MAX, parts, sizeof parts);
    weir_pipeline_free(pipeline);
    free(text);
    for (uint64_t epoch = 1; epoch < NUM_EPOCHS; epoch++)
        for (uint64_t source = 0; source < 2; source++)
            for (uint64_t number = 0; number < 20; number++) {
                char word[64];
                snprintf(word, sizeof word, "%" PRIu64 "/%" PRIu64 "/%" PRIu64 ":%" PRIu64 " ", epoch, epoch, source,
                         number);
                const char *found = strstr(parts, word);
                assert_non_null(found);
                assert_null(strstr(found + 1, word));
            }
    assert_null(strstr(parts, "0/0/"));
}

static int refuse_begin(uint32_t epochs, const char *text, weir_error *error)
{
    weir_pipeline *pipeline;
    weir_sampler_source_config source = { .sampler = { .num_items = 3, .world = { .size = 1 } },
                                          .items = { .fill = fill_entry },
                                          .dataset = 99 };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = epochs });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = {
        .begin_epoch = 1, .checkpoints = WEIR_CHECKPOINTS_DELIVERED, .resume = &text, .num_resume = text != NULL
    };
    return weir_builder_build(builder, &options, &pipeline, error);
}

TEST_CASE(an_epoch_to_begin_with_is_refused_without_epochs_and_with_a_resume)
{
    weir_error error = { 0 };
    assert_int_equal(refuse_begin(0, NULL, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "source src has no epochs"));
    left_job job = { .sampler = { .num_items = 3 }, .batch_items = 1, .failing = 99 };
    weir_pipeline *pipeline = start_job(&job, (weir_world){ .size = 1 }, (weir_pipeline_options){ 0 });
    char *text;
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_pipeline_free(pipeline);
    error = (weir_error){ 0 };
    assert_int_equal(refuse_begin(3, text, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "begin_epoch and resume"));
    free(text);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
