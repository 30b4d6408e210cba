/*
 * How a file is read is decided when it is opened. To read all frames no index is needed (plain). For the first few
 * frames, packets are read until they certainly contain these frames, so that nothing else is decoded. If the dts do
 * not show when that is, or the packets exceed the cache, the reading is plain, too.
 *
 * Otherwise all packets are read once and indexed, and cached if they are not too many (file_packets.h). If the index is trusted,
 * decoding goes in runs (indexed_run.h). If it is not trusted, everything is decoded to count the frames, and once more if the
 * selected ones could not be kept meanwhile (frame_counter.h).
 *
 * A file that stays open (stays_open) keeps the index, the cache, the timeline, and the decoder's state for the next request.
 */
#include "stages/reader/frame_reader.h"

#include <inttypes.h>

#include <weir/clock.h>

#include "stages/decoder/stream_facts.h"
#include "stages/reader/bitstream.h"

/* More first frames than this are read plainly: the few extra decoded frames cost little then. */
static const uint32_t max_first_frames = 1024;

/* At least this many packets may be indexed, even if the limit on frames is lower. */
static const uint64_t min_limit_packets = UINT64_C(1) << 22;

static int check_duration(const weir_frame_reader *reader, int64_t duration_ns, weir_error *error)
{
    if (duration_ns <= reader->max_duration_ns)
        return WEIR_OK;
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "the video is longer than the limit of %.3f s: raise max_duration_ns",
                          (double)reader->max_duration_ns / (double)WEIR_SECOND);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

int weir__frame_reader_open(weir_frame_reader *reader, const char *path, weir_error *error)
{
    weir_file_packets *file = &reader->file;
    weir_frame_targets *targets = &reader->targets;
    reader->counter = (weir_frame_counter){ .file = file, .targets = targets };
    weir__indexed_run_reset(&reader->run);
    reader->run = (weir_indexed_run){ .file = file, .targets = targets, .stays_open = reader->stays_open };
    file->path = path;
    file->decoder->is_threaded = false;
    file->max_packets = FFMAX(reader->max_frames, min_limit_packets);
    int rc = weir__file_packets_open(file, error);
    if (rc == WEIR_OK)
        weir__frame_counter_begin(&reader->counter);
    return rc;
}

void weir__frame_reader_close(weir_frame_reader *reader)
{
    weir__frame_targets_forget(&reader->targets);
    weir__frame_counter_reset(&reader->counter);
    weir__indexed_run_reset(&reader->run);
    weir__recent_frames_reset(&reader->recent);
    reader->file.decoder->memory.give_up = NULL;
    weir__timeline_reset(&reader->timeline);
    weir__file_packets_reset(&reader->file);
    *reader = (weir_frame_reader){
        .file = reader->file,
        .sampling = reader->sampling,
        .is_survey = reader->is_survey,
        .seed = reader->seed,
        .max_frames = reader->max_frames,
        .max_duration_ns = reader->max_duration_ns,
        .stays_open = reader->stays_open,
        .keeps_recent = reader->keeps_recent,
    };
}

/* ---- selecting ------------------------------------------------------------------------------------------------ */

/* Are few first frames requested, and do the packets show which they are? */
static bool can_look_ahead(const weir_frame_reader *reader)
{
    const weir_decoder *decoder = reader->file.decoder;
    uint32_t count = reader->sampling->count;
    return count > 0 && count <= max_first_frames && weir__bitstream_is_known(decoder->stream->codecpar->codec_id) &&
           weir__stream_has_dts(decoder->format, decoder->stream);
}

/* Makes the index: of the first packets if that is enough, else of all. */
static int make_index(weir_frame_reader *reader, bool is_plain, weir_error *error)
{
    weir_file_packets *file = &reader->file;
    if (is_plain)
        return weir__file_packets_look_ahead(file, reader->sampling->count, error);
    int rc = WEIR_EDATA;
    if (reader->table)
        rc = weir__file_packets_use_table(file, reader->table, reader->table_bytes, error);
    if (rc == WEIR_EDATA)
        rc = reader->is_survey ? weir__file_packets_scan(file, error) : weir__file_packets_list_or_scan(file, error);
    reader->is_whole = rc == WEIR_OK;
    return rc;
}

static void forget_timeline(weir_frame_reader *reader)
{
    weir__timeline_reset(&reader->timeline);
    reader->has_timeline = false;
}

/* The frames that would be selected if each packet gave one, in the order of their times. */
static void guess_targets(weir_frame_reader *reader, uint64_t seq)
{
    weir_timeline timeline = { 0 };
    weir_selection selection = { 0 };
    int rc = weir__index_guess_timeline(&reader->file.index, reader->file.decoder->stream, &timeline);
    if (rc == WEIR_OK)
        rc =
            weir__select_frames(reader->sampling, &timeline, reader->seed, seq, reader->max_frames, &selection, NULL);
    if (rc == WEIR_OK) {
        weir__frame_targets_set(&reader->counter.kept.guess, &selection);
        weir__selection_free(&selection);
    }
    weir__timeline_reset(&timeline);
}

/* With the index if it is trusted, otherwise by decoding everything once. */
static int make_timeline(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    const weir_index *index = &reader->file.index;
    int rc = WEIR_OK;
    reader->way = index->distrust ? WEIR_READER_COUNTED : WEIR_READER_INDEXED;
    if (reader->way == WEIR_READER_COUNTED)
        guess_targets(reader, seq);
    if (reader->way == WEIR_READER_COUNTED)
        rc = weir__frame_counter_count(&reader->counter, &reader->timeline, error);
    else
        weir__index_set_timeline(index, reader->file.decoder->stream, &reader->timeline);
    reader->has_timeline = rc == WEIR_OK;
    return rc;
}

/* The targets that an earlier request has decoded. */
static void find_recent(weir_frame_reader *reader)
{
    weir_decoder *decoder = reader->file.decoder;
    reader->run.recent = &reader->recent;
    decoder->memory.give_up = weir__indexed_run_give_up;
    decoder->memory.keeper = &reader->run;
    for (size_t i = 0; i < reader->targets.num; i++)
        reader->targets.all[i].kept = weir__recent_frames_get(&reader->recent, reader->targets.all[i].frame);
}

static int set_targets(weir_frame_reader *reader, const weir_selection *selection, weir_error *error)
{
    if (weir__frame_targets_set(&reader->targets, selection) != WEIR_OK)
        return weir__reader_fail_memory(error);
    if (reader->way == WEIR_READER_INDEXED && reader->keeps_recent)
        find_recent(reader);
    if (reader->way == WEIR_READER_INDEXED)
        weir__indexed_run_want(&reader->run);
    return weir__index_failure(&reader->file.index, error);
}

/* What an earlier request has left, except the index, the cache, and where the decoder stands. */
static void forget_targets(weir_frame_reader *reader)
{
    if (reader->way == WEIR_READER_INDEXED)
        weir__indexed_run_forget(&reader->run);
    weir__frame_targets_forget(&reader->targets);
}

/* Selects frames by their times and numbers. */
static int choose_frames(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    weir_decoder *decoder = reader->file.decoder;
    weir_timeline *timeline = &reader->timeline;
    weir_selection selection = { 0 };
    uint64_t num_errors = decoder->num_errors;
    reader->run.scan_errors = num_errors;
    int rc = reader->has_timeline ? WEIR_OK : make_timeline(reader, seq, error);
    if (rc == WEIR_OK)
        rc = check_duration(reader, weir__timeline_ns(timeline, timeline->num_frames), error);
    if (rc == WEIR_OK && timeline->num_frames > 0) {
        decoder->num_errors = num_errors; /* the errors of the counting pass are counted again */
        rc =
            weir__select_frames(reader->sampling, timeline, reader->seed, seq, reader->max_frames, &selection, error);
        if (rc == WEIR_OK)
            rc = set_targets(reader, &selection, error);
    }
    if (!reader->stays_open)
        forget_timeline(reader);
    weir__selection_free(&selection);
    int failure = weir__index_failure(&reader->file.index, error); /* then the others come from it */
    return failure == WEIR_OK ? rc : failure;
}

/* The index is that of the file, or the file is read. */
static int choose_surely(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    int rc = choose_frames(reader, seq, error);
    if (weir__index_failure(&reader->file.index, NULL) != WEIR_EDATA)
        return rc;
    forget_targets(reader);
    forget_timeline(reader);
    if (error)
        *error = (weir_error){ 0 };
    rc = weir__file_packets_scan_again(&reader->file, error);
    reader->is_whole = rc == WEIR_OK;
    return rc == WEIR_OK ? choose_frames(reader, seq, error) : rc;
}

bool weir__frame_reader_can_select(const weir_frame_reader *reader, const weir_sampling *sampling)
{
    if (!reader->is_asked)
        return true;
    bool is_sound =
        reader->file.decoder->num_errors == 0 && reader->targets.num_missing == 0 && !reader->run.is_last_resort;
    bool is_enough =
        (!reader->is_survey || !reader->file.listed.blocks) && !weir__index_is_doubtful(&reader->file.index);
    return reader->is_whole && reader->has_timeline && is_sound && is_enough && !weir__sampling_is_plain(sampling);
}

void weir__frame_reader_rest(weir_frame_reader *reader)
{
    forget_targets(reader);
    weir__frame_counter_reset(&reader->counter);
    reader->counter.has_kept = false;
    reader->counter.is_running = false;
    av_frame_unref(reader->file.decoder->frame);
    if (reader->keeps_recent && reader->way == WEIR_READER_INDEXED)
        return; /* the next request may go on */
    reader->run.is_running = false;
    reader->file.hidden.num = 0;
    weir__decoder_flush(reader->file.decoder);
}

size_t weir__frame_reader_bytes(const weir_frame_reader *reader)
{
    const AVFormatContext *format = reader->file.decoder->format;
    size_t num_bytes = weir__file_packets_bytes(&reader->file) + weir__timeline_bytes(&reader->timeline) +
                       (size_t)weir__frame_memory_bytes(&reader->file.decoder->memory);
    if (reader->counter.pool)
        num_bytes += (size_t)weir__group_pool_bytes(reader->counter.pool);
    for (unsigned i = 0; i < format->nb_streams; i++)
        num_bytes += (size_t)avformat_index_get_entries_count(format->streams[i]) * sizeof(AVIndexEntry);
    return num_bytes;
}

int weir__frame_reader_select(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    const weir_file_packets *file = &reader->file;
    bool is_plain = weir__sampling_is_plain(reader->sampling);
    bool is_further = reader->is_asked;
    int rc = WEIR_OK;
    reader->is_asked = true;
    if (is_plain && !can_look_ahead(reader))
        return weir__frame_counter_use_threads(&reader->counter, &reader->pictures, error);
    weir__listed_packets_begin(&reader->file.listed);
    if (is_further)
        forget_targets(reader);
    else
        rc = make_index(reader, is_plain, error);
    if (rc == WEIR_OK && is_plain && file->index.distrust)
        return file->num_cached == file->index.num_packets ? WEIR_OK : weir__reader_fail_memory(error);
    if (rc == WEIR_OK)
        rc = choose_surely(reader, seq, error);
    if (rc == WEIR_OK && reader->way == WEIR_READER_COUNTED && reader->targets.num > 0)
        rc = weir__frame_counter_go_to(&reader->counter, error);
    return rc;
}

/* ---- decoding ------------------------------------------------------------------------------------------------- */

static int next_plain(weir_frame_reader *reader, weir_error *error)
{
    weir_frame_counter *counter = &reader->counter;
    uint32_t count = reader->sampling->count;
    if (count && counter->num_frames >= count)
        return WEIR_EOF;
    int rc = weir__frame_counter_next(counter, error);
    if (rc != WEIR_OK)
        return rc;
    if (counter->num_frames > reader->max_frames)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "more frames than the limit of %" PRIu64 ": raise max_frames, or take fewer (sampling)",
                              reader->max_frames);
    return check_duration(reader, weir__ticks_ns(counter->clock.ticks, counter->clock.time_base), error);
}

/* Is the next target kept? Then its frame is in the decoder. */
static bool take_kept(weir_frame_reader *reader)
{
    weir_frame_targets *targets = &reader->targets;
    weir_target *target = targets->next < targets->num ? &targets->all[targets->next] : NULL;
    if (!target || !target->kept)
        return false;
    av_frame_unref(reader->file.decoder->frame);
    av_frame_move_ref(reader->file.decoder->frame, target->kept);
    av_frame_free(&target->kept);
    return true;
}

int weir__frame_reader_next(weir_frame_reader *reader, weir_error *error)
{
    reader->num_repeats = 1;
    if (reader->way == WEIR_READER_PLAIN)
        return next_plain(reader, error);
    int rc = WEIR_OK;
    if (reader->way == WEIR_READER_COUNTED)
        rc = weir__frame_counter_select(&reader->counter, error);
    else if (!take_kept(reader))
        rc = weir__indexed_run_next(&reader->run, error);
    if (rc == WEIR_OK)
        reader->num_repeats = weir__frame_targets_take(&reader->targets);
    return rc;
}

int64_t weir__frame_reader_pts(const weir_frame_reader *reader)
{
    if (reader->way != WEIR_READER_INDEXED)
        return reader->counter.clock.pts;
    return reader->file.index.has_no_times ? AV_NOPTS_VALUE : reader->file.decoder->frame->pts;
}

int64_t weir__frame_reader_ns(const weir_frame_reader *reader)
{
    const weir_frame_clock *clock = &reader->counter.clock;
    const weir_index *index = &reader->file.index;
    if (reader->way != WEIR_READER_INDEXED)
        return weir__ticks_ns(clock->ticks, clock->time_base);
    int64_t first_pts = weir__index_packet(index, weir__index_packet_of(index, 0))->pts;
    return weir__ticks_ns(reader->file.decoder->frame->pts - first_pts, reader->file.decoder->stream->time_base);
}

const weir_group_picture *weir__frame_reader_picture(const weir_frame_reader *reader)
{
    return weir__group_pool_picture(reader->counter.pool);
}

bool weir__frame_reader_is_repeat(const weir_frame_reader *reader, unsigned copy)
{
    const weir_frame_targets *targets = &reader->targets;
    return targets->num > 0 && targets->all[targets->next - reader->num_repeats + copy].is_repeat;
}

uint64_t weir__frame_reader_estimate_frames(const weir_frame_reader *reader)
{
    if (reader->targets.num)
        return reader->targets.num;
    uint64_t num_frames = weir__stream_estimate_frames(reader->file.decoder->format, reader->file.decoder->stream);
    uint32_t count = reader->sampling->count;
    return count && (count < num_frames || num_frames == 0) ? count : num_frames;
}

int weir__frame_reader_order(const weir_frame_reader *reader, size_t num_frames, size_t **order)
{
    return weir__frame_targets_order(&reader->targets, num_frames, order);
}
