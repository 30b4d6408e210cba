/*
 * A training job of one or more ranks is killed (SIGKILL) at random moments, and resumed from its checkpoints, sometimes
 * with another number of ranks. Each rank commits its results and its checkpoint to SQLite in one transaction. At the
 * end each result of each epoch must be there exactly once.
 *
 *     WEIR_KILLS=N  how many kills (default 20)
 *     WEIR_SEED=N   the random choices of the test; when a kill hits is never the same
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>

#include <weir/engine.h>
#include <weir/sampler.h>
#include <weir/stages.h>

#include "common/hash.h"
#include "tests/program.h"

enum { NUM_ORDERS = 10 }; /* of config_of() */
enum { NUM_EPOCHS = 3, MAX_RANKS = 3, ITEMS_PER_KILL = 12, BATCH = 4 };

/* ---- the job ---------------------------------------------------------------------------------------------------- */

typedef struct rank_job {
    const char *path; /* of the database */
    uint64_t num_items;
    uint32_t generation; /* the number of changes of the number of ranks */
    weir_world world;
    uint64_t seed; /* of what may differ between runs */
    bool retry_failed;
} rank_job;

/* What is left of an item. */
typedef struct result {
    uint64_t epoch, number, chunk;
} result;

/* The results that each item has. */
static uint64_t num_results(uint64_t number)
{
    return number % 7 == 3 || number % 11 == 5 ? 0 : number % 5 == 1 ? 3 : 1;
}

static int work(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const weir_entry *entry = in->data;
    uint64_t chunk = weir_task_num_chunks(task);
    if (entry->number % 7 == 3)
        return weir_task_fail(task, WEIR_EDATA, 0, "one that fails");
    if (num_results(entry->number) == 0)
        return WEIR_SKIP;
    result *made = malloc(sizeof *made);
    if (!made)
        return WEIR_ENOMEM;
    *made = (result){ .epoch = entry->epoch, .number = entry->number, .chunk = chunk };
    *out = (weir_item){ .data = made, .release = weir_release_free };
    return chunk + 1 < num_results(entry->number) ? WEIR_MORE : WEIR_OK;
}

static const weir_op work_op = { .name = "work", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ANY, .run = work };

static int fill(void *self, weir_entry *entry, weir_error *error)
{
    (void)self;
    entry->path = strdup("a clip");
    return entry->path ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "no memory");
}

static int build(const rank_job *job, const char *const *texts, size_t num_texts, weir_pipeline **pipeline,
                 weir_error *error)
{
    weir_sampler_source_config source = {
        .sampler = { .num_items = job->num_items, .order = WEIR_SAMPLER_SHUFFLED, .seed = 7, .world = job->world },
        .items = { .fill = fill },
        .dataset = 4711,
    };
    weir_pipeline_options options = {
        .threads = 1 + (uint32_t)(job->seed % 3),
        .checkpoints = job->seed % 2 ? WEIR_CHECKPOINTS_DELIVERED : WEIR_CHECKPOINTS_DONE,
        .resume = texts,
        .num_resume = num_texts,
        .retry_failed = job->retry_failed,
    };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    weir_builder_pipe(
        builder, &work_op, NULL, 0,
        &(weir_stage_options){ .concurrency = 1 + (uint32_t)(job->seed / 2 % 5),
                               .output_order = job->seed % 3 ? WEIR_ORDER_COMPLETION : WEIR_ORDER_INPUT });
    weir_pipe_shuffle(builder, &(weir_shuffle_config){ .num_items = 5 }, NULL);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = BATCH }, NULL);
    weir_builder_sink(builder, NULL);
    return weir_builder_build(builder, &options, pipeline, error);
}

static void must(const char *what, int code, int expected)
{
    if (code == expected)
        return;
    fprintf(stderr, "%s: %d\n", what, code);
    _exit(3);
}

static void run_sql(sqlite3 *db, const char *sql, const uint64_t *numbers, int count, const char *text)
{
    sqlite3_stmt *statement;
    must(sql, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, (int64_t)numbers[i]);
    if (text)
        sqlite3_bind_text(statement, count + 1, text, -1, SQLITE_STATIC);
    must(sql, sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
}

static sqlite3 *open_database(const char *path)
{
    sqlite3 *db;
    must("open", sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    must("pragma", sqlite3_exec(db, "PRAGMA synchronous=OFF", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* The checkpoint of this rank, or those of all ranks before the number of ranks changed. */
static size_t read_texts(sqlite3 *db, const rank_job *job, char **texts)
{
    sqlite3_stmt *statement;
    size_t num = 0;
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT text FROM checkpoint WHERE generation = %u AND rank = %u UNION ALL "
             "SELECT text FROM checkpoint WHERE generation = %u - 1 AND NOT EXISTS "
             "(SELECT 1 FROM checkpoint WHERE generation = %u AND rank = %u)",
             job->generation, job->world.rank, job->generation, job->generation, job->world.rank);
    must(sql, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW)
        texts[num++] = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return num;
}

static void commit(sqlite3 *db, const rank_job *job, weir_pipeline *pipeline, const weir_batch *batch)
{
    char *text;
    must("checkpoint", weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    must("begin", sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; batch && i < batch->num_items; i++) {
        const result *made = batch->items[i].data;
        run_sql(db, "INSERT INTO result VALUES (?, ?, ?)",
                (const uint64_t[]){ made->epoch, made->number, made->chunk }, 3, NULL);
    }
    run_sql(db, "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)",
            (const uint64_t[]){ job->generation, job->world.rank }, 2, text);
    must("commit", sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    free(text);
}

static void ignore_log(void *self, weir_log_level level, const char *message)
{
    (void)self;
    (void)level;
    (void)message;
}

/* The process of a rank. It says on `out` that its first checkpoint is stored, then each commit; and begins when `in`
   says so. */
static void run_rank(const rank_job *job, int in, int out)
{
    char *texts[MAX_RANKS] = { 0 }, byte = '.';
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    weir_item item;
    sqlite3 *db = open_database(job->path);
    size_t num_texts = read_texts(db, job, texts);
    weir_log_set_function(ignore_log, NULL);
    if (build(job, (const char *const *)texts, num_texts, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "%s\n", error.message);
        _exit(3);
    }
    commit(db, job, pipeline, NULL);
    must("write", (int)write(out, &byte, 1), 1);
    must("read", (int)read(in, &byte, 1), 1);
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_OK)
            weir_item_done(pipeline, &item);
        commit(db, job, pipeline, status == WEIR_OK ? item.data : NULL);
        weir_item_release(&item);
        item = (weir_item){ 0 };
        must("write", (int)write(out, &byte, 1), 1);
    }
    must("end", status, WEIR_EOF);
    weir_pipeline_free(pipeline);
    _exit(sqlite3_close(db));
}

/* ---- the test ----------------------------------------------------------------------------------------------------- */

static uint64_t chance_state;

static uint32_t below(uint32_t limit)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(chance_state >> 33) % limit;
}

typedef struct running {
    pid_t pid;
    int in, out;
} running;

static running start_rank(const rank_job *job)
{
    int in[2], out[2];
    assert_int_equal(pipe(in) | pipe(out), 0);
    running started = { .pid = fork(), .in = in[1], .out = out[0] };
    assert_true(started.pid >= 0);
    if (started.pid == 0) {
        close(in[1]);
        close(out[0]);
        run_rank(job, in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    return started;
}

/* Waits for that many commits. False = the rank has ended. */
static bool await_commits(const running *rank, uint32_t commits)
{
    char byte;
    while (commits > 0) {
        ssize_t length = read(rank->out, &byte, 1);
        if (length == 0)
            return false;
        assert_true(length == 1 || errno == EINTR);
        commits -= length == 1;
    }
    return true;
}

/* Runs all ranks, until one of them has made killed_after commits; then all are killed. True = they had ended by
   then. */
static bool run_job(rank_job *job, uint32_t num_ranks, uint32_t killed_after)
{
    running ranks[MAX_RANKS];
    bool has_ended = true;
    job->world.size = num_ranks;
    for (uint32_t i = 0; i < num_ranks; i++) {
        job->world.rank = i;
        job->seed = below(1000);
        ranks[i] = start_rank(job);
        assert_true(await_commits(&ranks[i], 1));
    }
    for (uint32_t i = 0; i < num_ranks; i++)
        assert_int_equal(write(ranks[i].in, "", 1), 1);
    uint32_t watched = below(num_ranks);
    bool is_killed = await_commits(&ranks[watched], killed_after);
    for (uint32_t i = 0; i < num_ranks; i++) {
        int status;
        if (is_killed)
            kill(ranks[i].pid, SIGKILL);
        else
            while (await_commits(&ranks[i], 1))
                ;
        assert_int_equal(waitpid(ranks[i].pid, &status, 0), ranks[i].pid);
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        has_ended &= WIFEXITED(status);
        close(ranks[i].out);
        close(ranks[i].in);
    }
    return has_ended;
}

static uint64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    uint64_t answer = (uint64_t)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return answer;
}

static void make_tables(const char *path)
{
    sqlite3 *db = open_database(path);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode=WAL; CREATE TABLE result (epoch, number, chunk);"
                                  "CREATE TABLE checkpoint (generation, rank, text, PRIMARY KEY (generation, rank))",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

static void check_results(const rank_job *job)
{
    sqlite3 *db = open_database(job->path);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < job->num_items; i++)
        expected += num_results(i) * NUM_EPOCHS;
    assert_int_equal(ask(db, "SELECT count(*) FROM (SELECT DISTINCT * FROM result)"), expected);
    assert_int_equal(ask(db, "SELECT count(*) FROM result"), expected);
    sqlite3_close(db);
}

/* Returns how often the job was killed until it ended. */
static uint32_t run_until_end(uint32_t max_kills, bool retry_failed)
{
    char *folder = make_folder(), *path = path_in(folder, "job.db");
    uint32_t killed = 0, num_ranks = 2, num_changes = 0;
    rank_job job = { .path = path, .num_items = (uint64_t)max_kills * ITEMS_PER_KILL, .generation = 1 };
    job.retry_failed = retry_failed;
    make_tables(path);
    while (!run_job(&job, num_ranks, killed < max_kills ? below(6) : UINT32_MAX)) {
        killed++;
        if (below(4) == 0) {
            num_ranks = 1 + below(MAX_RANKS);
            job.generation++;
            num_changes++;
        }
    }
    print_message("%u kills, the number of ranks changed %u times\n", killed, num_changes);
    check_results(&job);
    free(path);
    remove_folder(folder);
    return killed;
}

TEST_CASE(a_killed_job_has_each_result_once)
{
    const char *kills = getenv("WEIR_KILLS"), *seed = getenv("WEIR_SEED");
    uint32_t num_kills = kills ? (uint32_t)atoi(kills) : 20;
    chance_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("WEIR_SEED=%" PRIu64 "\n", chance_state);
    for (uint32_t killed = 0; killed < num_kills;) /* a job may end early: the ranks that are not watched run on */
        killed += run_until_end(num_kills - killed, below(2));
}

/* Those that fail are all that is left of the first epochs, and fail again in each run. Without a kill, the ranks end. */
TEST_CASE(a_killed_job_that_retries_what_has_failed_goes_on)
{
    chance_state = (uint64_t)time(NULL);
    print_message("WEIR_SEED=%" PRIu64 "\n", chance_state);
    for (uint32_t killed = 0; killed < 10;)
        killed += run_until_end(10 - killed, true);
}

/* ---- dividing again ------------------------------------------------------------------------------------------------ */

enum { NUM_ITEMS = 53, MAX_WORLD = 7 };

/* What was delivered, by epoch and item. */
typedef struct tally {
    unsigned counts[NUM_EPOCHS][NUM_ITEMS];
} tally;

static weir_sampler_config config_of(uint32_t which)
{
    static uint32_t classes[NUM_ITEMS];
    static double weights[NUM_ITEMS];
    static double sizes[NUM_ITEMS];
    static uint64_t groups[NUM_ITEMS];
    for (uint32_t i = 0; i < NUM_ITEMS; i++) {
        classes[i] = i % 3;
        weights[i] = 1 + i % 4;
        sizes[i] = i % 11;
        groups[i] = i % 7;
    }
    weir_sampler_config config = { .num_items = NUM_ITEMS, .seed = 3 };
    switch (which % NUM_ORDERS) {
    case 1: config.order = WEIR_SAMPLER_SHUFFLED; break;
    case 2: config.order = WEIR_SAMPLER_BLOCKS, config.block_items = 6; break;
    case 3: config.order = WEIR_SAMPLER_SHUFFLED, config.weights = weights; break;
    case 4: config.weights = weights, config.replacement = true; break;
    case 5: config.replacement = true; break;
    case 6: config.classes = classes, config.num_classes = 3; break;
    case 7: config.num_samples = 101; break;
    case 8:
        config.order = WEIR_SAMPLER_BUCKETS;
        config.block_items = 6;
        config.sizes = sizes;
        config.num_buckets = 3;
        break;
    case 9:
        config.order = WEIR_SAMPLER_GROUPS;
        config.block_items = 16;
        config.groups = groups;
        break;
    default: break;
    }
    config.share = (weir_sampler_share)(which / NUM_ORDERS % 3);
    return config;
}

static int start_sampler(const weir_sampler_config *config, uint64_t dataset, const char *const *texts,
                         size_t num_texts, weir_pipeline **pipeline, weir_error *error)
{
    weir_sampler_source_config source = { .sampler = *config, .items = { .fill = fill }, .dataset = dataset };
    weir_pipeline_options options = {
        .threads = 1, .checkpoints = WEIR_CHECKPOINTS_DONE, .resume = texts, .num_resume = num_texts
    };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 16 });
    return weir_builder_build(builder, &options, pipeline, error);
}

/* Takes up to that many items and acknowledges most of them. Returns the checkpoint. */
static char *take_some(weir_pipeline *pipeline, uint32_t num_items, bool all, tally *to)
{
    weir_item item = { 0 };
    int status = WEIR_OK;
    char *text;
    for (uint32_t i = 0; i < num_items && (status == WEIR_OK || status == WEIR_EPOCH); i++) {
        status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
        if (status == WEIR_OK && (all || below(5) > 0)) {
            const weir_entry *entry = item.data;
            to->counts[entry->epoch][entry->number]++;
            assert_int_equal(weir_item_done(pipeline, &item), WEIR_OK);
        }
        weir_item_release(&item);
    }
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_pipeline_free(pipeline);
    return text;
}

/* All ranks of a world take items; their checkpoints replace *texts. */
static void run_world(uint32_t which, uint32_t size, char **texts, size_t *num_texts, uint32_t num_items, tally *to)
{
    char *made[MAX_WORLD];
    for (uint32_t rank = 0; rank < size; rank++) {
        weir_sampler_config config = config_of(which);
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        config.world = (weir_world){ .rank = rank, .size = size };
        if (start_sampler(&config, 1, (const char *const *)texts, *num_texts, &pipeline, &error) != WEIR_OK)
            fail_msg("%s", error.message);
        bool all = num_items == UINT32_MAX;
        made[rank] = take_some(pipeline, all ? num_items : below(num_items), all, to);
    }
    while (*num_texts)
        free(texts[--*num_texts]);
    memcpy(texts, made, size * sizeof *made);
    *num_texts = size;
}

/* So that all ranks have equal counts, some of what is left is repeated or left out. */
static void check_count(uint32_t which, uint64_t in_parts, uint64_t at_once)
{
    weir_sampler_share share = (weir_sampler_share)(which / NUM_ORDERS % 3);
    if (share == WEIR_SHARE_PAD    ? in_parts < at_once
        : share == WEIR_SHARE_DROP ? in_parts > at_once
                                   : in_parts != at_once)
        fail_msg("configuration %u delivers other items when it is divided again", which);
}

TEST_CASE(each_order_can_be_divided_again)
{
    chance_state = (uint64_t)time(NULL);
    print_message("seed %" PRIu64 "\n", chance_state);
    for (uint32_t which = 0; which < 3 * NUM_ORDERS; which++) {
        static tally at_once, in_parts;
        char *texts[MAX_WORLD];
        size_t num_texts = 0;
        uint32_t first = 1 + below(MAX_WORLD);
        memset(&at_once, 0, sizeof at_once);
        memset(&in_parts, 0, sizeof in_parts);
        run_world(which, first, texts, &num_texts, UINT32_MAX, &at_once);
        while (num_texts)
            free(texts[--num_texts]);
        /* Padding and dropping depend on the number of ranks when an epoch begins: compared are the epochs that have
           begun. */
        bool is_exact = which / NUM_ORDERS % 3 == WEIR_SHARE_EXACT, has_begun = is_exact;
        run_world(which, first, texts, &num_texts, is_exact ? 60 : NUM_ITEMS / first / 2, &in_parts);
        for (int i = 0; i < NUM_ITEMS; i++)
            has_begun |= in_parts.counts[0][i] > 0;
        for (int change = 0; change < 4; change++)
            run_world(which, 1 + below(MAX_WORLD), texts, &num_texts, 20, &in_parts);
        run_world(which, 1 + below(MAX_WORLD), texts, &num_texts, UINT32_MAX, &in_parts);
        while (num_texts)
            free(texts[--num_texts]);
        for (size_t epoch = 0; epoch < (is_exact ? NUM_EPOCHS : 1) && has_begun; epoch++)
            for (int i = 0; i < NUM_ITEMS; i++)
                check_count(which, in_parts.counts[epoch][i], at_once.counts[epoch][i]);
    }
}

static void refuse(const weir_sampler_config *config, uint64_t dataset, const char *const *texts, size_t num_texts,
                   const char *message)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_true(start_sampler(config, dataset, texts, num_texts, &pipeline, &error) < 0);
    assert_null(pipeline);
    if (!strstr(error.message, message) || strchr(error.message, '\n'))
        fail_msg("%s", error.message);
}

TEST_CASE(a_checkpoint_of_something_else_is_refused)
{
    static tally unused;
    char *texts[MAX_WORLD];
    const char *chosen[MAX_WORLD];
    size_t num_texts = 0;
    run_world(1, 3, texts, &num_texts, 20, &unused);
    memcpy(chosen, texts, sizeof chosen);
    weir_sampler_config config = config_of(1);
    config.world = (weir_world){ .rank = 1, .size = 3 };
    refuse(&config, 2, chosen + 1, 1, "of another dataset: it has dataset=0000000000000001");
    refuse(&config, 1, chosen, 1, "of rank 0, but this is rank 1 of 3");
    refuse(&config, 1, chosen, 2, "2 of the checkpoints of 3 ranks are given");
    chosen[2] = chosen[0];
    refuse(&config, 1, chosen, 3, "not of different ranks");
    config.seed = 4;
    refuse(&config, 1, chosen + 1, 1, "it has seed=3, this sampler has seed=4");
    config.seed = 3;
    config.num_items = 54;
    refuse(&config, 1, chosen + 1, 1, "it has items=53, this sampler has items=54");
    config.num_items = 53;
    config.order = WEIR_SAMPLER_LISTED;
    refuse(&config, 1, chosen + 1, 1, "it has order=");
    config.order = WEIR_SAMPLER_BLOCKS;
    config.block_items = 6;
    refuse(&config, 1, chosen + 1, 1, "it has order=");
    config = config_of(1);
    config.world = (weir_world){ .rank = 1, .size = 3 };
    config.replacement = true;
    refuse(&config, 1, chosen + 1, 1, "it has replacement=0, this sampler has replacement=1");
    config.replacement = false;
    config.num_samples = 52;
    refuse(&config, 1, chosen + 1, 1, "it has samples=53, this sampler has samples=52");
    config.num_samples = 0;
    config.share = WEIR_SHARE_PAD;
    refuse(&config, 1, chosen + 1, 1, "it has share=");
    config = config_of(3);
    config.world = (weir_world){ .rank = 1, .size = 3 };
    refuse(&config, 1, chosen + 1, 1, "it has arrays=");
    config = config_of(1);
    config.world = (weir_world){ .rank = 0, .size = 2 };
    refuse(&config, 1, chosen, 1, "1 of the checkpoints of 3 ranks are given: to divide the rest among 2 ranks");
    while (num_texts)
        free(texts[--num_texts]);
}

/* One value of the options that are arrays, and the length of blocks. */
TEST_CASE(a_checkpoint_of_another_weight_class_or_block_is_refused)
{
    static const uint32_t which[] = { 2, 3, 6 };
    static double weights[NUM_ITEMS];
    static uint32_t classes[NUM_ITEMS];
    static tally unused;
    for (size_t i = 0; i < 3; i++) {
        char *text[MAX_WORLD];
        size_t num_texts = 0;
        run_world(which[i], 1, text, &num_texts, 20, &unused);
        weir_sampler_config config = config_of(which[i]);
        config.world = (weir_world){ .size = 1 };
        config.block_items += i == 0;
        if (config.weights)
            config.weights = memcpy(weights, config.weights, sizeof weights);
        if (config.classes)
            config.classes = memcpy(classes, config.classes, sizeof classes);
        weights[NUM_ITEMS - 1] += 0.5;
        classes[0] = classes[0] == 0;
        refuse(&config, 1, (const char *const *)text, 1,
               i == 0 ? "it has block=6, this sampler has block=7" : "it has arrays=");
        free(text[0]);
    }
}

static int fail_always(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EDATA, 0, "unusable");
}

static int run_failing(const char *text, uint32_t epochs, weir_error *error)
{
    static const weir_op op = {
        .name = "fails", .takes = WEIR_TYPE_ENTRY, .makes = WEIR_TYPE_ENTRY, .run = fail_always
    };
    weir_sampler_source_config source = { .sampler = config_of(1), .items = { .fill = fill }, .dataset = 1 };
    source.sampler.world = (weir_world){ .size = 1 };
    weir_pipeline_options options = {
        .checkpoints = WEIR_CHECKPOINTS_DONE, .resume = &text, .num_resume = text != NULL, .threads = 1
    };
    weir_pipeline *pipeline;
    weir_item item = { 0 };
    int status;
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = epochs });
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, error), WEIR_OK);
    do
        status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    while (status == WEIR_EPOCH);
    weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    return status;
}

/* Gives the text the last line that fits it. */
static void seal(char *text)
{
    char *end = strstr(text, "\nend ") + 1;
    sprintf(end, "end %016" PRIx64 "\n", weir__hash(WEIR__HASH_START, text, (size_t)(end - text)));
}

/* Texts with numbers that would need more memory, or time, than there is. */
TEST_CASE(absurd_numbers_of_a_sampler_are_refused)
{
    static const char *const lines[] = {
        "  dealt 0 1 1152921504606846976 0+576460752303423487\n", /* more places than the epoch has */
        "  dealt 1152921504606846976 1 3 0\n",                    /* more epochs than have begun */
        "  dealt 18446744073709551615 1 3 0\n",
    };
    static tally unused;
    char *text[MAX_WORLD], damaged[4096];
    const char *chosen[] = { damaged };
    size_t num_texts = 0;
    run_world(1, 1, text, &num_texts, 20, &unused);
    weir_sampler_config config = config_of(1);
    config.world = (weir_world){ .rank = 0, .size = 1 };
    const char *rank = strstr(text[0], "  rank 0 of 1\n");
    assert_non_null(rank);
    int length = (int)(strchr(rank, '\n') + 1 - text[0]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(damaged, sizeof damaged, "%.*s%s%s", length, text[0], lines[i], text[0] + length);
        seal(damaged);
        refuse(&config, 1, chosen, 1, "no valid text of a sampler");
    }
    free(text[0]);
}

TEST_CASE(more_than_the_share_cannot_be_done)
{
    static tally unused;
    char *texts[MAX_WORLD], damaged[4096];
    const char *chosen[MAX_WORLD];
    size_t num_texts = 0;
    chance_state = 1;                                /* by which rank 1 takes more than no item */
    run_world(1, 2, texts, &num_texts, 20, &unused); /* shares of 27 and 26 */
    weir_sampler_config config = config_of(1);
    config.world = (weir_world){ .rank = 1, .size = 2 };
    const char *done = strstr(texts[1], "done 0 ");
    assert_non_null(done);
    for (int is_list = 0; is_list < 2; is_list++) {
        snprintf(damaged, sizeof damaged, "%.*s%s\nend \n", (int)(done - texts[1]), texts[1],
                 is_list ? "done 0 3 5-26" : "done 0 27");
        seal(damaged);
        chosen[0] = damaged;
        refuse(&config, 1, chosen, 1, "27 items of epoch 0 have been begun, but its share has only 26");
        chosen[1] = texts[0];
        config.world.size = 3;
        refuse(&config, 1, chosen, 2, "27 items of epoch 0 have been begun, but its share has only 26");
        config.world.size = 2;
    }
    while (num_texts)
        free(texts[--num_texts]);
}

static int resume_files(const char *text, const char *folder, weir_error *error)
{
    static const char *const paths[] = { "a.mp4", "b.mp4", "c.mp4" };
    weir_pipeline_options options = {
        .checkpoints = WEIR_CHECKPOINTS_DELIVERED, .resume = &text, .num_resume = 1, .threads = 1
    };
    weir_pipeline *pipeline;
    weir_item item = { 0 };
    int status;
    weir_builder *builder = weir_builder_new();
    if (folder)
        weir_source_directory(builder, &(weir_directory_config){ .root = folder },
                              &(weir_stage_options){ .epochs = 2 });
    else
        weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 3 },
                         &(weir_stage_options){ .epochs = 2 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, error), WEIR_OK);
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH)
        weir_item_release(&item);
    weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    return status;
}

/* They are read anew, so this is found at the end of their epoch. */
TEST_CASE(a_list_or_folder_with_less_items_than_are_done_is_refused)
{
    static const char *const names[] = { "a.mp4", "b.mp4", "c.mp4" };
    static const char *const done[] = { "done 0 2", "done 0 3", "done 0 4", "done 0 1 3" };
    char folder[] = "/tmp/weir-resume-XXXXXX", path[64], text[256];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
    for (int is_folder = 0; is_folder < 2; is_folder++)
        for (int i = 0; i < 4; i++) {
            weir_error error = { 0 };
            snprintf(text, sizeof text, "weir checkpoint 2\nepoch 0\nsource 0 src\n%s\nend                  \n",
                     done[i]);
            seal(text);
            assert_int_equal(resume_files(text, is_folder ? folder : NULL, &error), i < 2 ? WEIR_EOF : WEIR_EFAILED);
            if (i >= 2 && !strstr(error.message, "4 items of epoch 0 have been begun, but there are only 3"))
                fail_msg("%s", error.message);
        }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

TEST_CASE(a_job_that_gets_nothing_fails_at_the_end_of_a_whole_epoch)
{
    static tally unused;
    char *text[MAX_WORLD];
    size_t num_texts = 0;
    weir_error error = { 0 };
    assert_int_equal(run_failing(NULL, 1, &error), WEIR_EFAILED);
    assert_non_null(strstr(error.message, "all 53 tasks of the first epoch failed"));
    assert_non_null(strstr(error.message, "unusable"));
    run_world(1, 1, text, &num_texts, 20, &unused);
    assert_int_equal(run_failing(text[0], 1, &error), WEIR_EOF); /* the rest of an epoch proves nothing */
    assert_int_equal(run_failing(text[0], 2, &error), WEIR_EFAILED);
    free(text[0]);
}

/* ---- what several checkpoints say about the runs before -------------------------------------------------------------- */

/* The texts of two ranks: rank 0 has taken nothing, rank 1 as much as that. */
static void run_two(uint32_t num_items, char *texts[2])
{
    static tally unused;
    for (uint32_t rank = 0; rank < 2; rank++) {
        weir_sampler_config config = config_of(1);
        weir_pipeline *pipeline;
        config.world = (weir_world){ .rank = rank, .size = 2 };
        assert_int_equal(start_sampler(&config, 1, NULL, 0, &pipeline, NULL), WEIR_OK);
        texts[rank] = take_some(pipeline, rank ? num_items : 0, true, &unused);
    }
}

/* One rank goes on for both, and stores a checkpoint before it has taken an item. */
static char *store_at_once(char *const *texts)
{
    static tally unused;
    weir_sampler_config config = config_of(1);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    config.world = (weir_world){ .rank = 0, .size = 1 };
    if (start_sampler(&config, 1, (const char *const *)texts, 2, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return take_some(pipeline, 0, true, &unused);
}

static void assert_begun(char *const *texts, const char *expected)
{
    char *text = store_at_once(texts);
    const char *line = strstr(text, "\nbegun ");
    if (!line || strncmp(line + 1, expected, strlen(expected)) != 0)
        fail_msg("\"%.10s...\" is not in:\n%s", expected, text);
    free(text);
}

/* Rank 1 of two has a share of 26 items; with the end of the epoch it is at the next one, of which it has done nothing. */
TEST_CASE(an_epoch_that_one_rank_has_ended_was_begun)
{
    char *texts[2];
    run_two(26 + 1, texts);
    assert_non_null(strstr(texts[0], "\nepoch 0\n"));
    assert_non_null(strstr(texts[1], "\nepoch 1\n"));
    assert_null(strstr(texts[1], "\ndone 0 "));
    assert_begun(texts, "begun 1 0\n");
    free(texts[0]);
    free(texts[1]);
}

/* What each has noted of the run before is more than what the texts show by themselves: they have done nothing. */
TEST_CASE(what_each_rank_had_left_over_is_added_up)
{
    static const char *const noted[] = { "begun 2 5", "begun 1 4" };
    char *texts[2], *noted_in[2];
    run_two(0, texts);
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(texts[i]) + 64, head = (size_t)(strstr(texts[i], "\nend ") + 1 - texts[i]);
        noted_in[i] = calloc(1, size);
        snprintf(noted_in[i], size, "%.*s%s\nend \n", (int)head, texts[i], noted[i]);
        seal(noted_in[i]);
    }
    assert_begun(noted_in, "begun 2 9\n");
    for (int i = 0; i < 2; i++) {
        free(texts[i]);
        free(noted_in[i]);
    }
}

/* ---- what always fails --------------------------------------------------------------------------------------------- */

/* A job of one rank in which item 3 of each `every` fails, with retry_failed. */
typedef struct broken_job {
    uint64_t num_items, every;
    weir_max_failures limit;
    bool all_fail;
} broken_job;

static int fail_some(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const weir_entry *entry = in->data;
    const broken_job *job = *(broken_job *const *)weir_task_config(task);
    if (job->all_fail || entry->number % job->every == 3)
        return weir_task_fail(task, WEIR_EDATA, 0, "it is broken");
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op fail_some_op = { .name = "fail_some",
                                      .config_size = sizeof(broken_job *),
                                      .takes = WEIR_TYPE_ENTRY,
                                      .makes = WEIR_TYPE_ENTRY,
                                      .run = fail_some };

/* Takes up to `most` items, from *text on if it is not NULL, which becomes the checkpoint. Returns how many there
   were. */
static uint64_t run_broken(broken_job *job, char **text, uint64_t most, int *status, weir_error *error)
{
    weir_sampler_source_config source = { .sampler = { .num_items = job->num_items, .world = { .size = 1 } },
                                          .items = { .fill = fill } };
    weir_pipeline_options options = { .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                      .retry_failed = true,
                                      .resume = (const char *const *)text,
                                      .num_resume = *text != NULL,
                                      .threads = 1 };
    weir_pipeline *pipeline;
    weir_item item = { 0 };
    uint64_t num = 0;
    weir_builder *builder = weir_builder_new();
    weir_log_set_function(ignore_log, NULL);
    weir_source_sampler(builder, &source, &(weir_stage_options){ .epochs = NUM_EPOCHS });
    weir_builder_pipe(builder, &fail_some_op, &job, sizeof job, &(weir_stage_options){ .max_failures = job->limit });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, error), WEIR_OK);
    *status = WEIR_OK;
    while (num < most && (*status == WEIR_OK || *status == WEIR_EPOCH)) {
        *status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
        num += *status == WEIR_OK;
        weir_item_release(&item);
    }
    free(*text);
    assert_int_equal(weir_pipeline_checkpoint(pipeline, text), WEIR_OK);
    if (*status == WEIR_EFAILED)
        weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    return num;
}

/* Resumed in each epoch, once and again; ten items, one epoch after the other. */
TEST_CASE(an_item_that_always_fails_does_not_hold_up_a_resumed_job)
{
    broken_job job = { .num_items = 10, .every = 10 };
    for (uint64_t stopped_at = 1; stopped_at < 9 * NUM_EPOCHS; stopped_at++) {
        char *text = NULL;
        int status;
        weir_error error = { 0 };
        assert_int_equal(run_broken(&job, &text, stopped_at, &status, &error), stopped_at);
        uint64_t in_second = run_broken(&job, &text, 1, &status, &error);
        assert_int_equal(in_second, 1);
        uint64_t rest = run_broken(&job, &text, UINT64_MAX, &status, &error);
        if (status != WEIR_EOF || stopped_at + in_second + rest != 9 * NUM_EPOCHS)
            fail_msg("stopped after %d of 27 items: %d more, %s", (int)stopped_at, (int)rest, error.message);
        free(text);
    }
}

/* 50 of 400 items fail in each epoch, 12.5 %; 101 of two epochs come first when it goes on. */
TEST_CASE(a_rate_of_failures_is_not_judged_by_what_is_left_over)
{
    broken_job job = { .num_items = 400, .every = 8, .limit = { .kind = WEIR_FAILURES_RATE, .num = 20, .den = 100 } };
    for (int all_fail = 0; all_fail < 2; all_fail++) {
        char *text = NULL;
        int status;
        weir_error error = { 0 };
        job.all_fail = false;
        assert_int_equal(run_broken(&job, &text, 710, &status, &error), 710);
        job.all_fail = all_fail;
        assert_int_equal(run_broken(&job, &text, UINT64_MAX, &status, &error), all_fail ? 0 : 340);
        assert_int_equal(status, all_fail ? WEIR_EFAILED : WEIR_EOF);
        if (all_fail) /* of the others, the first hundred are judged */
            assert_memory_equal(error.message, "201 of 201 tasks failed", 23);
        free(text);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
