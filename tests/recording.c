#include "tests/recording.h"

#include <math.h>
#include <stdlib.h>

static int64_t ns(double seconds)
{
    return llround(seconds * 1e9);
}

weir_sqlite_writer *recording_begin(const char *path, const char *node_id, int32_t rank, double started)
{
    static const weir_stage_info stages[] = {
        { "0:0:src", "0:0:src_queue", "source", 1, 2, 0, "completion", "", "", 0, 0 },
        { "0:1:decode[10]", "0:1:decode[10]_queue", "stage", 10, 2, 0, "completion", "0:0:src_queue", "", 0, 0 },
        { "0:2:sink", "0:2:sink_queue", "sink", 1, 3, 0, "completion", "0:1:decode[10]_queue", "", 0, 0 },
    };
    weir_sqlite_options options = { .node_id = node_id, .rank = rank, .command = "invented" };
    weir_sqlite_writer *writer = open_writer(path, &options);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_run_info info = { .start_unix_ns = ns(started), .threads = 4, .stages = stages, .num_stages = 3 };
    observer.run_start(observer.self, &info);
    return writer;
}

static weir_lap_position place_of(const invented_lap *lap)
{
    return (weir_lap_position){
        .mode = lap->mode ? lap->mode : "",
        .phase = lap->phase ? lap->phase : "",
        .first_step = lap->has_steps ? lap->first_step : 0,
        .last_step = lap->has_steps ? lap->last_step : -1,
    };
}

static double elapsed_of(const invented_lap *lap)
{
    return lap->elapsed > 0 ? lap->elapsed : 10;
}

static void record_stage(weir_observer observer, const invented_lap *lap)
{
    int64_t elapsed_ns = ns(elapsed_of(lap));
    weir_histogram *times = calloc(1, sizeof *times);
    assert_non_null(times);
    weir_subject_lap stage = {
        .subject = WEIR_SUBJECT_STAGE,
        .kind = "stage",
        .name = "0:1:decode[10]",
        .lap = &(weir_lap){ .end_unix_ns = ns(lap->at), .elapsed_ns = elapsed_ns, .position = place_of(lap) },
        .metrics.task = { .num_tasks = lap->num_tasks,
                          .num_failures = lap->num_failures,
                          .failed_ns = (int64_t)lap->num_failures * ns(0.01),
                          .busy_ns = 6 * elapsed_ns,
                          .wait_in_ns = 2 * elapsed_ns,
                          .wait_thread_ns = elapsed_ns,
                          .wait_out_ns = elapsed_ns,
                          .cpu_ns = 5 * elapsed_ns,
                          .run_times = times }
    };
    for (uint64_t i = 0; i < lap->num_tasks - lap->num_failures; i++) {
        int64_t time_ns = ns(lap->times ? lap->times[i] : 0.1);
        weir_histogram_record(times, time_ns);
        stage.metrics.task.success_ns += time_ns;
        stage.metrics.task.max_ns = time_ns > stage.metrics.task.max_ns ? time_ns : stage.metrics.task.max_ns;
    }
    observer.lap(observer.self, &stage);
    free(times);
}

static void record_queue(weir_observer observer, const invented_lap *lap, const char *name)
{
    int64_t elapsed_ns = ns(elapsed_of(lap));
    weir_histogram *times = calloc(2, sizeof *times);
    assert_non_null(times);
    for (uint64_t i = 0; i < lap->num_tasks; i++) {
        weir_histogram_record(&times[0], ns(0.002));
        weir_histogram_record(&times[1], ns(0.03));
    }
    weir_subject_lap queue = {
        .subject = WEIR_SUBJECT_QUEUE,
        .kind = "queue",
        .name = name,
        .capacity = 2,
        .lap = &(weir_lap){ .end_unix_ns = ns(lap->at), .elapsed_ns = elapsed_ns, .position = place_of(lap) },
        .metrics.queue = { .num_put = lap->num_tasks,
                           .num_items = lap->num_tasks,
                           .put_ns = (int64_t)lap->num_tasks * ns(0.002),
                           .get_ns = (int64_t)lap->num_tasks * ns(0.03),
                           .occupied_ns = elapsed_ns / 4,
                           .depth_ns = 1.5 * (double)elapsed_ns,
                           .bytes_ns = 2e6 * (double)elapsed_ns,
                           .max_depth = 2,
                           .max_bytes = 3000000,
                           .put_times = &times[0],
                           .get_times = &times[1],
                           .latency_ns = -1,
                           .min_latency_ns = -1,
                           .max_latency_ns = -1 }
    };
    observer.lap(observer.self, &queue);
    free(times);
}

void record_lap(weir_sqlite_writer *writer, const invented_lap *lap)
{
    weir_observer observer = weir_sqlite_observer(writer);
    record_queue(observer, lap, "0:0:src_queue");
    record_stage(observer, lap);
    record_queue(observer, lap, "0:1:decode[10]_queue");
    record_queue(observer, lap, "0:2:sink_queue");
}

void record_failure(weir_sqlite_writer *writer, double at, const char *label, double elapsed)
{
    weir_observer observer = weir_sqlite_observer(writer);
    weir_failure failure = {
        .unix_ns = ns(at),
        .name = "0:1:decode[10]",
        .seq = 7,
        .label = label,
        .status = WEIR_EDATA,
        .library_code = -22,
        .message = "cannot open: no frame",
        .run_ns = ns(elapsed),
    };
    observer.failure(observer.self, &failure);
}

void record_event(weir_sqlite_writer *writer, double at, const char *name)
{
    weir_observer observer = weir_sqlite_observer(writer);
    weir_event event = { .unix_ns = ns(at), .name = name, .category = "user", .detail = "detail" };
    observer.event(observer.self, &event);
}

int64_t recording_end(weir_sqlite_writer *writer, double ended)
{
    weir_observer observer = weir_sqlite_observer(writer);
    weir_run_end end = { .end_unix_ns = ns(ended), .status = WEIR_OK };
    observer.run_end(observer.self, &end);
    int64_t run_id = weir_sqlite_run_id(writer);
    close_writer(writer);
    return run_id;
}

double lap_value(const weir_lap_record *lap, const char *measure)
{
    assert_non_null(weir_measure_find(lap->subject, measure));
    return weir_measure_of(lap->subject, measure, &lap->metrics, lap->elapsed_ns);
}

double total_value(const weir_total *total, const char *measure)
{
    assert_non_null(weir_measure_find(total->subject, measure));
    return weir_measure_of(total->subject, measure, &total->metrics, total->elapsed_ns);
}
