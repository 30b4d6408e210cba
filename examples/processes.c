/*
 * processes: one dataset, several processes, as in distributed training. Each process decodes every N-th file and
 * records its run, with its rank, in a separate database. At the end the runs are merged into one database: `weir
 * summary DB --run all` adds them up, and `weir query DB --by run` compares them.
 *
 *     processes DIR [NUM_PROCESSES [DB]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

enum { MAX_PROCESSES = 64 };

typedef struct shard_config {
    uint64_t rank, num_ranks;
} shard_config;

/* Passes on every num_ranks-th path. The listing is sorted, so the file numbers are the same in all processes. */
static int take_shard(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const shard_config *shard = weir_task_config(task);
    if (weir_task_seq(task) % shard->num_ranks != shard->rank)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op shard_op = {
    .name = "shard",
    .takes = WEIR_TYPE_TEXT,
    .makes = WEIR_TYPE_TEXT,
    .config_size = sizeof(shard_config),
    .run = take_shard,
};

static void name_database(char *to, size_t size, const char *db_path, uint64_t rank)
{
    snprintf(to, size, "%s.rank%u", db_path, (unsigned)rank);
}

/* Runs one process. Returns its exit status. */
static int run_rank(const char *root, const char *db_path, const shard_config *shard)
{
    char own_path[4096];
    weir_error error = { 0 };
    weir_sqlite_writer *writer;
    name_database(own_path, sizeof own_path, db_path, shard->rank);
    if (weir_sqlite_open(own_path, &(weir_sqlite_options){ .rank = (int32_t)shard->rank }, &writer, &error) !=
        WEIR_OK) {
        fprintf(stderr, "processes: %s\n", error.message);
        return 2;
    }

    weir_directory_config folder = { .root = root, .glob = WEIR_VIDEO_FILES, .sorted = true };
    weir_video_config picture = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &shard_op, shard, sizeof(shard_config), NULL);
    weir_pipe_video(builder, &picture, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);

    weir_observer observer = weir_sqlite_observer(writer);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1 };
    weir_pipeline *pipeline = NULL;
    int status = weir_builder_build(builder, &options, &pipeline, &error);
    int num_files = 0;
    if (status == WEIR_OK) {
        weir_item item;
        while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
            num_files++;
            weir_item_release(&item);
        }
        if (status == WEIR_EFAILED)
            weir_pipeline_error(pipeline, NULL, &error);
        printf("rank %u: %d files\n", (unsigned)shard->rank, num_files);
    }
    weir_pipeline_free(pipeline);
    if (weir_sqlite_close(writer, &error) != WEIR_OK || status != WEIR_EOF) {
        fprintf(stderr, "processes: rank %u: %s\n", (unsigned)shard->rank, error.message);
        return 1;
    }
    return 0;
}

static int merge(const char *db_path, uint64_t num_ranks)
{
    for (uint64_t rank = 0; rank < num_ranks; rank++) {
        char own_path[4096];
        weir_merged merged;
        weir_error error = { 0 };
        name_database(own_path, sizeof own_path, db_path, rank);
        if (weir_database_merge(db_path, own_path, &merged, &error) != WEIR_OK) {
            fprintf(stderr, "processes: %s\n", error.message);
            return 1;
        }
        unlink(own_path);
    }
    return 0;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    const char *root = argc > 1 ? argv[1] : ".";
    uint64_t num_ranks = argc > 2 ? strtoull(argv[2], NULL, 10) : 2;
    const char *db_path = argc > 3 ? argv[3] : "processes.db";
    if (num_ranks < 1 || num_ranks > MAX_PROCESSES) {
        fprintf(stderr, "processes: the number of processes must be 1 to %d\n", MAX_PROCESSES);
        return 2;
    }

    /* A pipeline does not survive fork(): start the processes before creating pipelines. */
    for (uint64_t rank = 0; rank < num_ranks; rank++) {
        pid_t child = fork();
        if (child < 0) {
            perror("processes: fork");
            return 1;
        }
        if (child == 0)
            exit(run_rank(root, db_path, &(shard_config){ .rank = rank, .num_ranks = num_ranks }));
    }
    int exit_status = 0, ended;
    while (wait(&ended) > 0)
        exit_status |= !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
    return exit_status ? 1 : merge(db_path, num_ranks);
}
