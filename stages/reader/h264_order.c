#include "stages/reader/h264_order.h"

#include <stdint.h>
#include <stdlib.h>

#include <libavutil/common.h>

#include <weir/status.h>

#include "stages/reader/frame_clock.h"
#include "stages/reader/h264_headers.h"

/* A picture that was added. */
typedef struct counted_picture {
    int32_t count; /* its place in the order of its sequence */
    bool is_idr;
    bool is_b;
    bool is_key; /* decoders mark its frame as a keyframe */
} counted_picture;

struct weir_h264_order {
    weir_h264_headers headers;
    const char *why; /* it cannot be trusted; NULL = nothing speaks against it yet */

    /* of the picture before; section 8.2.1 of H.264 */
    uint32_t frame_number, reference_number; /* the latter: of the last reference */
    int64_t frame_offset;
    int64_t order_high; /* of the last reference */
    uint32_t order_low;

    counted_picture *pictures;
    size_t num;
    size_t max; /* capacity */
};

weir_h264_order *weir__h264_order_new(const AVStream *stream)
{
    weir_h264_order *order = calloc(1, sizeof *order);
    if (order)
        order->why = weir__h264_read_extradata(&order->headers, stream->codecpar);
    return order;
}

void weir__h264_order_free(weir_h264_order *order)
{
    if (!order)
        return;
    free(order->pictures);
    free(order);
}

/* ---- picture order counts --------------------------------------------------------------------------------------- */

/* The counts for pic_order_cnt_type 0. Returns the count of the top field; *bottom is that of the bottom field. */
static int64_t count_by_bits(weir_h264_order *order, const weir_h264_picture *picture, int64_t *bottom)
{
    int64_t range = INT64_C(1) << order->headers.sequence.order_bits;
    int64_t low = picture->order_bits, before = order->order_low, high = order->order_high;
    if (low < before && before - low >= range / 2)
        high += range;
    else if (low > before && low - before > range / 2)
        high -= range;
    if (picture->is_reference) {
        order->order_high = high;
        order->order_low = picture->order_bits;
    }
    *bottom = high + low + picture->bottom_delta;
    return high + low;
}

/* The counts for pic_order_cnt_type 1. `number` is the number of the frame, without the range. */
static int64_t count_by_cycle(const weir_h264_sequence *sequence, const weir_h264_picture *picture, int64_t number,
                              int64_t *bottom)
{
    int64_t length = sequence->cycle_length, count = 0, in_cycle = 0;
    number = length ? number : 0;
    if (!picture->is_reference && number > 0)
        number--;
    for (int64_t i = 0; i < length; i++)
        in_cycle += sequence->cycle[i];
    if (number > 0) {
        count = (number - 1) / length * in_cycle;
        for (int64_t i = 0; i <= (number - 1) % length; i++)
            count += sequence->cycle[i];
    }
    if (!picture->is_reference)
        count += sequence->non_reference_offset;
    count += picture->deltas[0];
    *bottom = count + sequence->bottom_offset + picture->deltas[1];
    return count;
}

static int64_t count_of(weir_h264_order *order, const weir_h264_picture *picture)
{
    const weir_h264_sequence *sequence = &order->headers.sequence;
    int64_t number = order->frame_offset + picture->frame_number, bottom, top;
    switch (sequence->order_type) {
    case 0: top = count_by_bits(order, picture, &bottom); break;
    case 1: top = count_by_cycle(sequence, picture, number, &bottom); break;
    default: return 2 * number - !picture->is_reference;
    }
    return FFMIN(top, bottom);
}

/* Is a reference missing between the last one and this picture? */
static bool skips_frames(const weir_h264_order *order, const weir_h264_picture *picture)
{
    uint32_t range = UINT32_C(1) << order->headers.sequence.frame_number_bits;
    return picture->frame_number != (picture->is_idr ? 0 : (order->reference_number + 1) % range);
}

static const char *count_picture(weir_h264_order *order, const weir_h264_picture *picture, counted_picture *counted)
{
    if (order->num == 0 && !picture->is_idr)
        return "it does not begin with a keyframe";
    if (picture->is_idr) {
        order->frame_number = 0;
        order->frame_offset = 0;
        order->order_high = 0;
        order->order_low = picture->order_bits; /* decoders begin there, whatever it is */
    }
    if (skips_frames(order, picture))
        return "frames are missing";
    if (picture->frame_number < order->frame_number)
        order->frame_offset += INT64_C(1) << order->headers.sequence.frame_number_bits;
    int64_t count = count_of(order, picture);
    order->frame_number = picture->frame_number;
    if (picture->is_reference)
        order->reference_number = picture->frame_number;
    *counted = (counted_picture){
        .count = (int32_t)count,
        .is_idr = picture->is_idr,
        .is_b = picture->is_b,
        .is_key = picture->is_idr || picture->recovers,
    };
    bool is_reasonable = count > INT32_MIN / 4 && count < INT32_MAX / 4; /* decoders count with 32 bits */
    return is_reasonable ? NULL : "picture order counts are out of range";
}

int weir__h264_order_add(weir_h264_order *order, const AVStream *stream, const AVPacket *packet)
{
    weir_h264_picture picture;
    counted_picture counted = { 0 };
    if (!order->why)
        order->why = weir__h264_read_packet(&order->headers, stream->codecpar, packet, &picture);
    if (!order->why)
        order->why = count_picture(order, &picture, &counted);
    if (order->why)
        return WEIR_OK;
    if (order->num == order->max) {
        size_t max = order->max ? order->max * 2 : 512;
        counted_picture *pictures = realloc(order->pictures, max * sizeof *pictures);
        if (!pictures)
            return WEIR_ENOMEM;
        order->pictures = pictures;
        order->max = max;
    }
    order->pictures[order->num++] = counted;
    return WEIR_OK;
}

/* ---- the decoder's buffer --------------------------------------------------------------------------------------- */

enum { MAX_WAITING = 16 };

/* The pictures that FFmpeg's decoder holds back (h264_select_output_frame()). */
typedef struct buffer {
    const counted_picture *pictures;
    int64_t delay;                /* the number of pictures that wait: has_b_frames */
    bool is_delay_reported;       /* by the stream; otherwise it grows where pictures turn out to be later */
    int64_t highest[MAX_WAITING]; /* counts of the sequence so far, the lowest first */
    int64_t next;                 /* a picture with a lower count comes too late */
    size_t waiting[MAX_WAITING + 1];
    size_t num_waiting;
} buffer;

static void forget_highest(buffer *of)
{
    for (size_t i = 0; i < MAX_WAITING; i++)
        of->highest[i] = INT64_MIN;
}

/* Notes the count of a picture. Returns how many of the highest ones so far are above it. */
static int64_t note_count(buffer *of, int64_t count)
{
    size_t at = 0;
    while (at < MAX_WAITING && count >= of->highest[at]) {
        if (at > 0)
            of->highest[at - 1] = of->highest[at];
        at++;
    }
    if (at > 0)
        of->highest[at - 1] = count;
    return (int64_t)(MAX_WAITING - at);
}

/* Makes the delay longer, if the picture shows that it is too short and the stream does not tell it. False: it is far too late. */
static bool fit_delay(buffer *of, const counted_picture *picture)
{
    enum { LAST = MAX_WAITING - 1, USUAL_STEP = 2 };
    if (picture->is_idr)
        forget_highest(of);
    int64_t num_later = note_count(of, picture->count);
    bool leaps = of->highest[LAST - 1] > INT64_MIN && of->highest[LAST] - of->highest[LAST - 1] > USUAL_STEP;
    if (picture->is_b || leaps)
        num_later = FFMAX(num_later, 1);
    if (!of->is_delay_reported)
        of->delay = FFMAX(of->delay, num_later);
    return num_later < MAX_WAITING;
}

/* The place of the waiting picture that is shown next: those after a keyframe wait for it. */
static size_t find_next(const buffer *of)
{
    size_t next = 0;
    for (size_t i = 1; i < of->num_waiting && !of->pictures[of->waiting[i]].is_idr; i++)
        if (of->pictures[of->waiting[i]].count < of->pictures[of->waiting[next]].count)
            next = i;
    return next;
}

static size_t take_out(buffer *of, size_t place)
{
    size_t picture = of->waiting[place];
    of->num_waiting--;
    for (size_t i = place; i < of->num_waiting; i++)
        of->waiting[i] = of->waiting[i + 1];
    return picture;
}

/* A picture was decoded. *shown: the one that comes out, if *has_shown. False: the decoder drops one. */
static bool put_in(buffer *of, size_t picture, size_t *shown, bool *has_shown)
{
    *has_shown = false;
    if (!fit_delay(of, &of->pictures[picture]))
        return false;
    of->waiting[of->num_waiting++] = picture;
    size_t place = find_next(of);
    if (of->delay == 0 && of->pictures[of->waiting[0]].is_idr)
        of->next = INT64_MIN;
    if (of->pictures[of->waiting[place]].count < of->next)
        return false;
    if ((int64_t)of->num_waiting <= of->delay)
        return true;
    *shown = take_out(of, place);
    *has_shown = true;
    bool begins_sequence = place == 0 && of->num_waiting > 0 && of->pictures[of->waiting[0]].is_idr;
    of->next = begins_sequence ? INT64_MIN : of->pictures[*shown].count;
    return true;
}

/* ---- order and times -------------------------------------------------------------------------------------------- */

/* The frames as they come out. */
typedef struct output {
    const counted_picture *pictures;
    weir_packet_entry *packets;
    const uint32_t *sequences; /* of each picture */
    size_t num;
    size_t last; /* the one before */
    weir_frame_clock clock;
} output;

/* A frame comes out, at that time of decoding. False: its order is not that of the counts. */
static bool put_out(output *to, size_t picture, int64_t dts)
{
    const counted_picture *all = to->pictures;
    if (to->num > 0 &&
        (to->sequences[picture] < to->sequences[to->last] ||
         (to->sequences[picture] == to->sequences[to->last] && all[picture].count <= all[to->last].count)))
        return false;
    weir__frame_clock_advance(&to->clock, dts, to->packets[picture].duration);
    to->packets[picture].pts = to->clock.pts == AV_NOPTS_VALUE ? to->clock.ticks : to->clock.pts;
    to->last = picture;
    to->num++;
    return true;
}

/* False: the decoder drops frames, or does not return them in the order of the counts. */
static bool follow_decoder(buffer *of, output *to, size_t num)
{
    size_t shown;
    bool has_shown;
    for (size_t i = 0; i < num; i++) {
        if (!put_in(of, i, &shown, &has_shown) || (has_shown && !put_out(to, shown, to->packets[i].dts)))
            return false;
    }
    while (of->num_waiting > 0)
        if (!put_out(to, take_out(of, find_next(of)), AV_NOPTS_VALUE))
            return false;
    return to->num == num;
}

/* Can packets be found by their times of decoding, or has none such a time? */
static bool are_dts_clear(const weir_packet_entry *packets, size_t num)
{
    bool has_dts = num > 0 && packets[0].dts != AV_NOPTS_VALUE;
    for (size_t i = 1; i < num; i++)
        if (has_dts ? packets[i].dts <= packets[i - 1].dts : packets[i].dts != AV_NOPTS_VALUE)
            return false;
    return true;
}

static const char *set_order(const weir_h264_order *order, const AVStream *stream, weir_packet_entry *packets,
                             uint32_t *sequences, bool *has_times)
{
    const weir_h264_sequence *sequence = &order->headers.sequence;
    buffer waiting = {
        .pictures = order->pictures,
        .delay = FFMAX(stream->codecpar->video_delay, (int64_t)sequence->delay),
        .is_delay_reported = sequence->has_delay,
        .next = INT64_MIN,
    };
    output to = { .pictures = order->pictures, .packets = packets, .sequences = sequences };
    if (waiting.delay > MAX_WAITING)
        return "the decoder's delay is out of range";
    if (!are_dts_clear(packets, order->num))
        return "times of decoding do not rise";
    forget_highest(&waiting);
    weir__frame_clock_begin(&to.clock, stream);
    for (size_t i = 0; i < order->num; i++)
        sequences[i] = (i > 0 ? sequences[i - 1] : 0) + order->pictures[i].is_idr;
    if (!follow_decoder(&waiting, &to, order->num))
        return "the decoder would drop frames";
    for (size_t i = 0; i < order->num; i++) {
        packets[i].flags &= (uint8_t)~WEIR_PACKET_KEY;
        packets[i].flags |= order->pictures[i].is_key ? WEIR_PACKET_KEY : 0;
    }
    *has_times = to.clock.first_pts != AV_NOPTS_VALUE;
    return NULL;
}

int weir__h264_order_end(weir_h264_order *order, const AVStream *stream, weir_packet_entry *packets,
                         size_t num_packets, bool *has_times, const char **why)
{
    *why = order->why ? order->why : order->num != num_packets ? "there are no frames" : NULL;
    for (size_t i = 0; i < num_packets && !*why; i++)
        if (!(packets[i].flags & WEIR_PACKET_SHOWN))
            *why = "packets are hidden";
    if (*why || num_packets == 0)
        return WEIR_OK;
    uint32_t *sequences = calloc(num_packets, sizeof *sequences);
    if (!sequences)
        return WEIR_ENOMEM;
    *why = set_order(order, stream, packets, sequences, has_times);
    free(sequences);
    return WEIR_OK;
}
