#include "stages/reader/indexed_run.h"

#include <stdlib.h>

#include "stages/ffmpeg/ffmpeg_log.h"

/* ---- where a run begins and ends ------------------------------------------------------------------------------ */

static weir_packet_entry *entry_of(const weir_indexed_run *run, size_t packet)
{
    return weir__index_packet(&run->file->index, packet);
}

static size_t packet_of(const weir_indexed_run *run, size_t target)
{
    return weir__file_packets_of_frame(run->file, run->targets->all[target].frame);
}

/*
 * After a start that is not an IDR picture FFmpeg's H.264 decoder considers frames corrupt until a complete one was
 * output. If it is drained before, it outputs none. The index knows that these frames are complete, so they are
 * requested.
 */
static void show_unsure(AVCodecContext *codec)
{
    if (codec->codec_id == AV_CODEC_ID_H264)
        codec->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
}

/* Signs of damage: packets that cannot be decoded, and errors and patched pictures in FFmpeg's log. */
static uint64_t count_trouble(const weir_indexed_run *run)
{
    const weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    return run->file->decoder->num_errors + (log ? log->num_trouble : 0) +
           weir__decoder_thread_trouble(run->file->decoder);
}

static size_t start_of(const weir_indexed_run *run, size_t target)
{
    return weir__index_start_of(&run->file->index, (size_t)run->targets->all[target].frame);
}

static int64_t pts_of(const weir_indexed_run *run, size_t target)
{
    return entry_of(run, packet_of(run, target))->pts;
}

/* Can the run go on to the next target, and does that cost no more than a new run? */
static bool can_go_on(const weir_indexed_run *run)
{
    size_t target = run->targets->next;
    bool is_drained = run->file->decoder->draining && run->packet < run->file->index.num_packets;
    return run->stays_open && run->is_running && !run->must_drain && !is_drained && !run->plan.is_on &&
           run->targets->all[target].frame >= run->front && pts_of(run, target) > run->skipped_pts &&
           start_of(run, target) <= run->packet;
}

/* Which packets the next targets need, up to the next clean start that saves some. */
static void set_run(weir_indexed_run *run)
{
    size_t target = run->targets->next;
    run->last = packet_of(run, target);
    if (run->packet > run->start)
        run->last = FFMAX(run->last, run->packet - 1);
    run->end = target + 1;
    for (target++; target < run->targets->num; target++) {
        if (run->targets->all[target].kept)
            continue;
        if (start_of(run, target) > run->last + 1)
            break;
        run->last = FFMAX(run->last, packet_of(run, target));
        run->end = target + 1;
    }
    run->is_running = true;
    run->is_beyond = false;
    run->has_given_up = false;
}

/* Are packets of the run shown before its start? */
static bool has_leading(const weir_indexed_run *run)
{
    int64_t start_pts = entry_of(run, run->start)->pts;
    for (size_t at = run->start + 1; run->start > 0 && at <= run->last; at++) {
        const weir_packet_entry *entry = entry_of(run, at);
        if (entry->flags & WEIR_PACKET_CLEAN)
            break;
        if (entry->pts < start_pts)
            return true;
    }
    return false;
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static const AVPacket *planned_packet(void *self, size_t at)
{
    weir_indexed_run *run = self;
    return weir__file_packets_cached(run->file, at);
}

static bool is_packet_wanted(void *self, size_t at)
{
    return entry_of(self, at)->flags & WEIR_PACKET_WANTED;
}

/* Is it worth more than what further requests have of a decoder that has all frames? */
static bool is_worth_it(weir_indexed_run *run)
{
    const weir_av1_plan *plan = &run->plan;
    if (run->plan_start != run->start)
        run->num_planned = 0;
    run->plan_start = run->start;
    run->num_planned += plan->num_needed;
    if (plan->num_needed < plan->num_all && (!run->stays_open || run->num_planned <= plan->num_all))
        return true;
    run->num_planned = 0;
    return false;
}

static bool may_plan(const weir_indexed_run *run)
{
    return run->file->decoder->stream->codecpar->codec_id == AV_CODEC_ID_AV1 && !run->is_last_resort;
}

/* A plan looks at all packets of the run before the first one is sent. */
static int go_to_start(weir_indexed_run *run, weir_error *error)
{
    if (run->file->cache)
        return WEIR_OK;
    return may_plan(run) ? weir__file_packets_hold(run->file, run->start, run->last, error)
                         : weir__file_packets_go_to(run->file, run->start, error);
}

static int make_plan(weir_indexed_run *run, weir_error *error)
{
    const weir_av1_run wanted = { run->start, run->last, planned_packet, is_packet_wanted, run };
    weir__av1_plan_end(&run->plan);
    if (!may_plan(run))
        return WEIR_OK;
    if (weir__av1_plan_make(&run->plan, run->file->decoder->stream->codecpar, &wanted) != WEIR_OK)
        return weir__reader_fail_memory(error);
    if (run->plan.is_on && !is_worth_it(run))
        weir__av1_plan_end(&run->plan);
    return WEIR_OK;
}

static int send_packet(weir_indexed_run *run, size_t at, weir_error *error)
{
    if (!run->plan.is_on)
        return weir__file_packets_send(run->file, at, error);
    const AVPacket *packet = weir__file_packets_cached(run->file, at);
    packet = packet ? weir__av1_plan_cut(&run->plan, at, packet) : NULL;
    return packet ? weir__file_packets_decode(run->file, packet, error) : weir__reader_fail_memory(error);
}

static int begin_run(weir_indexed_run *run, weir_error *error)
{
    if (run->has_given_up)
        weir__indexed_run_want(run); /* what was kept is to be decoded, too */
    if (can_go_on(run)) {
        set_run(run);
        run->trouble = count_trouble(run);
        return WEIR_OK;
    }
    run->start = start_of(run, run->targets->next);
    run->packet = run->start;
    run->front = run->targets->all[run->targets->next].frame;
    run->skipped_pts = INT64_MIN;
    set_run(run);
    weir__decoder_flush(run->file->decoder);
    run->file->hidden.num = 0;
    int rc = weir__decoder_use_threads(run->file->decoder, !run->is_alone && !has_leading(run), error);
    if (rc == WEIR_OK)
        rc = go_to_start(run, error);
    if (rc == WEIR_OK)
        rc = make_plan(run, error);
    if (rc == WEIR_OK)
        show_unsure(run->file->decoder->codec);
    run->trouble = count_trouble(run);
    return rc;
}

/* Used if the index is wrong, or the file damaged. Errors of earlier runs will be counted again. */
static int begin_last_resort(weir_indexed_run *run, weir_error *error)
{
    weir__frame_targets_drop_kept(run->targets);
    if (run->recent)
        weir__recent_frames_drop(run->recent);
    run->file->decoder->num_errors = run->scan_errors;
    run->is_last_resort = true;
    weir__av1_plan_end(&run->plan);
    run->is_running = true;
    run->is_beyond = false;
    run->start = 0;
    run->packet = 0;
    run->last = run->file->index.num_packets - 1;
    run->end = run->targets->num;
    int rc = weir__decoder_use_threads(run->file->decoder, false, error);
    return rc == WEIR_OK ? weir__file_packets_start_over(run->file, error) : rc;
}

/* Is it disposable, and not wanted? */
static bool is_spare(const weir_indexed_run *run, size_t at)
{
    unsigned flags = run->is_last_resort ? 0 : entry_of(run, at)->flags;
    return (flags & WEIR_PACKET_DISPOSABLE) && !(flags & WEIR_PACKET_WANTED);
}

/* And will the next request not want it, if it goes on here? */
static bool can_skip(const weir_indexed_run *run, size_t at)
{
    bool may_go_on = run->stays_open && !run->must_drain;
    return is_spare(run, at) && (!may_go_on || entry_of(run, at)->pts < pts_of(run, run->targets->num - 1));
}

/* May the run get packets after those that it needs? No decoder holds back that many frames. */
static bool may_go_beyond(const weir_indexed_run *run)
{
    enum { MAX_BEYOND = 64 };
    bool is_last = run->end == run->targets->num && !run->is_last_resort;
    bool has_trouble = !run->is_beyond && count_trouble(run) > run->trouble;
    return run->stays_open && is_last && !run->must_drain && !run->plan.is_on && !has_trouble &&
           run->packet <= run->last + MAX_BEYOND && weir__index_try(&run->file->index, run->packet);
}

/* Is there no further packet for it? */
static bool is_run_over(const weir_indexed_run *run)
{
    return run->packet >= run->file->index.num_packets || (run->packet > run->last && !may_go_beyond(run));
}

static void skip_packets(weir_indexed_run *run)
{
    while (!is_run_over(run) && (can_skip(run, run->packet) || weir__av1_plan_skips(&run->plan, run->packet))) {
        const weir_packet_entry *entry = entry_of(run, run->packet++);
        run->skipped_pts = FFMAX(run->skipped_pts, entry->pts);
    }
}

/* Before the first packet that the request does not need: what the others have shown counts for it. */
static void note_beyond(weir_indexed_run *run)
{
    bool is_needed = run->packet <= run->last && !is_spare(run, run->packet);
    if (run->is_beyond || is_needed)
        return;
    run->is_beyond = true;
    run->needed_errors = run->file->decoder->num_errors;
    run->needed_averror = run->file->decoder->first_averror;
}

/* There may be damage in the packets that the request does not need: the run begins anew, without them. */
static void forget_beyond(weir_indexed_run *run)
{
    run->file->decoder->num_errors = run->needed_errors;
    run->file->decoder->first_averror = run->needed_averror;
    run->must_drain = true;
    run->is_running = false;
}

/* Is it shown before the run's start, so that its references may be missing? */
static bool is_leading(const weir_indexed_run *run, size_t at)
{
    return run->start > 0 && entry_of(run, at)->pts < entry_of(run, run->start)->pts;
}

static int feed_run(weir_indexed_run *run, weir_error *error)
{
    weir_decoder *decoder = run->file->decoder;
    skip_packets(run);
    if (is_run_over(run))
        return weir__file_packets_decode(run->file, NULL, error);

    note_beyond(run);
    uint64_t num_errors = decoder->num_errors;
    uint64_t trouble = count_trouble(run);
    int first_averror = decoder->first_averror;
    size_t at = run->packet++;
    int rc = send_packet(run, at, error);
    if (is_leading(run, at)) {
        run->trouble += count_trouble(run) - trouble;
        run->trouble -= decoder->num_errors - num_errors;
        decoder->num_errors = num_errors;
        decoder->first_averror = first_averror;
    }
    return rc;
}

/* Notes that the frame has come out. No frame should come out after the run's last target: that target is then
   missing, or comes too late. */
static void note_frame(weir_indexed_run *run, size_t frame)
{
    run->front = FFMAX(run->front, (uint64_t)frame + 1);
    run->must_drain |= frame > run->targets->all[run->end - 1].frame;
}

/* The target of that frame; run_end if none. */
static size_t find_target(const weir_indexed_run *run, size_t frame)
{
    size_t target = run->targets->next;
    while (target < run->end && run->targets->all[target].frame < frame)
        target++;
    return target < run->end && run->targets->all[target].frame == frame ? target : run->end;
}

/* The targets up to that one are missing in this run. WEIR_MORE: another run may find them. */
static int pass_over(weir_indexed_run *run, size_t target, weir_error *error)
{
    if (!run->is_last_resort) {
        int rc = begin_last_resort(run, error);
        return rc == WEIR_OK ? WEIR_MORE : rc;
    }
    run->targets->num_missing += target - run->targets->next;
    run->targets->next = target;
    return WEIR_OK;
}

/* The run has ended without all of its targets. */
static int end_run(weir_indexed_run *run, weir_error *error)
{
    if (run->is_beyond && !run->is_last_resort) {
        forget_beyond(run);
        return WEIR_MORE;
    }
    int rc = pass_over(run, run->end, error);
    if (rc != WEIR_OK)
        return rc;
    run->is_running = false;
    return WEIR_MORE;
}

/* May the run's frames differ from those of decoding everything? */
static bool is_doubtful(const weir_indexed_run *run)
{
    return !run->is_last_resort &&
           (count_trouble(run) > run->trouble || run->file->decoder->frame->decode_error_flags);
}

/* WEIR_MORE, or the failure. */
static int decode_again(weir_indexed_run *run, weir_error *error)
{
    if (!run->is_beyond) {
        int rc = begin_last_resort(run, error);
        return rc == WEIR_OK ? WEIR_MORE : rc;
    }
    forget_beyond(run);
    return WEIR_MORE;
}

/* Is the current frame what any other run would show? Of those shown before the run's start, references may be missing. */
static bool may_keep(const weir_indexed_run *run)
{
    const weir_decoder *decoder = run->file->decoder;
    return run->recent && !run->is_last_resort && !decoder->is_threaded &&
           (run->start == 0 || decoder->frame->pts >= entry_of(run, run->start)->pts);
}

/* Accepts the current frame, or skips it (WEIR_MORE). */
static int take_frame(weir_indexed_run *run, weir_error *error)
{
    if (is_doubtful(run))
        return decode_again(run, error);
    size_t frame;
    if (!weir__index_find(&run->file->index, run->file->decoder->frame->pts, &frame))
        return WEIR_MORE;
    note_frame(run, frame);
    if (run->file->decoder->codec->flags & AV_CODEC_FLAG_OUTPUT_CORRUPT)
        run->file->decoder->frame->flags &= ~AV_FRAME_FLAG_CORRUPT;
    if (may_keep(run))
        weir__recent_frames_add(run->recent, frame, run->file->decoder->frame);
    size_t target = find_target(run, frame);
    if (target == run->end)
        return WEIR_MORE;
    return target > run->targets->next ? pass_over(run, target, error) : WEIR_OK;
}

/* The frames of several threads were over the limit of memory. WEIR_MORE. */
static int go_on_alone(weir_indexed_run *run, weir_error *error)
{
    if (error)
        *error = (weir_error){ 0 };
    run->is_alone = true;
    run->is_running = false;
    return WEIR_MORE;
}

int weir__indexed_run_next(weir_indexed_run *run, weir_error *error)
{
    while (run->targets->next < run->targets->num) {
        bool needs_run = !run->is_running || run->targets->next >= run->end || run->has_given_up;
        int rc = needs_run ? begin_run(run, error) : WEIR_OK;
        if (rc != WEIR_OK)
            return rc;
        rc = weir__file_packets_receive(run->file, error);
        if (rc == WEIR_OK)
            rc = take_frame(run, error);
        else if (rc == WEIR_MORE && (rc = feed_run(run, error)) == WEIR_OK)
            rc = WEIR_MORE;
        else if (rc == WEIR_EOF)
            rc = end_run(run, error);
        if (rc == WEIR_ELIMIT && run->file->decoder->is_threaded)
            rc = go_on_alone(run, error);
        int failure = weir__index_failure(&run->file->index, error);
        if (failure != WEIR_OK || rc != WEIR_MORE)
            return failure != WEIR_OK ? failure : rc;
    }
    return WEIR_EOF;
}

/* ---- the targets of a request ---------------------------------------------------------------------------------- */

void weir__indexed_run_give_up(void *self)
{
    weir_indexed_run *run = self;
    weir__recent_frames_drop(run->recent);
    for (size_t i = run->targets->next; i < run->targets->num; i++)
        run->has_given_up |= run->targets->all[i].kept != NULL;
    weir__frame_targets_drop_kept(run->targets);
}

void weir__indexed_run_reset(weir_indexed_run *run)
{
    weir__av1_plan_free(&run->plan);
}

void weir__indexed_run_want(weir_indexed_run *run)
{
    for (size_t i = 0; i < run->targets->num; i++) {
        size_t packet = packet_of(run, i);
        if (run->targets->all[i].kept)
            continue;
        weir__index_load(&run->file->index, start_of(run, i), packet);
        entry_of(run, packet)->flags |= WEIR_PACKET_WANTED;
    }
}

void weir__indexed_run_forget(weir_indexed_run *run)
{
    for (size_t i = 0; i < run->targets->num; i++)
        entry_of(run, packet_of(run, i))->flags &= (uint8_t)~WEIR_PACKET_WANTED;
    run->end = 0;
}
