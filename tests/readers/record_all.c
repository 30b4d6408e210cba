/*
 * Records a real run that has everything which exports can show. It has clips that are decoded and one that is
 * broken, steps, phases, modes, events, spans, a marker, levels and totals. Names are such that readers could stumble
 * over them. It prints what its consumer saw, as JSON: the readers of tests/readers must find the same.
 *
 *     record_all CLIPS FOLDER RANK      FOLDER/run.db gets a run; live-RANK.prom, live-RANK and trace-RANK.json are new
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { EPOCHS = 3, PATH_BYTES = 4096 };

/* Quotes of both kinds, separators of all formats, a line break, other scripts, combining marks, and no UTF-8. */
#define ODD_NAME  "it's \"odd\", a\\b; 100 %\n{x}=<y>&\t损失 e\xcc\x81"
#define ODD_EVENT ODD_NAME "\xff"

static struct {
    int64_t delivered, frames, failed, steps;
    double loss, bytes, bytes_ms, dotted, odd;
} seen;

static void check(int status, const char *what, const weir_error *error)
{
    if (status == WEIR_OK)
        return;
    fprintf(stderr, "record_all: %s: %s\n", what, error->message);
    exit(2);
}

/* FOLDER/NAME-RANK.ENDING, until the next call. */
static const char *path_of(const char *folder, const char *name, int rank, const char *ending)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s-%d%s", folder, name, rank, ending);
    return path;
}

/* The two totals whose names differ only in characters that are not letters must not become one. */
typedef struct counters {
    weir_counter *frames, *loss, *bytes, *bytes_ms, *dotted, *odd, *unused;
} counters;

static counters make_counters(void)
{
    static const char *const values[] = { "train", "日本語 \"値\"" };
    return (counters){
        .frames = weir_counter_get_total(WEIR_FRAMES_CATEGORY, WEIR_FRAMES_NAME, NULL, 0),
        .loss = weir_counter_get("train", "loss", values, 2),
        .bytes = weir_counter_get("memory", "cache (bytes)", NULL, 0),
        .bytes_ms = weir_counter_get_total("io", "bytes/ms", NULL, 0),
        .dotted = weir_counter_get_total("io", "bytes.ms", NULL, 0),
        .odd = weir_counter_get_total("odd", ODD_NAME, NULL, 0),
        .unused = weir_counter_get("odd", "never set", NULL, 0),
    };
}

static void use_item(const counters *c, const weir_item *item)
{
    const weir_frames *frames = item->data;
    seen.delivered++;
    seen.frames += frames->num_frames;
    weir_counter_add(c->frames, 0, frames->num_frames);
    weir_counter_set(c->loss, 0, seen.loss = 1.0 / (double)seen.delivered);
    weir_counter_set(c->loss, 1, -2 * seen.loss);
    weir_counter_set(c->bytes, 0, seen.bytes = (double)item->size_bytes);
    weir_counter_add(c->bytes_ms, 0, 0.125);
    seen.bytes_ms += 0.125;
    weir_counter_add(c->dotted, 0, 1e9);
    seen.dotted += 1e9;
    weir_counter_set(c->odd, 0, seen.odd = (double)(3 * seen.delivered));
}

/* All epochs; each step takes one item. */
static void consume(weir_pipeline *pipeline, const counters *c)
{
    weir_span_name *forward = weir_span_name_get("train", ODD_NAME);
    weir_span_name *mark = weir_span_name_get("train", "mark");
    weir_item item;
    int status;
    weir_pipeline_mark_mode(pipeline, "train");
    weir_pipeline_mark_phase(pipeline, "warm \"up\"");
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH) {
            weir_pipeline_event(pipeline, ODD_EVENT, "user", "an epoch, \"ended\"");
            weir_pipeline_mark_phase(pipeline, "训练, 2");
            weir_pipeline_mark_mode(pipeline, "eval");
            continue;
        }
        weir_pipeline_mark_step(pipeline, seen.steps++);
        weir_span_begin(forward);
        use_item(c, &item);
        weir_span_end();
        weir_marker(mark, WEIR_MARKER_PROCESS);
        weir_item_release(&item);
    }
    if (status != WEIR_EOF)
        exit(3);
}

static weir_pipeline *build(const char *clips, const weir_task_hook *hook, const weir_observer *observers,
                            size_t count)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_directory_config folder = { .root = clips, .glob = WEIR_VIDEO_FILES };
    weir_video_config picture = { WEIR_WITH_PICTURE(.width = 64, .height = 64) };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1, .epochs = EPOCHS });
    weir_pipe_video(builder, &picture,
                    &(weir_stage_options){ .concurrency = 2, .task_hooks = hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = observers,
                                      .num_observers = count,
                                      .stats_interval_ns = 20 * WEIR_MILLISECOND };
    check(weir_builder_build(builder, &options, &pipeline, &error), "build", &error);
    return pipeline;
}

static void print_seen(int rank)
{
    printf("{\"rank\": %d, \"delivered\": %" PRId64 ", \"frames\": %" PRId64 ", \"failed\": %" PRId64
           ", \"steps\": %" PRId64
           ", \"loss\": %.17g, \"bytes\": %.17g, \"bytes_ms\": %.17g, \"dotted\": %.17g, \"odd\": %.17g}\n",
           rank, seen.delivered, seen.frames, seen.failed, seen.steps, seen.loss, seen.bytes, seen.bytes_ms,
           seen.dotted, seen.odd);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int rank = atoi(argv[3]);
    char database[PATH_BYTES];
    snprintf(database, sizeof database, "%s/run.db", argv[2]);
    weir_error error = { 0 };
    weir_sqlite_writer *writer;
    weir_openmetrics_file *metrics;
    weir_tensorboard_log *board;
    weir_trace_file *trace;
    weir_task_hook hook;
    weir_sqlite_options recording = { .rank = rank, .world = 2, .job = "job \"1\"", .node_id = "node\\" };
    check(weir_sqlite_open(database, &recording, &writer, &error), "database", &error);
    check(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hook, &error), "hook", &error);
    check(weir_openmetrics_open(path_of(argv[2], "live", rank, ".prom"), &(weir_openmetrics_options){ .rank = rank },
                                &metrics, &error),
          "metrics", &error);
    check(weir_tensorboard_open(path_of(argv[2], "live", rank, ""), NULL, &board, &error), "event files", &error);
    check(weir_trace_open(path_of(argv[2], "trace", rank, ".json"), NULL, &trace, &error), "trace", &error);
    const weir_observer observers[] = { weir_sqlite_observer(writer), weir_openmetrics_observer(metrics),
                                        weir_tensorboard_observer(board), weir_trace_observer(trace) };
    const counters own = make_counters();
    weir_pipeline *pipeline = build(argv[1], &hook, observers, sizeof observers / sizeof observers[0]);
    consume(pipeline, &own);
    weir_account account = { 0 };
    check(weir_pipeline_account(pipeline, NULL, &account), "account", &error);
    seen.failed = (int64_t)account.failed;
    weir_pipeline_free(pipeline);
    check(weir_trace_close(trace, &error), "trace", &error);
    check(weir_tensorboard_close(board, &error), "event files", &error);
    check(weir_openmetrics_close(metrics, &error), "metrics", &error);
    check(weir_sqlite_close(writer, &error), "database", &error);
    print_seen(rank);
    return 0;
}
