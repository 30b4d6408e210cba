/*
 * Equal steps: each rank delivers exactly the number of items that its share promises, whichever items fail. 24 items over
 * 4 ranks, three of them unusable, as clips that were truncated after the dataset was indexed.
 */
#include <inttypes.h>

#include <weir/collate.h>
#include <weir/sampler.h>
#include <weir/stages.h>
#include <weir/video.h>

#include "tests/support.h"

enum { NUM_ITEMS = 24, NUM_RANKS = 4, NUM_EPOCHS = 3, BATCH = 5, MAX_DELIVERED = 64 };

static bool is_broken(uint64_t number)
{
    return number == 5 || number == 9 || number == 10;
}

/* ---- operations ---------------------------------------------------------------------------------------------------- */

static int pass_usable(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weir_entry *entry = in->data;
    (void)worker;
    if (is_broken(entry->number))
        return weir_task_fail(task, WEIR_EDATA, 0, "truncated");
    weir_item_move(out, in);
    return WEIR_OK;
}

/* Takes the input out before it fails, or completes later. */
static int take_usable(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weir_entry *entry = in->data;
    weir_item taken = { 0 };
    (void)worker;
    (void)out;
    bool fails = is_broken(entry->number);
    weir_item_move(&taken, in);
    if (fails)
        weir_task_fail(task, WEIR_EDATA, 0, "truncated");
    weir_task_complete(task, fails ? WEIR_EDATA : WEIR_OK, &taken);
    weir_item_release(&taken);
    return WEIR_PENDING;
}

/* Two chunks of a usable one; a broken one fails after the first. */
static int pass_chunks(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weir_entry *entry = in->data;
    (void)worker;
    bool is_first = weir_task_num_chunks(task) == 0;
    if (!is_first && is_broken(entry->number))
        return weir_task_fail(task, WEIR_EDATA, 0, "truncated");
    out->data = strdup("a chunk");
    out->release = weir_release_free;
    return is_first ? WEIR_MORE : WEIR_OK;
}

static int fail_always(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EDATA, 0, "unusable");
}

static int pass_any(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op usable_op = {
    .name = "decode", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ENTRY, .run = pass_usable
};
static const weir_op later_op = {
    .name = "decode", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ENTRY, .run = take_usable
};
static const weir_op failing_op = {
    .name = "decode", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ENTRY, .run = fail_always
};
static const weir_op passing_op = {
    .name = "open", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ENTRY, .run = pass_any
};

static int fill(void *self, weir_entry *entry, weir_error *error)
{
    (void)self;
    if (asprintf(&entry->path, "%" PRIu64 ".mp4", entry->number) < 0)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory");
    return WEIR_OK;
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

typedef struct rank_job {
    weir_sampler_config sampler;
    weir_sampler_failed failed;
    const weir_op *op;    /* of the first stage */
    const weir_op *after; /* of a second stage; NULL = none */
    bool collects;        /* steps are batches */
    weir_stage_options stage;
    uint32_t threads;
    const char *const *texts; /* of checkpoints */
    size_t num_texts;
    uint32_t most; /* stop after this number of results; 0 = at the end */
} rank_job;

typedef struct rank_result {
    uint64_t steps[NUM_EPOCHS];
    uint64_t numbers[NUM_EPOCHS][MAX_DELIVERED]; /* of the items, by their place */
    bool stands_in[NUM_EPOCHS][MAX_DELIVERED];
    uint64_t num_failed;
    int status;
    weir_error error;
    char *text; /* the checkpoint; to be freed */
} rank_result;

static weir_pipeline *start_rank(const rank_job *job)
{
    weir_sampler_source_config source = {
        .sampler = job->sampler, .items = { .fill = fill }, .dataset = 1, .failed = job->failed
    };
    weir_pipeline_options options = { .threads = job->threads ? job->threads : 1,
                                      .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                      .resume = job->texts,
                                      .num_resume = job->num_texts };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    weir_builder_pipe(builder, job->op, NULL, 0, &job->stage);
    if (job->after)
        weir_builder_pipe(builder, job->after, NULL, 0, NULL);
    if (job->collects)
        weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = BATCH }, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

static void note_result(const rank_job *job, const weir_item *item, uint64_t epoch, rank_result *to)
{
    uint64_t place = to->steps[epoch]++;
    if (job->collects)
        return;
    const weir_entry *entry = item->data;
    char path[32];
    assert_true(item->seq < MAX_DELIVERED);
    if (job->stage.output_order == WEIR_ORDER_INPUT && !job->num_texts)
        assert_int_equal(item->seq, place);
    assert_int_equal(item->epoch, epoch);
    assert_int_equal(entry->epoch, epoch);
    snprintf(path, sizeof path, "%" PRIu64 ".mp4", entry->number);
    assert_string_equal(item->label, path);
    assert_string_equal(entry->path, path);
    to->numbers[epoch][item->seq] = entry->number;
    to->stands_in[epoch][item->seq] = entry->stands_in;
}

/* epoch: with which a resumed rank begins */
static void run_rank(const rank_job *job, uint64_t epoch, rank_result *to)
{
    weir_pipeline *pipeline = start_rank(job);
    weir_item item = { 0 };
    weir_account account;
    uint32_t num_taken = 0;
    *to = (rank_result){ 0 };
    do {
        to->status = weir_pipeline_next(pipeline, &item, 60 * WEIR_SECOND);
        if (to->status == WEIR_OK)
            note_result(job, &item, epoch, to);
        epoch += to->status == WEIR_EPOCH;
        weir_item_release(&item);
    } while ((to->status == WEIR_OK && (!job->most || ++num_taken < job->most)) || to->status == WEIR_EPOCH);
    weir_pipeline_error(pipeline, NULL, &to->error);
    assert_int_equal(weir_pipeline_account(pipeline, job->op->name, &account), WEIR_OK);
    to->num_failed = account.failed;
    assert_int_equal(account.taken + account.created, account.passed_on + account.skipped + account.failed +
                                                          account.dropped + account.merged + account.in_flight);
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &to->text), WEIR_OK);
    weir_pipeline_free(pipeline);
}

static rank_job job_of(uint32_t rank, weir_sampler_share share)
{
    return (rank_job){ .sampler = { .num_items = NUM_ITEMS,
                                    .seed = 3,
                                    .order = WEIR_SAMPLER_SHUFFLED,
                                    .share = share,
                                    .world = { .rank = rank, .size = NUM_RANKS } },
                       .op = &usable_op };
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void run_four_ranks(const rank_job *like, uint64_t expected, uint64_t *num_failed)
{
    for (uint32_t rank = 0; rank < NUM_RANKS; rank++) {
        rank_job job = *like;
        rank_result result;
        job.sampler.world.rank = rank;
        run_rank(&job, 0, &result);
        if (result.status != WEIR_EOF)
            fail_msg("%s", result.error.message);
        for (int epoch = 0; epoch < NUM_EPOCHS; epoch++)
            if (result.steps[epoch] != expected)
                fail_msg("rank %u, epoch %d: %" PRIu64 " steps instead of %" PRIu64, rank, epoch, result.steps[epoch],
                         expected);
        *num_failed += result.num_failed;
        free(result.text);
    }
}

/* 6 items for each rank make a batch of 5 and one of 1; with one item less there is no second step. */
TEST_CASE(ranks_make_equal_steps_when_clips_fail)
{
    rank_job job = job_of(0, WEIR_SHARE_PAD);
    uint64_t num_failed = 0;
    job.collects = true;
    run_four_ranks(&job, 2, &num_failed);
    assert_true(num_failed >= 3 * NUM_EPOCHS);
}

TEST_CASE(each_order_and_concurrency_keeps_equal_steps)
{
    static double weights[NUM_ITEMS];
    for (int i = 0; i < NUM_ITEMS; i++)
        weights[i] = 1 + i % 3;
    for (uint32_t which = 0; which < 96; which++) {
        rank_job job = job_of(0, which % 2 ? WEIR_SHARE_PAD : WEIR_SHARE_DROP);
        uint64_t num_failed = 0;
        job.sampler.num_items = NUM_ITEMS - 1;
        switch (which / 2 % 6) {
        case 0: job.sampler.order = WEIR_SAMPLER_LISTED; break;
        case 1: job.sampler.order = WEIR_SAMPLER_BLOCKS, job.sampler.block_items = 5; break;
        case 2: job.sampler.replacement = true; break;
        case 3: job.sampler.weights = weights; break;
        case 4: job.sampler.weights = weights, job.sampler.replacement = true; break;
        default: break;
        }
        job.stage.output_order = which / 12 % 2 ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION;
        job.stage.concurrency = which / 24 % 2 ? 4 : 1;
        job.threads = which / 24 % 2 ? 3 : 1;
        job.op = which / 48 ? &later_op : &usable_op;
        run_four_ranks(&job, which % 2 ? 6 : 5, &num_failed);
        assert_true(num_failed > 0);
    }
}

/* Under the number of the one that failed, and always the same. */
TEST_CASE(a_failed_clip_is_replaced_by_the_next_of_the_share)
{
    for (weir_sampler_failed failed = WEIR_FAILED_DEFAULT; failed <= WEIR_FAILED_MASK; failed++) {
        rank_job job = job_of(1, WEIR_SHARE_PAD);
        rank_result result;
        weir_sampler *sampler;
        job.failed = failed;
        job.stage = (weir_stage_options){ .concurrency = 3, .output_order = WEIR_ORDER_INPUT };
        job.threads = 2;
        run_rank(&job, 0, &result);
        assert_int_equal(result.status, WEIR_EOF);
        assert_int_equal(weir_sampler_new(&job.sampler, &sampler, NULL), WEIR_OK);
        uint64_t num_replaced = 0;
        for (uint64_t epoch = 0; epoch < NUM_EPOCHS; epoch++) {
            assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
            uint64_t count = weir_sampler_count(sampler);
            for (uint64_t place = 0; place < count; place++) {
                uint64_t at = place;
                while (is_broken(weir_sampler_at(sampler, at)))
                    at = (at + 1) % count;
                assert_int_equal(result.numbers[epoch][place], weir_sampler_at(sampler, at));
                assert_int_equal(result.stands_in[epoch][place], failed == WEIR_FAILED_MASK && at != place);
                num_replaced += at != place;
            }
        }
        assert_true(num_replaced > 0);
        assert_true(result.num_failed >= num_replaced);
        weir_sampler_free(sampler);
        free(result.text);
    }
}

TEST_CASE(what_fails_is_left_out_where_nothing_was_promised_or_as_chosen)
{
    for (int is_chosen = 0; is_chosen < 2; is_chosen++) {
        uint64_t num_delivered = 0;
        for (uint32_t rank = 0; rank < NUM_RANKS; rank++) {
            rank_job job = job_of(rank, is_chosen ? WEIR_SHARE_PAD : WEIR_SHARE_EXACT);
            rank_result result;
            job.failed = is_chosen ? WEIR_FAILED_LEAVE_OUT : WEIR_FAILED_DEFAULT;
            run_rank(&job, 0, &result);
            assert_int_equal(result.status, WEIR_EOF);
            num_delivered += result.steps[0];
            free(result.text);
        }
        assert_int_equal(num_delivered, NUM_ITEMS - 3);
    }
}

TEST_CASE(the_pipeline_fails_if_the_whole_share_fails)
{
    rank_job job = job_of(2, WEIR_SHARE_PAD);
    rank_result result;
    job.op = &failing_op;
    run_rank(&job, 0, &result);
    assert_int_equal(result.status, WEIR_EFAILED);
    assert_int_equal(result.num_failed, NUM_ITEMS / NUM_RANKS);
    assert_non_null(strstr(result.error.message, "all 6 items that could be in this place have failed"));
    assert_non_null(strstr(result.error.message, "unusable"));
    assert_null(strstr(result.text, "\ndone 0 1")); /* the place is not done */
    free(result.text);
}

TEST_CASE(max_failures_counts_what_is_replaced)
{
    rank_job job = job_of(0, WEIR_SHARE_PAD);
    rank_result result;
    job.op = &failing_op;
    job.stage.max_failures = (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = 2 };
    run_rank(&job, 0, &result);
    assert_int_equal(result.status, WEIR_EFAILED);
    assert_non_null(strstr(result.error.message, "3 of 3 tasks failed, more than max_failures allows"));
    free(result.text);
}

TEST_CASE(a_failure_in_a_later_stage_fails_the_pipeline_and_says_why)
{
    rank_job job = job_of(0, WEIR_SHARE_PAD);
    rank_result result;
    job.op = &passing_op;
    job.after = &failing_op;
    run_rank(&job, 0, &result);
    assert_int_equal(result.status, WEIR_EFAILED);
    assert_non_null(strstr(result.error.message, "only failures in the first stage can be replaced"));
    assert_non_null(strstr(result.error.message, "unusable"));
    free(result.text);
}

TEST_CASE(a_clip_that_fails_after_a_chunk_is_not_replaced)
{
    static const weir_op chunks_op = {
        .name = "decode", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_TEXT, .run = pass_chunks
    };
    rank_job job = job_of(0, WEIR_SHARE_PAD);
    rank_result result;
    job.sampler.world.size = 1;
    job.op = &chunks_op;
    job.collects = true; /* its results are not looked at */
    run_rank(&job, 0, &result);
    assert_int_equal(result.status, WEIR_EOF);
    assert_int_equal(result.num_failed, 3 * NUM_EPOCHS);
    assert_int_equal(result.steps[0], (2 * NUM_ITEMS - 3 + BATCH - 1) / BATCH);
    free(result.text);
}

/* Each item is replaced by one of its own source; the second sampler has promised nothing. */
TEST_CASE(behind_a_merge_each_source_keeps_its_promise)
{
    weir_pipeline *pipeline;
    weir_item item = { 0 };
    weir_account account;
    uint64_t counts[2] = { 0 };
    int status;
    weir_builder *builder = weir_builder_new();
    for (int i = 0; i < 2; i++) {
        weir_sampler_source_config source = { .sampler = job_of(0, i ? WEIR_SHARE_EXACT : WEIR_SHARE_PAD).sampler,
                                              .items = { .fill = fill } };
        source.sampler.world.size = 1;
        weir_source_sampler(builder, &source, NULL);
    }
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_pipe(builder, &later_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    while ((status = weir_pipeline_next(pipeline, &item, 60 * WEIR_SECOND)) == WEIR_OK) {
        counts[item.source]++;
        weir_item_release(&item);
    }
    assert_int_equal(status, WEIR_EOF);
    assert_int_equal(counts[0], NUM_ITEMS);
    assert_int_equal(counts[1], NUM_ITEMS - 3);
    assert_int_equal(weir_pipeline_account(pipeline, NULL, &account), WEIR_OK);
    assert_int_equal(account.taken + account.created, account.passed_on + account.failed);
    assert_true(account.failed >= 6);
    weir_pipeline_free(pipeline);
}

/* Four ranks stop in the middle of an epoch; three, or five, go on. */
TEST_CASE(equal_steps_are_kept_by_a_resume_on_another_number_of_ranks)
{
    static const uint32_t sizes[] = { 1, 3, 4, 5 };
    for (int share = WEIR_SHARE_PAD; share <= WEIR_SHARE_DROP; share++)
        for (size_t i = 0; i < LENGTH(sizes); i++) {
            rank_result results[NUM_RANKS];
            const char *texts[NUM_RANKS];
            for (uint32_t rank = 0; rank < NUM_RANKS; rank++) {
                rank_job job = job_of(rank, (weir_sampler_share)share);
                job.most = 1 + rank % 3;
                job.stage.concurrency = 2;
                run_rank(&job, 0, &results[rank]);
                texts[rank] = results[rank].text;
            }
            uint64_t num_left = NUM_ITEMS - (1 + 2 + 3 + 1), size = sizes[i];
            uint64_t expected = share == WEIR_SHARE_PAD ? (num_left + size - 1) / size : num_left / size;
            uint64_t next = share == WEIR_SHARE_PAD ? (NUM_ITEMS + size - 1) / size : NUM_ITEMS / size;
            for (uint32_t rank = 0; rank < size; rank++) {
                rank_job job = job_of(rank, (weir_sampler_share)share);
                rank_result result;
                job.sampler.world.size = sizes[i];
                job.texts = texts;
                job.num_texts = NUM_RANKS;
                run_rank(&job, 0, &result);
                if (result.status != WEIR_EOF)
                    fail_msg("%s", result.error.message);
                if (result.steps[0] != expected || result.steps[1] != next || result.steps[2] != next)
                    fail_msg("share %d, rank %u of %" PRIu64 ": %" PRIu64 " %" PRIu64 " %" PRIu64
                             " steps instead of %" PRIu64 " %" PRIu64 " %" PRIu64,
                             share, rank, size, result.steps[0], result.steps[1], result.steps[2], expected, next,
                             next);
                free(result.text);
            }
            for (uint32_t rank = 0; rank < NUM_RANKS; rank++)
                free(results[rank].text);
        }
}

/* Where the rest of an epoch is one clip, which fails, the next of the epoch takes its place. */
TEST_CASE(a_resumed_rank_with_one_broken_clip_left_replaces_it)
{
    rank_result results[2], rest;
    const char *texts[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        rank_job job = job_of(rank, WEIR_SHARE_PAD);
        job.sampler.num_items = 12;
        job.sampler.order = WEIR_SAMPLER_LISTED;
        job.sampler.world.size = 2;
        job.most = rank == 0 ? 5 : 6; /* what is left is item 10, which is broken */
        run_rank(&job, 0, &results[rank]);
        texts[rank] = results[rank].text;
    }
    rank_job job = job_of(0, WEIR_SHARE_PAD);
    job.sampler.num_items = 12;
    job.sampler.order = WEIR_SAMPLER_LISTED;
    job.sampler.world.size = 1;
    job.texts = texts;
    job.num_texts = 2;
    run_rank(&job, 0, &rest);
    assert_int_equal(rest.status, WEIR_EOF);
    assert_int_equal(rest.steps[0], 1);
    assert_int_equal(rest.numbers[0][0], 11);
    assert_int_equal(rest.steps[1], 12);
    free(results[0].text);
    free(results[1].text);
    free(rest.text);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
