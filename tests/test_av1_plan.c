/*
 * Frames of AV1 that a run does not need: which these are, and that a decoder which never gets them outputs the same. The reader's
 * tests compare selections of whole files (test_reader.c). Held constant: small pictures of a few encoders, one group of pictures.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/clock.h>
#include <weir/status.h>

#include "common/random.h"
#include "stages/reader/av1_plan.h"
#include "tests/clips.h"

enum { MAX_PACKETS = 64 };

/* The first group of a file. */
typedef struct group {
    AVFormatContext *format;
    const AVCodecParameters *codec;
    AVPacket *packets[MAX_PACKETS];
    size_t num;
    bool is_wanted[MAX_PACKETS];
} group;

#define SOURCE(seconds) "-f lavfi -i testsrc2=s=176x144:r=24:d=" #seconds ",noise=alls=8:allf=t "
#define PIXELS          " -pix_fmt yuv420p"

static const struct {
    const char *name;
    const char *arguments;
} clips[] = {
    { "svt.mp4", SOURCE(2) "-c:v libsvtav1 -preset 10 -g 48" PIXELS },
    { "svt_slow.mkv", SOURCE(2) "-c:v libsvtav1 -preset 5 -g 48 -svtav1-params film-grain=20:tile-columns=1" PIXELS },
    { "svt_three_levels.ivf",
      SOURCE(2) "-c:v libsvtav1 -preset 8 -g 48 -svtav1-params hierarchical-levels=3" PIXELS },
    { "svt_low_delay.mp4", SOURCE(2) "-c:v libsvtav1 -preset 10 -g 48 -svtav1-params pred-struct=1" PIXELS },
    { "svt_intra_only.mp4", SOURCE(2) "-c:v libsvtav1 -preset 10 -g 16 -svtav1-params irefresh-type=1" PIXELS },
    { "aom.mkv", SOURCE(1) "-c:v libaom-av1 -cpu-used 8 -lag-in-frames 16 -g 24 -denoise-noise-level 20" PIXELS },
    { "aom_slow.mp4", SOURCE(1) "-c:v libaom-av1 -cpu-used 5 -lag-in-frames 25 -g 24" PIXELS },
    { "aom_no_order.mkv", SOURCE(1) "-c:v libaom-av1 -cpu-used 8 -g 24 -aom-params enable-order-hint=0" PIXELS },
    { "aom_realtime.mkv", SOURCE(1) "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 24" PIXELS },
    { "rav1e.mkv", SOURCE(1) "-c:v librav1e -speed 10 -g 24" PIXELS },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0] };

static void open_group(group *of, size_t clip)
{
    const char *path = clips_make(clips[clip].name, clips[clip].arguments);
    *of = (group){ 0 };
    assert_int_equal(avformat_open_input(&of->format, path, NULL, NULL), 0);
    of->codec = of->format->streams[0]->codecpar;
    AVPacket *packet = av_packet_alloc();
    while (of->num < MAX_PACKETS && av_read_frame(of->format, packet) == 0) {
        if (of->num > 0 && (packet->flags & AV_PKT_FLAG_KEY))
            break;
        of->packets[of->num++] = av_packet_clone(packet);
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    assert_true(of->num >= 20);
}

static void close_group(group *of)
{
    for (size_t i = 0; i < of->num; i++)
        av_packet_free(&of->packets[i]);
    avformat_close_input(&of->format);
}

static const AVPacket *packet_at(void *self, size_t at)
{
    return ((group *)self)->packets[at];
}

static bool is_wanted(void *self, size_t at)
{
    return ((group *)self)->is_wanted[at];
}

static void want_only(group *of, size_t at)
{
    memset(of->is_wanted, 0, sizeof of->is_wanted);
    of->is_wanted[at] = true;
}

static void make_plan(weir_av1_plan *plan, group *of, size_t last)
{
    const weir_av1_run run = { 0, last, packet_at, is_wanted, of };
    assert_int_equal(weir__av1_plan_make(plan, of->codec, &run), WEIR_OK);
}

/* ---- what a decoder makes of it ----------------------------------------------------------------------------------- */

typedef struct digest {
    int64_t pts[MAX_PACKETS];
    uint64_t sums[MAX_PACKETS];
    size_t num;
} digest;

static void take_frames(AVCodecContext *decoder, AVFrame *frame, digest *of)
{
    while (avcodec_receive_frame(decoder, frame) == 0) {
        uint64_t sum = 0;
        for (int plane = 0; plane < 3; plane++)
            for (int y = 0; y < (plane ? frame->height / 2 : frame->height); y++)
                for (int x = 0; x < (plane ? frame->width / 2 : frame->width); x++)
                    sum = sum * 31 + frame->data[plane][y * frame->linesize[plane] + x];
        assert_true(of->num < MAX_PACKETS);
        of->pts[of->num] = frame->pts;
        of->sums[of->num++] = sum;
        av_frame_unref(frame);
    }
}

/* plan = NULL: of all packets. */
static digest decode(const group *of, weir_av1_plan *plan)
{
    digest made = { 0 };
    AVCodecContext *decoder = avcodec_alloc_context3(avcodec_find_decoder_by_name("libdav1d"));
    AVFrame *frame = av_frame_alloc();
    assert_non_null(decoder);
    decoder->thread_count = 1;
    assert_true(avcodec_parameters_to_context(decoder, of->codec) >= 0);
    assert_int_equal(avcodec_open2(decoder, NULL, NULL), 0);
    size_t num = plan ? plan->num : of->num;
    for (size_t i = 0; i < num; i++) {
        if (plan && weir__av1_plan_skips(plan, i))
            continue;
        const AVPacket *packet = plan ? weir__av1_plan_cut(plan, i, of->packets[i]) : of->packets[i];
        assert_non_null(packet);
        assert_int_equal(avcodec_send_packet(decoder, packet), 0);
        take_frames(decoder, frame, &made);
    }
    avcodec_send_packet(decoder, NULL);
    take_frames(decoder, frame, &made);
    av_frame_free(&frame);
    avcodec_free_context(&decoder);
    return made;
}

static uint64_t sum_at(const digest *of, int64_t pts)
{
    for (size_t i = 0; i < of->num; i++)
        if (of->pts[i] == pts)
            return of->sums[i];
    fail_msg("no frame at %lld", (long long)pts);
    return 0;
}

/* Frames that a decoder has to decode: of the packets, and of those with a plan. */
static void assert_numbers(const group *of, weir_av1_plan *plan)
{
    weir_av1_sequence all = { 0 }, needed = { 0 };
    uint64_t num_all = 0, num_needed = 0;
    weir_av1_look look;
    for (size_t i = 0; i < plan->num; i++) {
        const AVPacket *packet = of->packets[i];
        assert_true(weir__av1_look(&all, packet->data, (size_t)packet->size, &look));
        for (unsigned j = 0; j < look.num_frames; j++)
            num_all += !look.frames[j].shows_slot;
        if (weir__av1_plan_skips(plan, i))
            continue;
        packet = weir__av1_plan_cut(plan, i, packet);
        assert_true(weir__av1_look(&needed, packet->data, (size_t)packet->size, &look));
        for (unsigned j = 0; j < look.num_frames; j++)
            num_needed += !look.frames[j].shows_slot;
    }
    assert_int_equal(plan->num_all, num_all);
    assert_int_equal(plan->num_needed, num_needed);
}

/* What is wanted comes out as it does when the whole group is decoded. */
static void assert_right(const group *of, weir_av1_plan *plan, const digest *whole, const char *name)
{
    assert_true(plan->is_on);
    assert_numbers(of, plan);
    digest some = decode(of, plan);
    for (size_t i = 0; i < plan->num; i++) {
        if (!of->is_wanted[i])
            continue;
        assert_false(weir__av1_plan_skips(plan, i));
        if (sum_at(&some, of->packets[i]->pts) != sum_at(whole, of->packets[i]->pts))
            fail_msg("%s: frame of packet %zu is another", name, i);
    }
}

TEST_CASE(each_frame_alone_is_that_of_the_whole_group)
{
    for (size_t clip = 0; clip < NUM_CLIPS; clip++) {
        group of;
        weir_av1_plan plan = { 0 };
        open_group(&of, clip);
        digest whole = decode(&of, NULL);
        uint64_t num_needed = 0, num_all = 0;
        assert_int_equal(whole.num, of.num);
        for (size_t wanted = 0; wanted < of.num; wanted++) {
            want_only(&of, wanted);
            make_plan(&plan, &of, wanted);
            assert_right(&of, &plan, &whole, clips[clip].name);
            num_needed += plan.num_needed;
            num_all += plan.num_all;
        }
        print_message("%s: %.2f times as many frames without a plan\n", clips[clip].name,
                      (double)num_all / (double)num_needed);
        if (clip == 0)
            assert_true(num_all > 2 * num_needed);
        weir__av1_plan_free(&plan);
        close_group(&of);
    }
}

TEST_CASE(random_frames_are_those_of_the_whole_group)
{
    enum { NUM_DRAWS = 40 };
    uint64_t draw = (uint64_t)weir_clock_ns();
    printf("seed %" PRIu64 "\n", draw);
    for (size_t clip = 0; clip < NUM_CLIPS; clip++) {
        group of;
        weir_av1_plan plan = { 0 };
        open_group(&of, clip);
        digest whole = decode(&of, NULL);
        for (unsigned i = 0; i < NUM_DRAWS; i++) {
            size_t last = (size_t)weir__random_below(&draw, of.num);
            want_only(&of, last);
            for (uint64_t others = weir__random_below(&draw, 8); others > 0; others--)
                of.is_wanted[weir__random_below(&draw, last + 1)] = true;
            make_plan(&plan, &of, last);
            assert_right(&of, &plan, &whole, clips[clip].name);
        }
        weir__av1_plan_free(&plan);
        close_group(&of);
    }
}

/* ---- no plan ------------------------------------------------------------------------------------------------------ */

TEST_CASE(there_is_no_plan_for_what_is_not_understood)
{
    group of;
    weir_av1_plan plan = { 0 };
    open_group(&of, 0);
    size_t last = of.num - 1;
    want_only(&of, last);
    make_plan(&plan, &of, last);
    assert_true(plan.is_on);

    AVPacket *kept = of.packets[last / 2];
    of.packets[last / 2] = NULL; /* not in memory */
    make_plan(&plan, &of, last);
    assert_false(plan.is_on);
    assert_false(weir__av1_plan_skips(&plan, last));

    AVPacket *cut = av_packet_clone(kept);
    av_shrink_packet(cut, cut->size - 1); /* the last unit is longer than the packet */
    of.packets[last / 2] = cut;
    make_plan(&plan, &of, last);
    assert_false(plan.is_on);
    av_packet_free(&cut);
    of.packets[last / 2] = kept;

    AVPacket *first = of.packets[0];
    of.packets[0] = of.packets[1]; /* no keyframe */
    make_plan(&plan, &of, last);
    assert_false(plan.is_on);
    of.packets[0] = first;
    make_plan(&plan, &of, last);
    assert_true(plan.is_on);
    weir__av1_plan_end(&plan);
    assert_false(plan.is_on);
    weir__av1_plan_free(&plan);
    close_group(&of);
}

/* In memory of just that size, so that the sanitizers see what is read beyond it. */
TEST_CASE(headers_that_are_cut_or_changed_are_refused_or_stay_within_their_packet)
{
    group of;
    open_group(&of, 0);
    for (size_t i = 0; i < of.num; i++) {
        const AVPacket *packet = of.packets[i];
        size_t num_bytes = packet->size < 64 ? (size_t)packet->size : 64;
        for (size_t at = 0; at < 2 * num_bytes; at++) {
            bool is_cut = at < num_bytes;
            size_t size_bytes = is_cut ? at : (size_t)packet->size;
            uint8_t *copy = malloc(size_bytes + 1);
            weir_av1_sequence sequence = { 0 };
            weir_av1_look look;
            (void)weir__av1_look(&sequence, of.packets[0]->data, (size_t)of.packets[0]->size, &look);
            memcpy(copy, packet->data, size_bytes);
            copy = realloc(copy, size_bytes ? size_bytes : 1);
            if (!is_cut)
                copy[at - num_bytes] ^= (uint8_t)(1u << at % 8);
            if (weir__av1_look(&sequence, copy, size_bytes, &look))
                assert_int_equal(look.units[look.num_units - 1].end, size_bytes);
            free(copy);
        }
    }
    close_group(&of);
}

int main(void)
{
    av_log_set_level(AV_LOG_ERROR);
    return test_cases_run(NULL, NULL, clips_set_up, clips_tear_down);
}
