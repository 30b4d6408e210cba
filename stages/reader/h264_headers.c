#include "stages/reader/h264_headers.h"

#include <string.h>

#include "common/hash.h"
#include "stages/reader/bits.h"
#include "stages/reader/nal_units.h"

enum { SLICE = 1, IDR_SLICE = 5, SEI = 6, SEQUENCE_SET = 7, PICTURE_SET = 8, DELIMITER = 9, FILLER = 12 };
enum { P_SLICE = 0, B_SLICE = 1, I_SLICE = 2 };

/* Parameter sets with all matrices are shorter, and headers of slices with the weights of some references are. */
enum { MAX_SET_BYTES = 2048, MAX_SLICE_BYTES = 512 };

static const char damaged[] = "headers are damaged";

/* A unit of the bitstream. */
typedef struct unit {
    const uint8_t *bytes;
    size_t size_bytes;
} unit;

static unsigned type_of(unit from)
{
    return from.size_bytes ? from.bytes[0] & 0x1fu : 0;
}

/* ---- sequence parameter sets ------------------------------------------------------------------------------------ */

static bool has_chroma_format(uint32_t profile)
{
    static const uint8_t profiles[] = { 100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135 };
    return memchr(profiles, (int)profile, sizeof profiles);
}

static void skip_scaling_list(weir_bits *from, unsigned num)
{
    uint32_t last = 8, next = 8;
    for (unsigned i = 0; i < num && next != 0; i++) {
        next = (last + (uint32_t)weir__bits_signed_golomb(from)) & 0xffu;
        last = next ? next : last;
    }
}

static void skip_scaling_lists(weir_bits *from, unsigned num_lists)
{
    enum { SMALL_LISTS = 6, SMALL = 16, LARGE = 64 };
    for (unsigned i = 0; i < num_lists; i++)
        if (weir__bits_flag(from))
            skip_scaling_list(from, i < SMALL_LISTS ? SMALL : LARGE);
}

static void read_chroma_format(weir_bits *from, weir_h264_sequence *sequence)
{
    enum { FORMAT_444 = 3 };
    uint32_t format = weir__bits_golomb(from);
    from->is_over |= format > FORMAT_444;
    sequence->chroma_format = (uint8_t)format;
    sequence->has_separate_planes = format == FORMAT_444 && weir__bits_flag(from);
    weir__bits_golomb(from); /* bit_depth_luma_minus8 */
    weir__bits_golomb(from); /* bit_depth_chroma_minus8 */
    weir__bits_flag(from);   /* qpprime_y_zero_transform_bypass_flag */
    if (weir__bits_flag(from))
        skip_scaling_lists(from, format == FORMAT_444 ? 12 : 8);
}

static void read_cycle(weir_bits *from, weir_h264_sequence *sequence)
{
    sequence->has_no_deltas = weir__bits_flag(from);
    sequence->non_reference_offset = weir__bits_signed_golomb(from);
    sequence->bottom_offset = weir__bits_signed_golomb(from);
    sequence->cycle_length = weir__bits_golomb(from);
    if (sequence->cycle_length > WEIR_H264_MAX_CYCLE) {
        from->is_over = true;
        return;
    }
    for (uint32_t i = 0; i < sequence->cycle_length; i++)
        sequence->cycle[i] = weir__bits_signed_golomb(from);
}

static void read_order_type(weir_bits *from, weir_h264_sequence *sequence)
{
    enum { MIN_BITS = 4, MAX_BITS = 16, LAST_TYPE = 2 };
    uint32_t frame_number_bits = weir__bits_golomb(from), type = weir__bits_golomb(from);
    uint32_t order_bits = type == 0 ? weir__bits_golomb(from) : 0;
    from->is_over |= frame_number_bits > MAX_BITS - MIN_BITS || order_bits > MAX_BITS - MIN_BITS || type > LAST_TYPE;
    if (from->is_over)
        return;
    sequence->frame_number_bits = (uint8_t)(frame_number_bits + MIN_BITS);
    sequence->order_bits = (uint8_t)(order_bits + MIN_BITS);
    sequence->order_type = (uint8_t)type;
    if (type == 1)
        read_cycle(from, sequence);
}

/* hrd_parameters() */
static void skip_buffer_model(weir_bits *from)
{
    enum { MAX_MODELS = 32 };
    uint32_t num = weir__bits_golomb(from);
    from->is_over |= num >= MAX_MODELS;
    weir__bits_read(from, 8);
    for (uint32_t i = 0; !from->is_over && i <= num; i++) {
        weir__bits_golomb(from);
        weir__bits_golomb(from);
        weir__bits_flag(from);
    }
    weir__bits_read(from, 20);
}

/* vui_parameters() up to the bitstream restrictions */
static void skip_to_restrictions(weir_bits *from)
{
    enum { EXTENDED_ASPECT = 255 };
    if (weir__bits_flag(from) && weir__bits_read(from, 8) == EXTENDED_ASPECT)
        weir__bits_read(from, 32);
    if (weir__bits_flag(from))
        weir__bits_flag(from); /* overscan_appropriate_flag */
    if (weir__bits_flag(from)) {
        weir__bits_read(from, 4); /* video_format, video_full_range_flag */
        if (weir__bits_flag(from))
            weir__bits_read(from, 24);
    }
    if (weir__bits_flag(from)) {
        weir__bits_golomb(from); /* chroma_sample_loc_type_top_field */
        weir__bits_golomb(from);
    }
    if (weir__bits_flag(from)) {
        weir__bits_read(from, 32); /* num_units_in_tick */
        weir__bits_read(from, 32); /* time_scale */
        weir__bits_flag(from);
    }
    bool has_model = weir__bits_flag(from);
    if (has_model)
        skip_buffer_model(from);
    bool has_second_model = weir__bits_flag(from);
    if (has_second_model)
        skip_buffer_model(from);
    if (has_model || has_second_model)
        weir__bits_flag(from); /* low_delay_hrd_flag */
    weir__bits_flag(from);     /* pic_struct_present_flag */
}

static void read_restrictions(weir_bits *from, weir_h264_sequence *sequence)
{
    enum { MAX_DELAY = 16 };
    skip_to_restrictions(from);
    sequence->has_delay = weir__bits_flag(from);
    if (!sequence->has_delay)
        return;
    weir__bits_flag(from); /* motion_vectors_over_pic_boundaries_flag */
    for (unsigned i = 0; i < 4; i++)
        weir__bits_golomb(from); /* max_bytes_per_pic_denom to log2_max_mv_length_vertical */
    sequence->delay = weir__bits_golomb(from);
    weir__bits_golomb(from); /* max_dec_frame_buffering */
    from->is_over |= sequence->delay > MAX_DELAY;
}

static void read_sequence(weir_bits *from, weir_h264_sequence *sequence)
{
    uint32_t profile = weir__bits_read(from, 8);
    weir__bits_read(from, 16); /* constraint flags, level_idc */
    sequence->id = weir__bits_golomb(from);
    sequence->chroma_format = 1;
    if (has_chroma_format(profile))
        read_chroma_format(from, sequence);
    read_order_type(from, sequence);
    weir__bits_golomb(from); /* max_num_ref_frames */
    weir__bits_flag(from);   /* gaps_in_frame_num_value_allowed_flag */
    weir__bits_golomb(from); /* pic_width_in_mbs_minus1 */
    weir__bits_golomb(from); /* pic_height_in_map_units_minus1 */
    sequence->has_frames_only = weir__bits_flag(from);
    if (!sequence->has_frames_only)
        weir__bits_flag(from); /* mb_adaptive_frame_field_flag */
    weir__bits_flag(from);     /* direct_8x8_inference_flag */
    for (unsigned i = 0, is_cropped = weir__bits_flag(from); is_cropped && i < 4; i++)
        weir__bits_golomb(from);
    if (weir__bits_flag(from))
        read_restrictions(from, sequence);
}

static const char *take_sequence(weir_h264_headers *headers, unit from)
{
    uint8_t bytes[MAX_SET_BYTES];
    weir_bits bits = { .data = bytes,
                       .num = 8 * weir__unit_unescape(from.bytes, from.size_bytes, bytes, sizeof bytes) };
    weir_h264_sequence sequence = { .is_known = true,
                                    .hash = weir__hash(WEIR__HASH_START, from.bytes, from.size_bytes) };
    if (headers->sequence.is_known)
        return headers->sequence.hash == sequence.hash ? NULL : "the parameters of the sequence change";
    read_sequence(&bits, &sequence);
    if (bits.is_over)
        return damaged;
    headers->sequence = sequence;
    return NULL;
}

/* ---- picture parameter sets ------------------------------------------------------------------------------------- */

static const char *read_picture_set(weir_bits *from, uint32_t sequence_id, weir_h264_picture_set *set)
{
    enum { MAX_REFERENCES = 32 };
    if (weir__bits_golomb(from) != sequence_id)
        return "the parameters of the sequence change";
    weir__bits_flag(from); /* entropy_coding_mode_flag */
    set->has_bottom_order = weir__bits_flag(from);
    if (weir__bits_golomb(from) != 0)
        return "pictures have slice groups";
    for (unsigned list = 0; list < 2; list++) {
        uint32_t num = weir__bits_golomb(from);
        if (num >= MAX_REFERENCES)
            return damaged;
        set->num_references[list] = (uint8_t)(num + 1);
    }
    set->is_weighted = weir__bits_flag(from);
    set->bi_weights = (uint8_t)weir__bits_read(from, 2);
    weir__bits_signed_golomb(from); /* pic_init_qp_minus26 */
    weir__bits_signed_golomb(from); /* pic_init_qs_minus26 */
    weir__bits_signed_golomb(from); /* chroma_qp_index_offset */
    weir__bits_read(from, 2);       /* deblocking_filter_control_present_flag, constrained_intra_pred_flag */
    set->has_redundant = weir__bits_flag(from);
    return from->is_over ? damaged : NULL;
}

static const char *take_picture_set(weir_h264_headers *headers, unit from)
{
    uint8_t bytes[MAX_SET_BYTES];
    weir_bits bits = { .data = bytes,
                       .num = 8 * weir__unit_unescape(from.bytes, from.size_bytes, bytes, sizeof bytes) };
    weir_h264_picture_set set = { .is_known = true,
                                  .hash = weir__hash(WEIR__HASH_START, from.bytes, from.size_bytes) };
    uint32_t id = weir__bits_golomb(&bits);
    if (!headers->sequence.is_known || id >= WEIR_H264_MAX_PICTURE_SETS)
        return damaged;
    if (headers->sets[id].is_known)
        return headers->sets[id].hash == set.hash ? NULL : "the parameters of pictures change";
    const char *why = read_picture_set(&bits, headers->sequence.id, &set);
    headers->sets[id] = set;
    return why;
}

/* ---- slices ----------------------------------------------------------------------------------------------------- */

/* A slice while its header is read. */
typedef struct slice {
    const weir_h264_sequence *sequence;
    const weir_h264_picture_set *set;
    unsigned type;
    uint32_t first_macroblock;
    uint32_t num_references[2];
    weir_h264_picture picture;
} slice;

static void read_order(weir_bits *from, slice *of)
{
    weir_h264_picture *picture = &of->picture;
    if (picture->is_idr)
        weir__bits_golomb(from); /* idr_pic_id */
    if (of->sequence->order_type == 0) {
        picture->order_bits = weir__bits_read(from, of->sequence->order_bits);
        picture->bottom_delta = of->set->has_bottom_order ? weir__bits_signed_golomb(from) : 0;
    }
    if (of->sequence->order_type == 1 && !of->sequence->has_no_deltas) {
        picture->deltas[0] = weir__bits_signed_golomb(from);
        picture->deltas[1] = of->set->has_bottom_order ? weir__bits_signed_golomb(from) : 0;
    }
}

static unsigned num_lists(const slice *of)
{
    return of->type == B_SLICE ? 2 : of->type == P_SLICE ? 1 : 0;
}

static void read_num_references(weir_bits *from, slice *of)
{
    enum { MAX_REFERENCES = 32 };
    unsigned num = num_lists(of);
    if (of->type == B_SLICE)
        weir__bits_flag(from); /* direct_spatial_mv_pred_flag */
    bool has_own = num > 0 && weir__bits_flag(from);
    for (unsigned list = 0; list < 2; list++) {
        bool is_own = has_own && list < num;
        uint32_t num_references = is_own ? weir__bits_golomb(from) + 1 : of->set->num_references[list];
        from->is_over |= num_references > MAX_REFERENCES || num_references == 0;
        of->num_references[list] = num_references;
    }
}

/* ref_pic_list_modification() */
static void skip_modifications(weir_bits *from, const slice *of)
{
    enum { END = 3 };
    for (unsigned list = 0; list < num_lists(of); list++) {
        if (!weir__bits_flag(from))
            continue;
        for (uint32_t what = weir__bits_golomb(from); what != END && !from->is_over; what = weir__bits_golomb(from)) {
            from->is_over |= what > END;
            weir__bits_golomb(from);
        }
    }
}

static void skip_weight(weir_bits *from, unsigned num_planes)
{
    if (!weir__bits_flag(from))
        return;
    for (unsigned i = 0; i < 2 * num_planes; i++)
        weir__bits_signed_golomb(from);
}

/* pred_weight_table() */
static void skip_weights(weir_bits *from, const slice *of)
{
    bool has_chroma = of->sequence->chroma_format != 0 && !of->sequence->has_separate_planes;
    if (!(of->type == P_SLICE && of->set->is_weighted) && !(of->type == B_SLICE && of->set->bi_weights == 1))
        return;
    weir__bits_golomb(from); /* luma_log2_weight_denom */
    if (has_chroma)
        weir__bits_golomb(from);
    for (unsigned list = 0; list < num_lists(of); list++) {
        for (uint32_t i = 0; i < of->num_references[list] && !from->is_over; i++) {
            skip_weight(from, 1);
            if (has_chroma)
                skip_weight(from, 2);
        }
    }
}

/* Reads dec_ref_pic_marking() of a picture that is not an IDR picture. True = it clears the memory of references, so
   the order begins anew. */
static bool clears_memory(weir_bits *from)
{
    enum { END = 0, REPLACE = 3, CLEAR = 5, LAST = 6 };
    bool is_explicit = weir__bits_flag(from);
    while (is_explicit && !from->is_over) {
        uint32_t what = weir__bits_golomb(from);
        from->is_over |= what > LAST;
        if (what == END || what == CLEAR)
            return what == CLEAR;
        weir__bits_golomb(from);
        if (what == REPLACE)
            weir__bits_golomb(from);
    }
    return false;
}

static const char *read_slice(weir_bits *from, const weir_h264_headers *headers, slice *of)
{
    enum { LAST_TYPE = 9, NUM_TYPES = 5 };
    of->first_macroblock = weir__bits_golomb(from);
    uint32_t type = weir__bits_golomb(from), set = weir__bits_golomb(from);
    of->type = type % NUM_TYPES;
    if (type > LAST_TYPE || set >= WEIR_H264_MAX_PICTURE_SETS || !headers->sets[set].is_known || of->type > I_SLICE ||
        (of->picture.is_idr && (of->type != I_SLICE || !of->picture.is_reference)))
        return damaged;
    of->set = &headers->sets[set];
    of->picture.is_b = of->type == B_SLICE;
    if (of->sequence->has_separate_planes)
        weir__bits_read(from, 2);
    of->picture.frame_number = weir__bits_read(from, of->sequence->frame_number_bits);
    if (!of->sequence->has_frames_only && weir__bits_flag(from))
        return "pictures are fields";
    read_order(from, of);
    if (of->set->has_redundant && weir__bits_golomb(from) != 0)
        return "pictures are redundant";
    read_num_references(from, of);
    skip_modifications(from, of);
    skip_weights(from, of);
    if (of->picture.is_reference && !of->picture.is_idr && clears_memory(from))
        return "the memory of references is cleared";
    return from->is_over ? damaged : NULL;
}

/* Is it of the same picture? */
static bool is_same_picture(const weir_h264_picture *a, const weir_h264_picture *b)
{
    return a->is_idr == b->is_idr && a->is_reference == b->is_reference && a->frame_number == b->frame_number &&
           a->order_bits == b->order_bits && a->bottom_delta == b->bottom_delta && a->deltas[0] == b->deltas[0] &&
           a->deltas[1] == b->deltas[1];
}

static const char *take_slice(const weir_h264_headers *headers, unit from, bool is_first, weir_h264_picture *picture)
{
    enum { REFERENCE_BITS = 0x60 };
    uint8_t bytes[MAX_SLICE_BYTES];
    weir_bits bits = { .data = bytes,
                       .num = 8 * weir__unit_unescape(from.bytes, from.size_bytes, bytes, sizeof bytes) };
    slice of = { .sequence = &headers->sequence,
                 .picture = { .is_idr = type_of(from) == IDR_SLICE,
                              .is_reference = from.bytes[0] & REFERENCE_BITS,
                              .recovers = picture->recovers } };
    if (!headers->sequence.is_known)
        return damaged;
    const char *why = read_slice(&bits, headers, &of);
    if (!why && is_first != (of.first_macroblock == 0))
        why = is_first ? damaged : "a packet has several pictures";
    if (!why && !is_first && !is_same_picture(&of.picture, picture))
        why = "a packet has several pictures";
    if (!why && is_first)
        *picture = of.picture;
    return why;
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static const char *take_unit(weir_h264_headers *headers, unit from, bool *has_slice, weir_h264_picture *picture)
{
    enum { COUNT_IS_0 = 0x80 };
    const char *why = NULL;
    uint8_t byte;
    switch (type_of(from)) {
    case SEQUENCE_SET: return take_sequence(headers, from);
    case PICTURE_SET: return take_picture_set(headers, from);
    case SEI:
        if (weir__unit_has_recovery_point(from.bytes, from.size_bytes, &byte))
            picture->recovers = byte & COUNT_IS_0;
        return *has_slice ? damaged : NULL;
    case SLICE:
    case IDR_SLICE:
        why = take_slice(headers, from, !*has_slice, picture);
        *has_slice = true;
        return why;
    case DELIMITER:
    case FILLER: return NULL;
    default: return "packets have rare units";
    }
}

const char *weir__h264_read_packet(weir_h264_headers *headers, const AVCodecParameters *codec, const AVPacket *packet,
                                   weir_h264_picture *picture)
{
    weir_unit_walk units = weir__unit_walk_of(codec, packet, WEIR_AVCC_LENGTH_BYTE);
    const char *why = NULL;
    bool has_slice = false;
    unit of;
    *picture = (weir_h264_picture){ 0 };
    while (!why && weir__unit_walk_next(&units, &of.bytes, &of.size_bytes)) {
        bool is_slice = type_of(of) == SLICE || type_of(of) == IDR_SLICE; /* only the header of it is needed */
        of.size_bytes = is_slice ? of.size_bytes : weir__unit_trim(&units, of.bytes, of.size_bytes);
        if (of.size_bytes > 0)
            why = take_unit(headers, of, &has_slice, picture);
    }
    if (!why && units.is_broken)
        why = damaged;
    return why || has_slice ? why : "a packet has no picture";
}

/* The next parameter set of an MP4 header: a byte with the number of sets, then each set behind its length of two
   bytes. False: there is no further set. */
static bool next_set(const uint8_t **at, const uint8_t *end, unit *set)
{
    if (end - *at < 2)
        return false;
    size_t length = (size_t)(*at)[0] << 8 | (*at)[1];
    *at += 2;
    if (length == 0 || length > (size_t)(end - *at))
        return false;
    *set = (unit){ .bytes = *at, .size_bytes = length };
    *at += length;
    return true;
}

static const char *read_listed_sets(weir_h264_headers *headers, const uint8_t *at, const uint8_t *end)
{
    enum { NUM_SEQUENCES = 0x1f };
    const char *why = NULL;
    unit set;
    if (at == end)
        return damaged;
    for (unsigned num = *at++ & NUM_SEQUENCES; num > 0 && !why; num--)
        why = next_set(&at, end, &set) ? take_sequence(headers, set) : damaged;
    if (why || at == end)
        return why ? why : damaged;
    for (unsigned num = *at++; num > 0 && !why; num--)
        why = next_set(&at, end, &set) ? take_picture_set(headers, set) : damaged;
    return why;
}

const char *weir__h264_read_extradata(weir_h264_headers *headers, const AVCodecParameters *codec)
{
    enum { LIST_AT = 5 };
    if (codec->extradata_size <= 0)
        return NULL;
    const uint8_t *data = codec->extradata, *end = data + codec->extradata_size;
    if (data[0] == 1)
        return codec->extradata_size > LIST_AT ? read_listed_sets(headers, data + LIST_AT, end) : damaged;
    weir_unit_walk units = { .at = data, .end = end };
    const char *why = NULL;
    unit of;
    while (!why && weir__unit_walk_next(&units, &of.bytes, &of.size_bytes)) {
        of.size_bytes = weir__unit_trim(&units, of.bytes, of.size_bytes);
        if (type_of(of) == SEQUENCE_SET)
            why = take_sequence(headers, of);
        else if (type_of(of) == PICTURE_SET)
            why = take_picture_set(headers, of);
    }
    return why;
}
