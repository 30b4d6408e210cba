#include "tools/record/record_progress.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/format.h"
#include "tools/record/terminal.h"

static const int64_t redraw_interval_ns = 200 * WEIR_MILLISECOND;

static struct {
    int64_t start_ns;
    int64_t drawn_ns;
    uint32_t epochs;
    atomic_uint_fast64_t total; /* number of files; 0 = not known yet */
    bool is_total_recorded;
} progress;

static void *count_files(void *inputs)
{
    atomic_store(&progress.total, record_inputs_count(inputs) * progress.epochs);
    return NULL;
}

void record_progress_start(const record_inputs *inputs, uint32_t epochs)
{
    progress.start_ns = weir_clock_ns();
    progress.epochs = epochs ? epochs : 1;
    pthread_t counter;
    if (inputs && pthread_create(&counter, NULL, count_files, (void *)(uintptr_t)inputs) == 0)
        pthread_detach(counter);
}

static void draw(weir_pipeline *pipeline, int64_t now_ns)
{
    weir_account account;
    if (weir_pipeline_account(pipeline, "decode", &account) != WEIR_OK)
        return;
    /* Counts files, not chunks. While a chunk waits for room, its file counts as in flight. */
    uint64_t done = account.taken > account.in_flight ? account.taken - account.in_flight : 0;
    uint64_t total = atomic_load(&progress.total);
    double per_second = (double)done / ((double)(now_ns - progress.start_ns) / (double)WEIR_SECOND);

    char of_total[64] = "", eta[64] = "", line[256];
    if (total >= done && total > 0)
        snprintf(of_total, sizeof of_total, " of %" PRIu64 " (%.1f %%)", total, 100 * (double)done / (double)total);
    if (total >= done && done > 0) {
        char duration[WEIR_FORMAT_BYTES];
        weir__text_format_duration(duration, (int64_t)(1e9 * fmin((double)(total - done) / per_second, 9e9)));
        snprintf(eta, sizeof eta, "  ETA %s", duration);
    }
    snprintf(line, sizeof line, "%" PRIu64 "%s files  %.1f/s%s  %" PRIu64 " failed", done, of_total, per_second, eta,
             account.failed);
    terminal_show(line);
}

/* `weir watch` derives the remaining time from this event. */
static void record_total(weir_pipeline *pipeline)
{
    uint64_t total = atomic_load(&progress.total);
    if (progress.is_total_recorded || total == 0)
        return;
    char detail[32];
    snprintf(detail, sizeof detail, "%" PRIu64, total);
    weir_pipeline_event(pipeline, "expected_items", "pipeline", detail);
    progress.is_total_recorded = true;
}

int record_progress_interval_ms(void)
{
    return terminal_has_status() ? (int)(redraw_interval_ns / WEIR_MILLISECOND) : -1;
}

void record_progress_update(weir_pipeline *pipeline)
{
    record_total(pipeline);
    int64_t now_ns = weir_clock_ns();
    if (!terminal_has_status() || now_ns - progress.drawn_ns < redraw_interval_ns)
        return;
    progress.drawn_ns = now_ns;
    draw(pipeline, now_ns);
}

void record_progress_end(void)
{
    terminal_show("");
}
