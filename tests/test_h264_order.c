/*
 * H.264 whose container does not store the order of presentation: what its headers tell is what decoding all frames gives.
 *
 * Clips: the timeline of the index is that of counting decoded frames, and lists of frames are those of decoding all, byte by byte.
 * A clip is drawn from container × B-frames × pyramid × group × open groups × slices × weights × interlacing × dropped frames ×
 * cut, joined, truncated, packets left out.
 *
 *     WEIR_ORDER_CASES=N    how many clips (default: DEFAULT_CASES)
 *     WEIR_ORDER_SEED=N     which (default: 1)
 *     WEIR_ORDER_CASE=N     only this one
 *     WEIR_ORDER_FILES=...  these files instead, separated by spaces
 *
 * Headers: invented ones, for what x264 does not make. The referee of picture order counts is FFmpeg's parser.
 *
 * Held constant: one small size; the decoder has one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>

#include "common/hash.h"
#include "common/random.h"
#include "stages/reader/bits.h"
#include "stages/reader/frame_reader.h"
#include "stages/reader/packet_table.h"
#include "tests/clips.h"

#ifdef SANITIZED
enum { DEFAULT_CASES = 12 };
#else
enum { DEFAULT_CASES = 30 };
#endif

enum { MAX_FRAMES = 4096, TEXT_BYTES = 1024, COMMAND_BYTES = 4096, CACHE_BYTES = 16 << 20 };

static uint64_t random_state = 1;

static size_t below(size_t end)
{
    return (size_t)weir__random_below(&random_state, end);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- an open file ------------------------------------------------------------------------------------------------ */

static const weir_decoder_config limits = { .max_pixels = INT32_MAX,
                                            .max_decoder_bytes = 1 << 30,
                                            .max_all_decoder_bytes = UINT64_MAX };
static const weir_input_config input = { .max_pipe_bytes = 1 << 30 };

typedef struct opened {
    weir_decoder decoder;
    weir_sampling sampling;
    weir_frame_reader reader;
} opened;

/* False: it cannot be opened; it is to be closed all the same. */
static bool open_file(opened *to, const char *path, weir_sampling sampling, size_t max_cached_bytes)
{
    *to = (opened){ .decoder = { .config = &limits, .input.config = &input }, .sampling = sampling };
    to->reader = (weir_frame_reader){
        .file = { .decoder = &to->decoder, .max_cached_bytes = max_cached_bytes, .far_bytes = 1 },
        .sampling = &to->sampling,
        .max_frames = MAX_FRAMES,
        .max_duration_ns = INT64_MAX,
    };
    assert_int_equal(weir__sampling_init(&to->sampling, NULL), WEIR_OK);
    assert_int_equal(weir__decoder_init(&to->decoder), WEIR_OK);
    return weir__frame_reader_open(&to->reader, path, NULL) == WEIR_OK;
}

static void close_file(opened *from)
{
    weir__frame_reader_close(&from->reader);
    weir__decoder_free(&from->decoder);
    weir__sampling_free(&from->sampling);
}

/* ---- facts of all frames ----------------------------------------------------------------------------------------- */

typedef struct facts {
    size_t num;
    int64_t ticks[MAX_FRAMES];
    bool is_key[MAX_FRAMES];
    int64_t start_ns, end_ticks;
    bool has_end, is_rounded;
    uint64_t num_errors;
    const char *distrust; /* of the index */
    bool is_ordered;
} facts;

static void take_facts(const opened *of, const weir_timeline *timeline, facts *to)
{
    to->num = timeline->num_frames;
    for (size_t i = 0; i < to->num; i++) {
        to->ticks[i] = weir__timeline_ticks(timeline, i);
        to->is_key[i] = weir__timeline_is_key(timeline, i);
    }
    to->start_ns = weir__timeline_start_ns(timeline);
    to->end_ticks = timeline->end_ticks;
    to->has_end = timeline->has_end;
    to->is_rounded = timeline->is_rounded;
    to->num_errors = of->decoder.num_errors;
}

/* By counting decoded frames, or by the index, if it is trusted. */
static void find_facts(const char *path, bool is_counted, facts *to)
{
    opened of;
    weir_timeline timeline = { 0 };
    *to = (facts){ 0 };
    bool is_open = open_file(&of, path, (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 }, CACHE_BYTES);
    if (!is_open || weir__file_packets_scan(&of.reader.file, NULL) != WEIR_OK) {
        to->distrust = "it cannot be opened";
        close_file(&of);
        return;
    }
    const weir_index *index = &of.reader.file.index;
    to->distrust = index->distrust;
    to->is_ordered = index->is_ordered;
    if (is_counted)
        assert_int_equal(weir__frame_counter_count(&of.reader.counter, &timeline, NULL), WEIR_OK);
    else if (!index->distrust)
        weir__index_set_timeline(index, of.decoder.stream, &timeline);
    take_facts(&of, &timeline, to);
    weir__timeline_reset(&timeline);
    close_file(&of);
}

static void assert_facts(const char *what, const facts *got, const facts *wanted)
{
    if (got->num != wanted->num)
        fail_msg("%s: %zu frames, not %zu", what, got->num, wanted->num);
    for (size_t i = 0; i < got->num; i++)
        if (got->ticks[i] != wanted->ticks[i] || got->is_key[i] != wanted->is_key[i])
            fail_msg("%s: frame %zu is at %" PRId64 "%s, not %" PRId64 "%s", what, i, got->ticks[i],
                     got->is_key[i] ? ", a keyframe" : "", wanted->ticks[i], wanted->is_key[i] ? ", a keyframe" : "");
    if (got->start_ns != wanted->start_ns || got->end_ticks != wanted->end_ticks || got->has_end != wanted->has_end ||
        got->is_rounded != wanted->is_rounded)
        fail_msg("%s: begins at %" PRId64 " ns and ends at %" PRId64 ", not %" PRId64 " and %" PRId64, what,
                 got->start_ns, got->end_ticks, wanted->start_ns, wanted->end_ticks);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

typedef struct shot {
    uint64_t hash;
    int64_t pts, time_ns;
} shot;

typedef struct film {
    shot shots[MAX_FRAMES];
    size_t num;
    weir_frame_reader_way way;
    bool was_wrong_index;
} film;

static uint64_t hash_frame(const AVFrame *frame)
{
    static uint8_t bytes[1 << 24];
    int size = av_image_copy_to_buffer(bytes, sizeof bytes, (const uint8_t *const *)frame->data, frame->linesize,
                                       frame->format, frame->width, frame->height, 1);
    assert_true(size > 0);
    return weir__hash(WEIR__HASH_START, bytes, (size_t)size);
}

/* Indices must rise. */
static void read_film(const char *path, weir_sampling sampling, size_t max_cached_bytes, const uint8_t *table,
                      size_t table_bytes, film *to)
{
    opened of;
    weir_error error = { 0 };
    assert_true(open_file(&of, path, sampling, max_cached_bytes));
    of.reader.table = table;
    of.reader.table_bytes = table_bytes;
    to->num = 0;
    int rc = weir__frame_reader_select(&of.reader, 0, &error);
    while (rc == WEIR_OK && (rc = weir__frame_reader_next(&of.reader, &error)) == WEIR_OK)
        to->shots[to->num++] = (shot){ hash_frame(of.decoder.frame), weir__frame_reader_pts(&of.reader),
                                       weir__frame_reader_ns(&of.reader) };
    if (rc != WEIR_EOF)
        fail_msg("%s: %s", path, error.message);
    to->way = of.reader.way;
    to->was_wrong_index = of.reader.run.is_last_resort;
    close_file(&of);
}

static film all, some;      /* of the clip in work */
static bool may_be_damaged; /* it: then all of it may be decoded after all */

static void assert_some(const char *what, const int64_t *frames, size_t num)
{
    if (some.way != WEIR_READER_INDEXED || (some.was_wrong_index && !may_be_damaged))
        fail_msg("%s: %s", what, some.was_wrong_index ? "the order was wrong" : "its frames were counted");
    if (some.num != num)
        fail_msg("%s: %zu frames, not %zu", what, some.num, num);
    for (size_t i = 0; i < num; i++) {
        const shot *got = &some.shots[i], *wanted = &all.shots[frames[i]];
        if (got->hash != wanted->hash)
            fail_msg("%s: frame %" PRId64 " is another one", what, frames[i]);
        if (got->pts != wanted->pts || got->time_ns != wanted->time_ns)
            fail_msg("%s: frame %" PRId64 " has pts %" PRId64 ", not %" PRId64, what, frames[i], got->pts,
                     wanted->pts);
    }
}

/* From memory, by seeking, by a table. */
static void check_frames(const char *what, const char *path, const uint8_t *table, size_t table_bytes)
{
    enum { NUM_LISTS = 6 };
    static int64_t frames[MAX_FRAMES];
    for (size_t list = 0; list < NUM_LISTS; list++) {
        size_t num = 0, every = 1 + below(list < 2 ? 1 : all.num);
        for (size_t i = below(every); i < all.num; i += 1 + below(2 * every))
            frames[num++] = (int64_t)i;
        if (num == 0)
            continue;
        weir_sampling sampling = { .what = WEIR_SAMPLE_INDICES, .indices = frames, .num_indices = num };
        bool has_table = list % 3 == 2;
        read_film(path, sampling, list % 2 ? 0 : CACHE_BYTES, has_table ? table : NULL, has_table ? table_bytes : 0,
                  &some);
        assert_some(what, frames, num);
    }
}

static uint8_t *make_table(const char *path, size_t *num_bytes)
{
    opened of;
    uint8_t *table = NULL;
    assert_true(open_file(&of, path, (weir_sampling){ 0 }, 0));
    assert_int_equal(weir__file_packets_scan(&of.reader.file, NULL), WEIR_OK);
    assert_int_equal(weir__packet_table_pack(&of.reader.file.index, of.decoder.stream->time_base, &table, num_bytes),
                     WEIR_OK);
    close_file(&of);
    return table;
}

/* Returns whether the order of the file was trusted. */
static bool check_file(const char *what, const char *path, const char **why)
{
    static facts indexed, counted;
    size_t table_bytes;
    find_facts(path, false, &indexed);
    *why = indexed.distrust;
    if (indexed.distrust || !indexed.is_ordered)
        return false;
    find_facts(path, true, &counted);
    if (counted.num_errors) {
        *why = "damaged";
        return false;
    }
    assert_facts(what, &indexed, &counted);
    read_film(path, (weir_sampling){ 0 }, CACHE_BYTES, NULL, 0, &all);
    assert_int_equal(all.way, WEIR_READER_PLAIN);
    assert_int_equal(all.num, counted.num);
    uint8_t *table = make_table(path, &table_bytes);
    check_frames(what, path, table, table_bytes);
    free(table);
    return true;
}

/* ---- clips ------------------------------------------------------------------------------------------------------- */

typedef enum part { WHOLE, CUT, JOINED, JOINED_OTHER, TRUNCATED, LEFT_OUT, DELAY_UNTOLD, NUM_PARTS } part;

typedef struct recipe {
    char text[TEXT_BYTES]; /* the encoder's options */
    const char *extension;
    part part;
    bool must_be_trusted;
} recipe;

#define ONE_OF(...) one_of((const char *const[]){ __VA_ARGS__, NULL })

static const char *one_of(const char *const *texts)
{
    size_t num = 0;
    while (texts[num])
        num++;
    return texts[below(num)];
}

static recipe draw_recipe(void)
{
    recipe r = { .extension = ONE_OF("avi", "avi", "avi", "h264"), .part = (part)below(2 * NUM_PARTS) };
    r.part = r.part < NUM_PARTS ? r.part : WHOLE;
    const char *interlacing = ONE_OF("", "", "", ":interlaced=1", ":bff=1", ":fake-interlaced=1");
    snprintf(r.text, sizeof r.text,
             "-vf '%sfade=out:%zu:20' -frames:v %zu -c:v libx264 -preset %s %s -bf %s -g %zu -x264-params "
             "b-pyramid=%s:b-adapt=%zu:weightp=%zu:weightb=%zu:ref=%zu:slices=%zu:scenecut=%s:open-gop=%zu%s%s%s",
             ONE_OF("", "", "", "select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2),"), below(60), 1 + below(90),
             ONE_OF("ultrafast", "veryfast", "medium"),
             ONE_OF("-pix_fmt yuv420p", "-pix_fmt yuv420p", "-pix_fmt yuv420p -profile:v main", "-pix_fmt yuv444p",
                    "-pix_fmt yuv420p10le"),
             ONE_OF("0", "0", "1", "2", "3", "3", "5", "8", "16"), 1 + below(below(2) ? 12 : 60),
             ONE_OF("none", "strict", "normal"), below(3), below(3), below(2), 1 + below(6), 1 + below(3),
             ONE_OF("0", "40"), below(3) / 2, interlacing,
             ONE_OF("", "", ":aud=1", ":nal-hrd=vbr:vbv-maxrate=400:vbv-bufsize=400"),
             ONE_OF("", "", "", ":bluray-compat=1", ":intra-refresh=1", ":constrained-intra=1"));
    if (r.part == DELAY_UNTOLD)
        strcat(r.text, " -pix_fmt yuv420p -profile:v main");
    /* with the times of an HRD, FFmpeg's parser makes up times of showing */
    r.must_be_trusted = (r.part == WHOLE || r.part == JOINED) && !strstr(r.text, "hrd");
    return r;
}

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool run(const char *format, ...)
{
    char command[COMMAND_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(command, sizeof command, format, values);
    va_end(values);
    return system(command) == 0; /* NOLINT: the test's own paths */
}

#define FFMPEG "ffmpeg -nostdin -y -v quiet "

static bool encode(const char *options, unsigned hue, const char *to)
{
    return run(FFMPEG "-f lavfi -i testsrc2=s=64x48:r=25,hue=h=%u %s -fps_mode vfr '%s'", hue, options, to);
}

static const char *folder(void)
{
    static const char *path;
    path = path ? path : clips_path("");
    return path;
}

static bool join(const char *first, const char *second, const char *to)
{
    char list[TEXT_BYTES], text[COMMAND_BYTES];
    snprintf(list, sizeof list, "%slist.txt", folder());
    snprintf(text, sizeof text, "file '%s'\nfile '%s'\n", first, second);
    clips_write_text(list, text);
    return strstr(to, ".h264") ? run("cat '%s' '%s' > '%s'", first, second, to)
                               : run(FFMPEG "-f concat -safe 0 -i '%s' -c copy '%s'", list, to);
}

/* Where a sequence parameter set of the main profile says whether it has further facts (vui_parameters_present_flag). */
static size_t end_of_facts(const uint8_t *unit, size_t size_bytes)
{
    weir_bits bits = { .data = unit, .num = 8 * size_bytes };
    weir__bits_read(&bits, 32); /* with the byte of its type */
    weir__bits_golomb(&bits);
    weir__bits_golomb(&bits);
    if (weir__bits_golomb(&bits) == 0) /* pic_order_cnt_type */
        weir__bits_golomb(&bits);
    weir__bits_golomb(&bits);
    weir__bits_flag(&bits);
    weir__bits_golomb(&bits);
    weir__bits_golomb(&bits);
    if (!weir__bits_flag(&bits)) /* frame_mbs_only_flag */
        weir__bits_flag(&bits);
    weir__bits_flag(&bits);
    for (unsigned i = 0, is_cropped = weir__bits_flag(&bits); is_cropped && i < 4; i++)
        weir__bits_golomb(&bits);
    return bits.next;
}

/* x264 tells the delay, other encoders do not: leaves that out of the stream, with zeros instead, which may be between units. */
static void leave_out_delay(const char *from, const char *to)
{
    static const uint8_t start[] = { 0, 0, 1, 0x67 };
    static uint8_t data[1 << 22];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t num = fread(data, 1, sizeof data, file);
    fclose(file);
    for (size_t at = 0; at + sizeof start < num; at++) {
        if (memcmp(data + at, start, sizeof start) != 0)
            continue;
        size_t unit = at + 3, end = unit + 1, stop = end_of_facts(data + unit, num - unit) + 1;
        while (end + 3 < num && memcmp(data + end, start, 3) != 0)
            end++;
        for (size_t bit = stop - 1; bit < 8 * (end - unit); bit++) /* no further facts, the stop bit, nothing */
            data[unit + bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
        data[unit + stop / 8] |= (uint8_t)(0x80u >> stop % 8);
    }
    clips_write(to, data, num);
}

static bool make_clip(const recipe *r, char *path)
{
    char first[TEXT_BYTES], second[TEXT_BYTES];
    snprintf(first, sizeof first, "%sfirst.%s", folder(), r->extension);
    snprintf(second, sizeof second, "%ssecond.%s", folder(), r->extension);
    snprintf(path, TEXT_BYTES, "%sclip.%s", folder(), r->extension);
    if (!encode(r->text, 0, r->part == WHOLE ? path : first))
        return false;
    switch (r->part) {
    case CUT: return run(FFMPEG "-i '%s' -ss 0.%zu -c copy -copyinkf '%s'", first, 1 + below(9), path);
    case JOINED: return encode(r->text, 90, second) && join(first, second, path);
    case JOINED_OTHER:
        return encode("-frames:v 20 -c:v libx264 -preset fast -bf 4 -g 12 -pix_fmt yuv420p", 90, second) &&
               join(first, second, path);
    case DELAY_UNTOLD: leave_out_delay(first, path); return true;
    case TRUNCATED:
        return run("head -c $(( $(wc -c < '%s') * %zu / 10 )) '%s' > '%s'", first, 3 + below(7), first, path);
    case LEFT_OUT:
        return run(FFMPEG "-i '%s' -c copy -bsf:v noise=drop='not(mod(n+1\\,%zu))' '%s'", first, 2 + below(20), path);
    default: return true;
    }
}

static bool try_case(uint64_t number, uint64_t seed)
{
    char path[TEXT_BYTES], what[2 * TEXT_BYTES];
    const char *why = NULL;
    random_state = seed;
    random_state = weir__random_next(&random_state) ^ number;
    recipe r = draw_recipe();
    snprintf(what, sizeof what, "case %" PRIu64 ": %s, part %d, %s", number, r.extension, (int)r.part, r.text);
    if (!make_clip(&r, path))
        return false;
    may_be_damaged = r.part == TRUNCATED || r.part == LEFT_OUT;
    bool is_trusted = check_file(what, path, &why);
    may_be_damaged = false;
    if (getenv("WEIR_ORDER_CASES") || getenv("WEIR_ORDER_CASE"))
        fprintf(stderr, "%s: %s\n", what, is_trusted ? "ok" : why ? why : "times are stored");
    if (r.must_be_trusted && !is_trusted)
        fail_msg("%s: %s", what, why ? why : "times are stored");
    return is_trusted;
}

TEST_CASE(the_order_of_headers_is_that_of_decoding)
{
    uint64_t seed = number_of("WEIR_ORDER_SEED", 1), only = number_of("WEIR_ORDER_CASE", UINT64_MAX), num_trusted = 0;
    uint64_t num_cases = number_of("WEIR_ORDER_CASES", DEFAULT_CASES);
    if (getenv("WEIR_ORDER_FILES"))
        return;
    if (only != UINT64_MAX) {
        try_case(only, seed);
        return;
    }
    for (uint64_t i = 0; i < num_cases; i++)
        num_trusted += try_case(i, seed);
    fprintf(stderr, "the order of %" PRIu64 " of %" PRIu64 " clips is trusted\n", num_trusted, num_cases);
    assert_true(2 * num_trusted >= num_cases);
}

TEST_CASE(the_order_of_files_that_are_named_is_that_of_decoding)
{
    const char *files = getenv("WEIR_ORDER_FILES"), *why;
    char *copy = files ? strdup(files) : NULL, *rest = copy, *path;
    while (copy && (path = strtok_r(rest, " ", &rest))) {
        bool is_trusted = check_file(path, path, &why);
        fprintf(stderr, "%s: %s\n", path, is_trusted ? "ok" : why ? why : "times are stored");
    }
    free(copy);
}

/* ---- invented headers -------------------------------------------------------------------------------------------- */

typedef struct writer {
    uint8_t bytes[256];
    size_t num; /* bits */
} writer;

static void put_bits(writer *to, uint32_t value, unsigned num)
{
    for (unsigned i = num; i-- > 0; to->num++) {
        assert_true(to->num < 8 * sizeof to->bytes);
        to->bytes[to->num / 8] |= (uint8_t)((value >> i & 1u) << (7 - to->num % 8));
    }
}

static void put_golomb(writer *to, uint32_t value)
{
    unsigned num = 1;
    while ((value + 1) >> num)
        num++;
    put_bits(to, 0, num - 1);
    put_bits(to, value + 1, num);
}

static void put_signed(writer *to, int32_t value)
{
    put_golomb(to, value > 0 ? 2 * (uint32_t)value - 1 : 2 * (uint32_t)-value);
}

/* A packet while it is made. */
typedef struct bytes {
    uint8_t all[1024];
    size_t num;
} bytes;

/* With a start code and emulation prevention. */
static void put_unit(bytes *to, uint8_t first, writer *from)
{
    static const uint8_t start[] = { 0, 0, 1 };
    unsigned num_zeros = 0;
    put_bits(from, 1, 1);
    memcpy(to->all + to->num, start, sizeof start);
    to->num += sizeof start;
    to->all[to->num++] = first;
    for (size_t i = 0; i < (from->num + 7) / 8; i++) {
        if (num_zeros == 2 && from->bytes[i] <= 3) {
            to->all[to->num++] = 3;
            num_zeros = 0;
        }
        num_zeros = from->bytes[i] ? 0 : num_zeros + 1;
        to->all[to->num++] = from->bytes[i];
    }
}

enum {
    NUMBER_BITS = 4,
    ORDER_BITS = 8,
    SEQUENCE_UNIT = 0x67,
    PICTURE_UNIT = 0x68,
    IDR_UNIT = 0x65,
    SLICE_UNIT = 0x41
};
enum { P_SLICE = 0, B_SLICE = 1, I_SLICE = 2 };

typedef struct sequence {
    uint32_t order_type;
    int32_t delay; /* -1 = it is not told */
    bool may_have_fields;
    bool has_no_deltas, has_bottom_order, has_redundant, has_slice_groups;
    int32_t non_reference_offset, bottom_offset;
    uint32_t cycle_length;
    int32_t cycle[4];
    uint32_t width; /* in macroblocks, minus 1 */
} sequence;

static void put_order_type(writer *to, const sequence *of)
{
    put_golomb(to, of->order_type);
    if (of->order_type == 0)
        put_golomb(to, ORDER_BITS - 4);
    if (of->order_type != 1)
        return;
    put_bits(to, of->has_no_deltas, 1);
    put_signed(to, of->non_reference_offset);
    put_signed(to, of->bottom_offset);
    put_golomb(to, of->cycle_length);
    for (uint32_t i = 0; i < of->cycle_length; i++)
        put_signed(to, of->cycle[i]);
}

static void put_sequence(bytes *to, const sequence *of)
{
    writer unit = { 0 };
    put_bits(&unit, 77u << 16 | 40u, 24); /* the main profile, level 4 */
    put_golomb(&unit, 0);
    put_golomb(&unit, NUMBER_BITS - 4);
    put_order_type(&unit, of);
    put_golomb(&unit, 4); /* references */
    put_bits(&unit, 0, 1);
    put_golomb(&unit, of->width);
    put_golomb(&unit, 2);
    put_bits(&unit, !of->may_have_fields, 1);
    if (of->may_have_fields)
        put_bits(&unit, 0, 1);
    put_bits(&unit, 2, 2); /* direct_8x8_inference_flag, no cropping */
    put_bits(&unit, of->delay >= 0, 1);
    if (of->delay >= 0) {
        put_bits(&unit, 3, 10); /* only restrictions */
        for (unsigned i = 0; i < 4; i++)
            put_golomb(&unit, 0);
        put_golomb(&unit, (uint32_t)of->delay);
        put_golomb(&unit, (uint32_t)of->delay);
    }
    put_unit(to, SEQUENCE_UNIT, &unit);
}

static void put_picture_set(bytes *to, const sequence *of, int32_t quality)
{
    writer unit = { 0 };
    put_golomb(&unit, 0);
    put_golomb(&unit, 0);
    put_bits(&unit, 0, 1);
    put_bits(&unit, of->has_bottom_order, 1);
    put_golomb(&unit, of->has_slice_groups);
    put_golomb(&unit, 0);
    put_golomb(&unit, 0);
    put_bits(&unit, 0, 3);
    put_signed(&unit, quality);
    put_signed(&unit, 0);
    put_signed(&unit, 0);
    put_bits(&unit, 0, 2);
    put_bits(&unit, of->has_redundant, 1);
    put_unit(to, PICTURE_UNIT, &unit);
}

typedef struct picture {
    uint32_t type;
    bool is_idr, is_reference;
    uint32_t number, order_bits;
    int32_t bottom_delta, deltas[2];
    bool is_field, is_redundant, clears;
} picture;

static void put_order(writer *to, const sequence *of, const picture *from)
{
    if (from->is_idr)
        put_golomb(to, 0);
    if (of->order_type == 0) {
        put_bits(to, from->order_bits, ORDER_BITS);
        if (of->has_bottom_order && !from->is_field)
            put_signed(to, from->bottom_delta);
    }
    if (of->order_type != 1 || of->has_no_deltas)
        return;
    put_signed(to, from->deltas[0]);
    if (of->has_bottom_order && !from->is_field)
        put_signed(to, from->deltas[1]);
}

static void put_slice(bytes *to, const sequence *of, const picture *from)
{
    enum { CLEAR = 5, END = 0 };
    writer unit = { 0 };
    put_golomb(&unit, 0);
    put_golomb(&unit, from->type);
    put_golomb(&unit, 0);
    put_bits(&unit, from->number, NUMBER_BITS);
    if (of->may_have_fields)
        put_bits(&unit, from->is_field ? 2 : 0, from->is_field ? 2 : 1);
    put_order(&unit, of, from);
    if (of->has_redundant)
        put_golomb(&unit, from->is_redundant);
    put_bits(&unit, 0, from->type == P_SLICE ? 2 : from->type == B_SLICE ? 4 : 0); /* no lists of their own */
    if (from->is_reference && from->is_idr)
        put_bits(&unit, 0, 2);
    if (from->is_reference && !from->is_idr)
        put_bits(&unit, from->clears, 1);
    if (from->clears) {
        put_golomb(&unit, CLEAR);
        put_golomb(&unit, END);
    }
    for (unsigned i = 0; i < 8; i++)
        put_bits(&unit, 0x5a, 8);
    put_unit(to, from->is_idr ? IDR_UNIT : from->is_reference ? SLICE_UNIT : 1, &unit);
}

static AVFormatContext *format;
static AVStream *stream;

static int make_stream(void **state)
{
    format = avformat_alloc_context();
    stream = format ? avformat_new_stream(format, NULL) : NULL;
    if (!stream || clips_set_up(state) != 0)
        return -1;
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
    stream->time_base = (AVRational){ 1, 25 };
    return 0;
}

static int free_stream(void **state)
{
    avformat_free_context(format);
    return clips_tear_down(state);
}

static void add_packet(weir_index *index, const bytes *from, int64_t pts, int64_t dts)
{
    AVPacket *packet = av_packet_alloc();
    assert_non_null(packet);
    assert_int_equal(av_new_packet(packet, (int)from->num), 0);
    memcpy(packet->data, from->all, from->num);
    packet->pts = pts;
    packet->dts = dts;
    packet->duration = 1;
    packet->flags = (from->all[3] & 0x1f) == (SEQUENCE_UNIT & 0x1f) ? AV_PKT_FLAG_KEY : 0;
    assert_int_equal(weir__index_add(index, stream, packet), WEIR_OK);
    av_packet_free(&packet);
}

/* ---- what cannot be followed ------------------------------------------------------------------------------------- */

typedef enum fault {
    NO_FAULT,
    NO_KEYFRAME,
    NUMBER_SKIPPED,
    FIELD,
    MEMORY_CLEARED,
    REDUNDANT,
    OTHER_SEQUENCE,
    OTHER_SET,
    TWO_PICTURES,
    SLICE_GROUPS,
    RARE_UNIT,
    HEADER_CUT,
    COUNT_REPEATED,
    DELAY_TOO_SHORT,
    TIME_GOES_BACK,
    TIME_MISSING,
    PTS_STORED,
    NUM_FAULTS
} fault;

/* I P b P b, and once more. */
static const picture plain[] = {
    { .type = I_SLICE, .is_idr = true, .is_reference = true, .number = 0, .order_bits = 0 },
    { .type = P_SLICE, .is_idr = false, .is_reference = true, .number = 1, .order_bits = 4 },
    { .type = B_SLICE, .is_idr = false, .is_reference = false, .number = 2, .order_bits = 2 },
    { .type = P_SLICE, .is_idr = false, .is_reference = true, .number = 2, .order_bits = 8 },
    { .type = B_SLICE, .is_idr = false, .is_reference = false, .number = 3, .order_bits = 6 },
    { .type = I_SLICE, .is_idr = true, .is_reference = true, .number = 0, .order_bits = 0 },
    { .type = P_SLICE, .is_idr = false, .is_reference = true, .number = 1, .order_bits = 4 },
    { .type = B_SLICE, .is_idr = false, .is_reference = false, .number = 2, .order_bits = 2 },
};

enum { NUM_PLAIN = sizeof plain / sizeof plain[0], FAULT_AT = 3 };

/* The picture at FAULT_AT, or what is said of all. */
static void set_fault(fault what, sequence *of, picture *faulty)
{
    switch (what) {
    case NUMBER_SKIPPED: faulty->number++; break;
    case FIELD: faulty->is_field = true; break;
    case MEMORY_CLEARED: faulty->clears = true; break;
    case REDUNDANT: faulty->is_redundant = true; break;
    case SLICE_GROUPS: of->has_slice_groups = true; break;
    case COUNT_REPEATED: faulty->order_bits = 4; break;
    case DELAY_TOO_SHORT: of->delay = 0; break;
    default: break;
    }
}

static void put_packet(bytes *to, fault what, const sequence *of, const picture *from, size_t at)
{
    sequence other = *of;
    other.width++;
    writer rare = { 0 };
    if (from->is_idr || (at == FAULT_AT && what == OTHER_SEQUENCE))
        put_sequence(to, what == OTHER_SEQUENCE && at > 0 ? &other : of);
    if (from->is_idr || (at == FAULT_AT && what == OTHER_SET))
        put_picture_set(to, of, what == OTHER_SET && at > 0);
    if (at == FAULT_AT && what == RARE_UNIT)
        put_unit(to, 0x6e, &rare); /* of a further layer */
    put_slice(to, of, from);
    if (at == FAULT_AT && what == TWO_PICTURES)
        put_slice(to, of, from);
    if (at == FAULT_AT && what == HEADER_CUT)
        to->num = 5;
}

static weir_index index_with(fault what)
{
    weir_index index = { 0 };
    sequence of = { .delay = 1, .may_have_fields = true, .has_redundant = true, .width = 3 };
    for (size_t i = 0; i < NUM_PLAIN; i++) {
        bytes packet = { 0 };
        picture one = plain[i];
        if (i == FAULT_AT || what == DELAY_TOO_SHORT || what == SLICE_GROUPS)
            set_fault(what, &of, &one);
        put_packet(&packet, what, &of, &one, i);
        int64_t dts = i == FAULT_AT && what == TIME_GOES_BACK ? 1 : (int64_t)i;
        if (i == 0 && what == NO_KEYFRAME)
            continue;
        add_packet(&index, &packet, i == FAULT_AT && what == PTS_STORED ? 4 : AV_NOPTS_VALUE,
                   i == FAULT_AT && what == TIME_MISSING ? AV_NOPTS_VALUE : dts);
    }
    assert_int_equal(weir__index_end(&index, stream), WEIR_OK);
    return index;
}

TEST_CASE(headers_that_cannot_be_followed_give_no_order)
{
    static const char *const reasons[NUM_FAULTS] = {
        [NO_KEYFRAME] = "headers are damaged", /* it begins without parameter sets */
        [NUMBER_SKIPPED] = "frames are missing",
        [FIELD] = "pictures are fields",
        [MEMORY_CLEARED] = "the memory of references is cleared",
        [REDUNDANT] = "pictures are redundant",
        [OTHER_SEQUENCE] = "the parameters of the sequence change",
        [OTHER_SET] = "the parameters of pictures change",
        [TWO_PICTURES] = "a packet has several pictures",
        [SLICE_GROUPS] = "pictures have slice groups",
        [RARE_UNIT] = "packets have rare units",
        [HEADER_CUT] = "headers are damaged",
        [COUNT_REPEATED] = "the decoder would drop frames",
        [DELAY_TOO_SHORT] = "the decoder would drop frames",
        [TIME_GOES_BACK] = "times of decoding do not rise",
        [TIME_MISSING] = "times of decoding do not rise",
        [PTS_STORED] = "timestamps are missing",
    };
    for (fault what = NO_FAULT; what < NUM_FAULTS; what++) {
        weir_index index = index_with(what);
        const char *why = index.distrust, *wanted = reasons[what];
        if (!why != !wanted || (why && strcmp(why, wanted) != 0) || index.is_ordered == (why != NULL))
            fail_msg("fault %d: \"%s\", not \"%s\"", (int)what, why ? why : "", wanted ? wanted : "");
        weir__index_reset(&index);
    }
}

/* A frame has the time at which it comes out of the decoder, one packet after its own; those at the end go on. */
TEST_CASE(frames_are_in_the_order_of_their_counts)
{
    static const uint32_t wanted[] = { 0, 2, 1, 4, 3, 5, 7, 6 };
    weir_index index = index_with(NO_FAULT);
    assert_null(index.distrust);
    assert_memory_equal(index.frames, wanted, sizeof wanted);
    for (size_t i = 0; i < NUM_PLAIN; i++)
        assert_int_equal(index.packets[index.frames[i]].pts, i + 1);
    weir__index_reset(&index);
}

/* ---- picture order counts ---------------------------------------------------------------------------------------- */

enum { MAX_PICTURES = 80 };

typedef struct placed {
    int64_t place;
    uint32_t packet;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *left = a, *right = b;
    return left->place < right->place ? -1 : left->place > right->place;
}

static sequence draw_sequence(void)
{
    sequence of = { .order_type = (uint32_t)below(3), .delay = 16, .width = 3, .cycle_length = (uint32_t)below(4) };
    of.has_no_deltas = below(2);
    of.has_bottom_order = below(2);
    of.non_reference_offset = below(2) ? 6 : -6;
    of.bottom_offset = (int32_t)below(5) - 2;
    for (uint32_t i = 0; i < of.cycle_length; i++)
        of.cycle[i] = 16 + (int32_t)below(6);
    return of;
}

/* After a picture; counts go up and down a little, and the bits of numbers and counts wrap around. Only type 0 can have
   two pictures in a row that are not references. */
static picture draw_picture(const sequence *of, const picture *before, bool is_idr, uint32_t *base)
{
    picture one = { .is_idr = is_idr, .type = is_idr ? I_SLICE : below(2) ? P_SLICE : B_SLICE };
    one.is_reference = is_idr || below(3) > 0 || (of->order_type > 0 && !before->is_reference);
    one.number = is_idr ? 0 : (before->number + before->is_reference) % (1u << NUMBER_BITS);
    *base = is_idr ? 8 * (uint32_t)below(2) : *base + 16;
    one.order_bits = (*base + (is_idr || below(2) ? 0 : 24)) % (1u << ORDER_BITS);
    one.bottom_delta = (int32_t)below(5) - 2;
    one.deltas[0] = (int32_t)below(5) - 2;
    one.deltas[1] = (int32_t)below(3) - 1;
    return one;
}

/* What FFmpeg's parser says, in an order that rises from one sequence to the next. */
static int64_t place_of(AVCodecParserContext *parser, AVCodecContext *codec, const bytes *packet, uint32_t num_idrs)
{
    uint8_t *out, data[sizeof packet->all + AV_INPUT_BUFFER_PADDING_SIZE] = { 0 };
    int size;
    memcpy(data, packet->all, packet->num);
    av_parser_parse2(parser, codec, &out, &size, data, (int)packet->num, AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
    return ((int64_t)num_idrs << 32) + parser->output_picture_number;
}

/* Returns whether the order was trusted. */
static bool check_counts(AVCodecParserContext *parser, AVCodecContext *codec)
{
    sequence of = draw_sequence();
    weir_index index = { 0 };
    placed places[MAX_PICTURES];
    picture before = { 0 };
    size_t num = 1 + below(MAX_PICTURES);
    uint32_t base = 0, num_idrs = 0;
    for (size_t i = 0; i < num; i++) {
        bytes packet = { 0 };
        before = draw_picture(&of, &before, i == 0 || below(30) == 0, &base);
        put_packet(&packet, NO_FAULT, &of, &before, i);
        num_idrs += before.is_idr;
        places[i] = (placed){ place_of(parser, codec, &packet, num_idrs), (uint32_t)i };
        add_packet(&index, &packet, AV_NOPTS_VALUE, (int64_t)i);
    }
    qsort(places, num, sizeof *places, compare_placed);
    assert_int_equal(weir__index_end(&index, stream), WEIR_OK);
    bool is_trusted = !index.distrust;
    for (size_t i = 0; is_trusted && i < num; i++)
        if (index.frames[i] != places[i].packet)
            fail_msg("type %u: frame %zu is packet %u, not %u", of.order_type, i, index.frames[i], places[i].packet);
    for (size_t i = 1; is_trusted && i < num; i++)
        assert_true(places[i].place != places[i - 1].place);
    weir__index_reset(&index);
    return is_trusted;
}

TEST_CASE(counts_are_those_of_ffmpegs_parser)
{
    enum { NUM = 2000 };
    size_t num_trusted = 0;
    random_state = 1;
    for (size_t i = 0; i < NUM; i++) {
        AVCodecParserContext *parser = av_parser_init(AV_CODEC_ID_H264);
        AVCodecContext *codec = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_H264));
        assert_true(parser && codec);
        parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
        num_trusted += check_counts(parser, codec);
        av_parser_close(parser);
        avcodec_free_context(&codec);
    }
    fprintf(stderr, "the order of %zu of %d streams is trusted\n", num_trusted, NUM);
    assert_true(num_trusted > NUM / 4);
}

TEST_MAIN(NULL, NULL, make_stream, free_stream)
