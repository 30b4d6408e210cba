/* Batches as tensors, against what a plain loop makes of the same pixels. */
#include "tests/support.h"

#include <inttypes.h>
#include <math.h>

#include <unistd.h>

#include <weir/arrays.h>
#include <weir/collate.h>
#include <weir/video.h>

#include "stages/batch/convert.h"
#include "stages/batch/dlpack_layout.h"

/* ---- clips --------------------------------------------------------------------------------------------------- */

/* What the source makes; clip i has the number i. */
typedef struct clip_source {
    uint32_t count;
    uint32_t frames[8], width[8], height[8]; /* of clip i: element i % 8, 0 = that of element 0 */
    uint32_t channels;                       /* 0 = YUV420P */
    weir_layout layout;
    bool with_entry;
    uint32_t num_clips; /* the axis */
    uint32_t wide_by;   /* values have 16 bits: those of 8 bits, times this; 0 = 8 bits */
    uint32_t split;     /* item i is piece i % split of that item */
    uint64_t next;      /* the source's own */
} clip_source;

static uint8_t pixel(uint64_t clip, uint64_t frame, uint64_t y, uint64_t x, uint64_t channel)
{
    return (uint8_t)(clip * 101 + frame * 37 + y * 11 + x * 3 + channel * 79 + (x * y) % 7);
}

static uint32_t element(const uint32_t elements[8], uint64_t i)
{
    return elements[i % 8] ? elements[i % 8] : elements[0];
}

static weir_frames *make_frames(const clip_source *source, uint64_t i)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    REQUIRE(frames);
    frames->num_frames = element(source->frames, i);
    frames->width = element(source->width, i);
    frames->height = element(source->height, i);
    frames->channels = source->channels;
    frames->pixel = source->channels == 0 ? WEIR_PIXEL_YUV420P : WEIR_PIXEL_RGB24;
    frames->layout = source->layout;
    frames->num_clips = source->num_clips;
    size_t piece = source->split ? i % source->split : 0; /* then all items have the same number of frames */
    i = source->split ? i / source->split : i;
    size_t w = frames->width, h = frames->height, c = source->channels ? source->channels : 2;
    size_t value_bytes = source->wide_by ? 2 : 1;
    frames->pixel = source->wide_by ? WEIR_PIXEL_RGB48 : frames->pixel;
    frames->frame_bytes = w * h * c * value_bytes;
    frames->data = malloc(frames->num_frames * frames->frame_bytes);
    REQUIRE(frames->data);
    for (size_t n = 0; n < frames->num_frames; n++)
        for (size_t y = 0; y < h; y++)
            for (size_t x = 0; x < w; x++)
                for (size_t k = 0; k < c; k++) {
                    size_t at = source->layout == WEIR_LAYOUT_NCHW ? (k * h + y) * w + x : (y * w + x) * c + k;
                    uint8_t value = pixel(i, piece * frames->num_frames + n, y, x, k);
                    uint16_t wide = (uint16_t)(value * source->wide_by);
                    memcpy(frames->data + n * frames->frame_bytes + at * value_bytes,
                           source->wide_by ? (void *)&wide : (void *)&value, value_bytes);
                }
    if (source->with_entry) {
        frames->entry = weir_entry_new();
        frames->entry->number = 1000 + i;
        frames->entry->epoch = 5;
        frames->entry->class_id = (int64_t)i * 2;
        frames->entry->stands_in = i == 1;
    }
    return frames;
}

static int run_clips(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    clip_source *source = (clip_source *)(uintptr_t)weir_task_config(task);
    if (source->next == source->count)
        return WEIR_EOF;
    static const char *const labels[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    weir_frames *frames = make_frames(source, source->next);
    *out = (weir_item){ .data = frames,
                        .size_bytes = frames->num_frames * frames->frame_bytes,
                        .release = weir_frames_release,
                        .label = labels[source->next % 8] };
    source->next++;
    return WEIR_OK;
}

static const weir_op clips_op = { .name = "clips", .makes = WEIR_TYPE_FRAMES, .run = run_clips };

/* ---- a pipeline ---------------------------------------------------------------------------------------------- */

static weir_pipeline *start_observed(clip_source *source, const weir_collate_config *config,
                                     const weir_pipeline_options *options)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &clips_op, source, 0, NULL);
    weir_pipe_collate(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, options);
}

static weir_pipeline *start(clip_source *source, const weir_collate_config *config)
{
    return start_observed(source, config, NULL);
}

/* NULL at the end. */
static weir_collated *next_batch(weir_pipeline *pipeline)
{
    weir_item item;
    int status = weir_pipeline_next(pipeline, &item, 20 * WEIR_SECOND);
    if (status == WEIR_EOF)
        return NULL;
    assert_int_equal(status, WEIR_OK);
    weir_collated *batch = item.data;
    assert_string_equal(item.label, batch->names[batch->num_items - 1]);
    item.data = NULL;
    weir_item_release(&item);
    return batch;
}

static weir_collated *only_batch(clip_source *source, const weir_collate_config *config)
{
    weir_pipeline *pipeline = start(source, config);
    weir_collated *batch = next_batch(pipeline);
    assert_non_null(batch);
    assert_null(next_batch(pipeline));
    weir_pipeline_free(pipeline);
    return batch;
}

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static double value_at(const weir_collated *batch, size_t at)
{
    float single;
    switch (batch->dtype) {
    case WEIR_DTYPE_UINT8: return ((const uint8_t *)batch->data)[at];
    case WEIR_DTYPE_FLOAT32: return (double)((const float *)batch->data)[at];
    case WEIR_DTYPE_FLOAT16: return half_to_double(((const uint16_t *)batch->data)[at]);
    case WEIR_DTYPE_UINT16: return ((const uint16_t *)batch->data)[at];
    case WEIR_DTYPE_BFLOAT16: break;
    }
    uint32_t bits = (uint32_t)((const uint16_t *)batch->data)[at] << 16;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

/* Where [b, n, y, x, c] is in a batch with at most 8 of each dimension. */
static size_t place(const weir_collated *batch, size_t b, size_t n, size_t y, size_t x, size_t c)
{
    size_t s[5];
    for (int i = 0; i < 5; i++)
        s[i] = (size_t)batch->shape[i];
    switch (batch->layout) {
    case WEIR_COLLATE_NHWC: return (((b * s[1] + n) * s[2] + y) * s[3] + x) * s[4] + c;
    case WEIR_COLLATE_NCHW: return (((b * s[1] + n) * s[2] + c) * s[3] + y) * s[4] + x;
    case WEIR_COLLATE_TIME_SECOND: break;
    }
    return (((b * s[1] + c) * s[2] + n) * s[3] + y) * s[4] + x;
}

static const double mean[] = { 0.485, 0.456, 0.406 };
static const double deviation[] = { 0.229, 0.224, 0.225 };

static double expected_value(weir_dtype dtype, uint8_t value, size_t c)
{
    return dtype == WEIR_DTYPE_UINT8 ? value : (value / 255.0 - mean[c]) / deviation[c];
}

static void assert_close(const weir_collated *batch, size_t at, double expected)
{
    static const double tolerance[] = { 0, 1.0 / 2048, 1.0 / 256, 1e-6 };
    double got = value_at(batch, at);
    if (fabs(got - expected) > tolerance[batch->dtype] * (1 + fabs(expected)))
        fail_msg("value %zu is %g, not %g", at, got, expected);
}

/* ---- values -------------------------------------------------------------------------------------------------- */

static void assert_batch(const weir_collated *batch, const clip_source *source, uint32_t w, uint32_t h, uint32_t n)
{
    for (size_t b = 0; b < batch->num_items; b++)
        for (size_t f = 0; f < n; f++) {
            bool is_frame = f < element(source->frames, b);
            assert_int_equal(batch->mask[b * n + f], is_frame);
            for (size_t y = 0; y < h; y++)
                for (size_t x = 0; x < w; x++)
                    for (size_t c = 0; c < source->channels; c++) {
                        bool is_there = is_frame && y < element(source->height, b) && x < element(source->width, b);
                        uint8_t value = is_there ? pixel(b, f, y, x, c) : 0;
                        assert_close(batch, place(batch, b, f, y, x, c), expected_value(batch->dtype, value, c));
                    }
        }
}

TEST_CASE(every_type_and_layout_has_the_right_values)
{
    for (int dtype = 0; dtype <= WEIR_DTYPE_FLOAT32; dtype++)
        for (int layout = 0; layout <= WEIR_COLLATE_TIME_SECOND; layout++)
            for (int from = 0; from <= WEIR_LAYOUT_NCHW; from++)
                for (uint32_t channels = 1; channels <= 3; channels += 2) {
                    clip_source source = { .count = 3,
                                           .frames = { 2 },
                                           .width = { 37 },
                                           .height = { 13 },
                                           .channels = channels,
                                           .layout = (weir_layout)from };
                    weir_collate_config config = { .num_items = 3,
                                                   .dtype = (weir_dtype)dtype,
                                                   .layout = (weir_collate_layout)layout };
                    memcpy(config.mean, mean, sizeof mean);
                    memcpy(config.std, deviation, sizeof deviation);
                    weir_collated *batch = only_batch(&source, &config);
                    assert_int_equal(batch->num_items, 3);
                    assert_int_equal(batch->data_bytes,
                                     (size_t)3 * 2 * 37 * 13 * channels * weir_dtype_bytes(config.dtype));
                    assert_batch(batch, &source, 37, 13, 2);
                    weir_collated_free(batch);
                }
}

TEST_CASE(ragged_clips_are_padded_and_masked)
{
    for (int layout = 0; layout <= WEIR_COLLATE_TIME_SECOND; layout++)
        for (int from = 0; from <= WEIR_LAYOUT_NCHW; from++) {
            clip_source source = { .count = 3,
                                   .frames = { 2, 4, 1 },
                                   .width = { 30, 12, 25 },
                                   .height = { 5, 9, 6 },
                                   .channels = 3,
                                   .layout = (weir_layout)from };
            weir_collate_config config = { .num_items = 3,
                                           .dtype = WEIR_DTYPE_FLOAT32,
                                           .layout = (weir_collate_layout)layout };
            memcpy(config.mean, mean, sizeof mean);
            memcpy(config.std, deviation, sizeof deviation);
            weir_collated *batch = only_batch(&source, &config);
            const int64_t shapes[][5] = { { 3, 4, 9, 30, 3 }, { 3, 4, 3, 9, 30 }, { 3, 3, 4, 9, 30 } };
            assert_memory_equal(batch->shape, shapes[layout], sizeof shapes[layout]);
            static const int32_t sizes[] = { 2, 5, 30, 4, 9, 12, 1, 6, 25 };
            assert_memory_equal(batch->sizes, sizes, sizeof sizes);
            assert_batch(batch, &source, 30, 9, 4);
            weir_collated_free(batch);
        }
}

TEST_CASE(all_that_is_set_to_nothing_is_scaled_to_one)
{
    clip_source source = { .count = 1, .frames = { 1 }, .width = { 100 }, .height = { 3 }, .channels = 3 };
    weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 1, .dtype = WEIR_DTYPE_FLOAT32 });
    for (size_t x = 0; x < 100; x++)
        assert_close(batch, place(batch, 0, 0, 2, x, 1), pixel(0, 0, 2, x, 1) / 255.0);
    weir_collated_free(batch);
}

TEST_CASE(ids_labels_and_names_come_along)
{
    for (int with_entry = 0; with_entry < 2; with_entry++) {
        clip_source source = {
            .count = 2, .frames = { 1 }, .width = { 4 }, .height = { 4 }, .channels = 3, .with_entry = with_entry
        };
        weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 2 });
        assert_int_equal(batch->ids[1], with_entry ? 1001 : 1);
        assert_int_equal(batch->labels[1], with_entry ? 2 : -1);
        assert_int_equal(batch->valid[0], 1);
        assert_int_equal(batch->valid[1], !with_entry);
        assert_int_equal(batch->epoch, with_entry ? 5 : 0);
        assert_string_equal(batch->names[0], "a");
        assert_string_equal(batch->names[1], "b");
        weir_collated_free(batch);
    }
}

/* ---- conversion: vectors and plain loops ----------------------------------------------------------------------- */

TEST_CASE(vectors_and_plain_loops_give_the_same_bits)
{
    enum { MOST = 24 * 5 + 23 };
    uint8_t from[MOST];
    for (size_t i = 0; i < MOST; i++)
        from[i] = (uint8_t)(i * 89 + i * i % 13);
    const double spans[] = { 0.225, 1e-4, 3e3, 1e6, 2e7, 1 };   /* into the subnormals and beyond the largest */
    for (int way = 0; way <= 2 * WEIR_DTYPE_FLOAT32 + 1; way++) /* from 8 and from 16 bits */
        for (size_t s = 0; s < LENGTH(spans); s++)
            for (size_t length = 0; length <= MOST / (size_t)(1 + way % 2); length++) {
                const double std[] = { spans[s], spans[s] * 1.1, spans[s] * 0.9 };
                weir_dtype dtype = way == 1 ? WEIR_DTYPE_UINT16 : (weir_dtype)(way / 2);
                weir_conversion conversion =
                    weir__conversion_make(dtype, way % 2 ? WEIR_PIXEL_RGB48 : WEIR_PIXEL_RGB24, mean, std, -1);
                uint8_t got[4 * MOST + 4], expected[4 * MOST + 4];
                memset(got, 0xee, sizeof got);
                memset(expected, 0xee, sizeof expected);
                weir__convert(&conversion, got, from, length);
                weir__convert_plain(&conversion, expected, from, length);
                assert_memory_equal(got, expected, sizeof got);
            }
}

/* ---- pixels of 16 bits ----------------------------------------------------------------------------------------- */

/* What they become is what those of 8 bits become, times a number: exactly where nothing is resized, and where it is 1. */
static void assert_wide_batch(const clip_source *source, weir_collate_config config, uint32_t wide_by)
{
    clip_source narrow_source = *source, wide_source = *source;
    wide_source.wide_by = wide_by;
    weir_collated *narrow = only_batch(&narrow_source, &config);
    bool is_float = config.dtype != WEIR_DTYPE_UINT8;
    if (!is_float)
        config.dtype = WEIR_DTYPE_UINT16;
    weir_collated *wide = only_batch(&wide_source, &config);
    size_t num_values = narrow->data_bytes / weir_dtype_bytes(narrow->dtype);
    double room =
        config.crop == WEIR_CROP_RESIZED ? 1.1 / 255 / 0.2 : 1e-5; /* 8 bits are rounded twice, to a half each */
    assert_int_equal(wide->data_bytes, num_values * weir_dtype_bytes(wide->dtype));
    assert_memory_equal(wide->shape, narrow->shape, sizeof wide->shape);
    assert_memory_equal(wide->mask, narrow->mask, wide->num_items * (size_t)wide->num_frames);
    for (size_t i = 0; i < num_values; i++) {
        double got = value_at(wide, i), wanted = value_at(narrow, i);
        if (is_float ? fabs(got - wanted) > room : got != wanted * wide_by) /* 257/65535 = 1/255 */
            fail_msg("value %zu is %g, of 8 bits %g", i, got, wanted);
    }
    weir_collated_free(narrow);
    weir_collated_free(wide);
}

TEST_CASE(batches_of_16_bits_are_those_of_8_bits)
{
    clip_source source = {
        .count = 4, .frames = { 2, 3 }, .width = { 24, 20 }, .height = { 18 }, .channels = 3, .with_entry = true
    };
    for (int way = 0; way < 24; way++) {
        weir_collate_config config = {
            .num_items = 4, .layout = (weir_collate_layout)(way % 3), .flip = way % 2 ? 1 : 0, .seed = 9
        };
        source.layout = way / 3 % 2 ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC;
        if (way >= 6) {
            config.crop = (weir_crop)(way / 6 - 1);
            config.crop_width = 12;
            config.crop_height = 10;
        }
        assert_wide_batch(&source, config, 1);
        if (config.crop != WEIR_CROP_RESIZED)
            assert_wide_batch(&source, config, 256);
        config.dtype = WEIR_DTYPE_FLOAT32;
        config.mean[0] = 0.4;
        config.std[0] = 0.2;
        assert_wide_batch(&source, config, 257);
    }
}

/* ---- the user's columns ------------------------------------------------------------------------------------------ */

static int run_valued(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    int status = run_clips(worker, in, out, task);
    uint64_t number = status == WEIR_OK ? ((clip_source *)(uintptr_t)weir_task_config(task))->next - 1 : 0;
    const weir_value values[] = {
        { .name = "n",
          .kind = number == 2 ? WEIR_COLUMN_REAL : WEIR_COLUMN_INTEGER,
          .is_there = true,
          .integer = (int64_t)number * 10,
          .real = 2.5,
          .text = "" },
        { .name = number == 3 ? "other" : "text",
          .kind = number == 9 ? WEIR_COLUMN_INTEGER : WEIR_COLUMN_TEXT,
          .is_there = number != 1,
          .text = number == 0 ? "x" : "" },
    };
    if (status == WEIR_OK)
        assert_int_equal(weir_entry_set_values(((weir_frames *)out->data)->entry, values, number == 4 ? 0 : 2),
                         WEIR_OK);
    return status;
}

static const weir_op valued_op = { .name = "clips", .makes = WEIR_TYPE_FRAMES, .run = run_valued };

static weir_pipeline *start_valued(clip_source *source)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &valued_op, source, 0, NULL);
    weir_pipe_collate(builder, &(weir_collate_config){ .num_items = 5 }, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

/* Items may lack a column, integers become reals beside these, and items may have no values at all. */
TEST_CASE(columns_are_gathered_from_items_that_differ)
{
    clip_source source = {
        .count = 5, .frames = { 1 }, .width = { 4 }, .height = { 4 }, .channels = 3, .with_entry = true
    };
    weir_pipeline *pipeline = start_valued(&source);
    weir_collated *batch = next_batch(pipeline);
    assert_int_equal(batch->num_columns, 3);
    const weir_column *n = weir_column_find(batch->columns, 3, "n"),
                      *text = weir_column_find(batch->columns, 3, "text");
    const weir_column *other = weir_column_find(batch->columns, 3, "other");
    assert_true(n->kind == WEIR_COLUMN_REAL && n->reals[0] == 0 && n->reals[1] == 10 && n->reals[2] == 2.5);
    assert_memory_equal(n->is_there, ((uint8_t[]){ 1, 1, 1, 1, 0 }), 5);
    assert_memory_equal(text->is_there, ((uint8_t[]){ 1, 0, 1, 0, 0 }), 5);
    assert_memory_equal(other->is_there, ((uint8_t[]){ 0, 0, 0, 1, 0 }), 5);
    assert_string_equal(text->texts[0], "x");

    struct DLManagedTensorVersioned *made;
    weir_error error;
    weir_item item = { .data = batch, .release = weir_collated_release, .type = WEIR_TYPE_COLLATED };
    assert_int_equal(weir_column_to_dlpack(&item, "text", &made, &error), WEIR_EUNSUPPORTED);
    assert_int_equal(weir_column_to_dlpack(&item, "m", &made, &error), WEIR_ENOTFOUND);
    assert_int_equal(weir_column_to_dlpack(&item, "n", &made, NULL), WEIR_OK);
    weir_item_release(&item);
    dl_versioned *tensor = (dl_versioned *)(void *)made;
    assert_true(tensor->tensor.num_dims == 1 && tensor->tensor.shape[0] == 5 && tensor->tensor.dtype.bits == 64);
    assert_true(((const double *)tensor->tensor.data)[3] == 30);
    tensor->deleter(tensor);
    assert_null(next_batch(pipeline));
    weir_pipeline_free(pipeline);
}

TEST_CASE(a_column_of_texts_and_numbers_fails_its_batch)
{
    clip_source source = {
        .count = 10, .frames = { 1 }, .width = { 4 }, .height = { 4 }, .channels = 3, .with_entry = true
    };
    weir_error error = { 0 };
    weir_pipeline *pipeline = start_valued(&source);
    weir_collated_free(next_batch(pipeline));
    assert_null(next_batch(pipeline)); /* of items 5 to 9, of which 9 has a number */
    weir_pipeline_error(pipeline, "collate", &error);
    assert_int_equal(error.status, WEIR_EINVAL);
    assert_non_null(strstr(error.message, "the column \"text\" has a text in one item and a number in another"));
    weir_pipeline_free(pipeline);
}

/* 2 x (4x4) and 1 x (4x2) in a batch of [2, 2, 4, 4]. */
TEST_CASE(the_share_of_padding_is_told)
{
    clip_source source = { .count = 2, .frames = { 2, 1 }, .width = { 4, 2 }, .height = { 4 }, .channels = 3 };
    weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 2 });
    assert_true(batch->padding == 1 - (32 + 8) / 64.0);
    weir_collated_free(batch);
    source = (clip_source){ .count = 2, .frames = { 2 }, .width = { 4 }, .height = { 4 }, .channels = 3 };
    batch = only_batch(&source, &(weir_collate_config){ .num_items = 2 });
    assert_true(batch->padding == 0);
    weir_collated_free(batch);
}

/* ---- what ends a batch ----------------------------------------------------------------------------------------- */

static void assert_batches(clip_source source, weir_collate_config config, const size_t *counts, size_t num_counts)
{
    weir_pipeline *pipeline = start(&source, &config);
    for (size_t i = 0; i < num_counts; i++) {
        weir_collated *batch = next_batch(pipeline);
        assert_non_null(batch);
        assert_int_equal(batch->num_items, counts[i]);
        weir_collated_free(batch);
    }
    assert_null(next_batch(pipeline));
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
}

TEST_CASE(batches_end_by_count_frames_or_bytes)
{
    clip_source source = {
        .count = 8, .frames = { 2, 2, 6, 2, 20, 3, 3, 3 }, .width = { 4 }, .height = { 2 }, .channels = 3
    };
    assert_batches(source, (weir_collate_config){ .num_items = 3 }, (size_t[]){ 3, 3, 2 }, 3);
    assert_batches(source, (weir_collate_config){ .num_items = 3, .drop_last = true }, (size_t[]){ 3, 3 }, 2);
    /* 2+2, 6+2 padded to 12, 20 alone, 3+3+3 */
    assert_batches(source, (weir_collate_config){ .max_frames = 12 }, (size_t[]){ 2, 2, 1, 3 }, 4);
    assert_batches(source, (weir_collate_config){ .max_frames = 12, .num_items = 2 }, (size_t[]){ 2, 2, 1, 2, 1 }, 5);
    assert_batches(source, (weir_collate_config){ .max_bytes = (uint64_t)12 * 24 * 4, .dtype = WEIR_DTYPE_FLOAT32 },
                   (size_t[]){ 2, 2, 1, 3 }, 4);
}

/* ---- crops --------------------------------------------------------------------------------------------------- */

TEST_CASE(a_crop_is_in_the_middle_or_anywhere)
{
    for (int crop = WEIR_CROP_CENTER; crop <= WEIR_CROP_RANDOM; crop++) {
        uint32_t num_places = 0;
        int64_t last = -1;
        clip_source source = { .count = 8, .frames = { 3 }, .width = { 40 }, .height = { 30 }, .channels = 3 };
        weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 8,
                                                                           .crop = (weir_crop)crop,
                                                                           .crop_width = 20,
                                                                           .crop_height = 10,
                                                                           .layout = WEIR_COLLATE_NCHW });
        for (size_t b = 0; b < 8; b++) {
            int64_t found = -1;
            for (int64_t at = 0; at < 21 * 21;
                 at++) { /* where is it from? The same place in each frame and channel */
                bool same = true;
                for (size_t i = 0; same && i < (size_t)3 * 10 * 20 * 3; i++) {
                    size_t x = i % 20, y = i / 20 % 10, c = i / 200 % 3, n = i / 600;
                    same = value_at(batch, place(batch, b, n, y, x, c)) ==
                           pixel(b, n, y + (size_t)at / 21, x + (size_t)at % 21, c);
                }
                found = same ? at : found;
            }
            assert_true(found >= 0);
            if (crop == WEIR_CROP_CENTER)
                assert_int_equal(found, 10 * 21 + 10);
            num_places += found != last;
            last = found;
        }
        assert_true(crop == WEIR_CROP_CENTER || num_places > 4);
        weir_collated_free(batch);
    }
}

TEST_CASE(flips_are_of_whole_clips_and_by_chance)
{
    for (int from = 0; from <= WEIR_LAYOUT_NCHW; from++)
        for (int layout = 0; layout <= WEIR_COLLATE_TIME_SECOND; layout++) {
            unsigned num_flipped = 0;
            clip_source source = { .count = 64,
                                   .frames = { 2 },
                                   .width = { 9 },
                                   .height = { 4 },
                                   .channels = 3,
                                   .layout = (weir_layout)from };
            weir_collated *batch = only_batch(
                &source,
                &(weir_collate_config){ .num_items = 64, .flip = 0.5, .layout = (weir_collate_layout)layout });
            for (size_t b = 0; b < 64; b++) {
                bool flipped = value_at(batch, place(batch, b, 0, 0, 0, 0)) == pixel(b, 0, 0, 8, 0);
                num_flipped += flipped;
                for (size_t i = 0; i < (size_t)2 * 4 * 9 * 3; i++) {
                    size_t x = i % 9, y = i / 9 % 4, c = i / 36 % 3, n = i / 108;
                    assert_int_equal(value_at(batch, place(batch, b, n, y, x, c)),
                                     pixel(b, n, y, flipped ? 8 - x : x, c));
                }
            }
            assert_in_range(num_flipped, 32 - 20, 32 + 20);
            weir_collated_free(batch);
        }
}

/* The same clips in other batches and in another layout: the same pixels. */
TEST_CASE(what_is_drawn_depends_on_the_clip_alone)
{
    weir_collate_config config = {
        .num_items = 4, .crop = WEIR_CROP_RESIZED, .crop_width = 12, .crop_height = 12, .flip = 0.5, .seed = 3
    };
    clip_source source = {
        .count = 4, .frames = { 2 }, .width = { 64 }, .height = { 48 }, .channels = 3, .with_entry = true
    };
    clip_source planar = source;
    planar.layout = WEIR_LAYOUT_NCHW;
    weir_collated *first = only_batch(&source, &config);
    config.num_items = 1;
    weir_pipeline *pipeline = start(&planar, &config);
    for (size_t b = 0; b < 4; b++) {
        weir_collated *single = next_batch(pipeline);
        assert_memory_equal(single->data, (uint8_t *)first->data + b * single->data_bytes, single->data_bytes);
        weir_collated_free(single);
    }
    weir_pipeline_free(pipeline);
    config.num_items = 4;
    config.seed = 4;
    source.next = 0;
    weir_collated *other = only_batch(&source, &config);
    assert_memory_not_equal(first->data, other->data, first->data_bytes);
    weir_collated_free(first);
    weir_collated_free(other);
}

TEST_CASE(where_no_random_crop_fits_it_is_the_largest_in_the_centre)
{
    clip_source source = { .count = 1, .frames = { 1 }, .width = { 4 }, .height = { 400 }, .channels = 3 };
    weir_collated *batch = only_batch(
        &source,
        &(weir_collate_config){ .num_items = 1, .crop = WEIR_CROP_RESIZED, .crop_width = 4, .crop_height = 4 });
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(value_at(batch, place(batch, 0, 0, i / 4, i % 4, 0)), pixel(0, 0, 198 + i / 4, i % 4, 0));
    weir_collated_free(batch);
}

static int run_gradient(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    int status = run_clips(worker, in, out, task);
    weir_frames *frames = status == WEIR_OK ? out->data : NULL;
    for (size_t i = 0; frames && i < frames->num_frames * frames->frame_bytes; i++) {
        size_t x = i / 3 % frames->width, y = i / 3 / frames->width % frames->height;
        frames->data[i] = (uint8_t)(i % 3 == 0 ? x * 2 : i % 3 == 1 ? y * 2 : 77);
    }
    return status;
}

static const weir_op gradient_op = { .name = "gradient", .makes = WEIR_TYPE_FRAMES, .run = run_gradient };

/* A resized gradient is a gradient: straight, rising along its own axis, constant along the other. */
TEST_CASE(a_resize_keeps_gradients_straight)
{
    clip_source source = { .count = 8, .frames = { 1 }, .width = { 120 }, .height = { 90 }, .channels = 3 };
    weir_collate_config config = {
        .num_items = 8, .crop = WEIR_CROP_RESIZED, .crop_width = 16, .crop_height = 16, .min_area = 0.2
    };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &gradient_op, &source, 0, NULL);
    weir_pipe_collate(builder, &config, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_collated *batch = next_batch(pipeline);
    for (size_t b = 0; b < 8; b++) {
        double step =
            (value_at(batch, place(batch, b, 0, 0, 14, 0)) - value_at(batch, place(batch, b, 0, 0, 1, 0))) / 13;
        assert_true(step > 2); /* the crop is at least 20 % of the area, 3:4 or wider */
        for (size_t y = 1; y < 15; y++)
            for (size_t x = 1; x < 15; x++) {
                double first = value_at(batch, place(batch, b, 0, 0, 1, 0));
                assert_true(fabs(value_at(batch, place(batch, b, 0, y, x, 0)) - (first + step * ((double)x - 1))) <
                            2);
                assert_true(value_at(batch, place(batch, b, 0, y, x, 1)) >=
                            value_at(batch, place(batch, b, 0, y - 1, x, 1)));
                assert_int_equal(value_at(batch, place(batch, b, 0, y, x, 2)), 77);
            }
    }
    weir_collated_free(batch);
    weir_pipeline_free(pipeline);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

typedef struct own_memory {
    atomic_int num_allocated, num_freed, num_closed;
} own_memory;

static void *own_allocate(void *self, size_t num_bytes)
{
    atomic_fetch_add(&((own_memory *)self)->num_allocated, 1);
    return malloc(num_bytes);
}

static void own_free(void *self, void *data, size_t num_bytes)
{
    memset(data, 0, num_bytes);
    atomic_fetch_add(&((own_memory *)self)->num_freed, 1);
    free(data);
}

static void own_close(void *self)
{
    own_memory *memory = self;
    atomic_fetch_add(&memory->num_closed, 1);
    assert_int_equal(atomic_load(&memory->num_allocated), atomic_load(&memory->num_freed));
}

/* The memory is pinned, as far as weir knows. */
static weir_allocator *own_allocator(own_memory *memory)
{
    weir_allocator *allocator;
    weir_allocator_config config = { .memory = { WEIR_MEMORY_CUDA_HOST, 0 },
                                     .self = memory,
                                     .allocate = own_allocate,
                                     .free = own_free,
                                     .close = own_close };
    assert_int_equal(weir_allocator_new(&config, &allocator, NULL), WEIR_OK);
    return allocator;
}

TEST_CASE(memory_is_the_users_and_used_again)
{
    own_memory memory = { 0 };
    clip_source source = { .count = 100, .frames = { 2 }, .width = { 16 }, .height = { 16 }, .channels = 3 };
    weir_allocator *allocator = own_allocator(&memory);
    weir_pipeline *pipeline = start(&source, &(weir_collate_config){ .num_items = 1, .allocator = allocator });
    weir_allocator_free(allocator); /* the pipeline owns it, too */
    weir_collated *batch, *last = NULL;
    while ((batch = next_batch(pipeline))) {
        assert_int_equal(batch->memory.kind, WEIR_MEMORY_CUDA_HOST);
        weir_collated_free(last);
        last = batch;
    }
    weir_pipeline_free(pipeline);
    assert_in_range(atomic_load(&memory.num_allocated), 1, 20);
    assert_int_equal(value_at(last, 0), pixel(99, 0, 0, 0, 0)); /* outlives the pipeline */
    assert_int_equal(atomic_load(&memory.num_closed), 0);
    weir_collated_free(last);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(the_clips_of_a_batch_and_the_batch_in_the_making_are_held)
{
    enum { CLIP = 2 * 16 * 16 * 3, BATCH = 4 * CLIP * (int)sizeof(float), BUFFERS = 8192 };
    clip_source source = { .count = 4, .frames = { 2 }, .width = { 16 }, .height = { 16 }, .channels = 3 };
    test_recorder recorder;
    recorder_init(&recorder);
    weir_pipeline *pipeline =
        start_observed(&source, &(weir_collate_config){ .num_items = 4, .dtype = WEIR_DTYPE_FLOAT32 },
                       &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    weir_collated_free(next_batch(pipeline));
    assert_null(next_batch(pipeline));
    weir_pipeline_free(pipeline);
    assert_in_range(recorder_stage_total(&recorder, "0:1:collate").metrics.task.max_held_bytes, 4 * CLIP + BATCH,
                    4 * CLIP + BATCH + BUFFERS);
    recorder_free(&recorder);
}

TEST_CASE(a_stop_in_the_middle_releases_all)
{
    own_memory memory = { 0 };
    clip_source source = { .count = 1000, .frames = { 2 }, .width = { 16 }, .height = { 16 }, .channels = 3 };
    weir_allocator *allocator = own_allocator(&memory);
    weir_pipeline *pipeline = start(&source, &(weir_collate_config){ .num_items = 7, .allocator = allocator });
    weir_allocator_free(allocator);
    weir_collated_free(next_batch(pipeline));
    weir_pipeline_free(pipeline);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(a_tensor_of_a_batch_keeps_the_users_memory)
{
    own_memory memory = { 0 };
    clip_source source = { .count = 1, .frames = { 2 }, .width = { 16 }, .height = { 16 }, .channels = 3 };
    weir_allocator *allocator = own_allocator(&memory);
    weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 1, .allocator = allocator });
    weir_allocator_free(allocator);
    struct DLManagedTensorVersioned *made;
    weir_item item = { .data = batch, .release = weir_collated_release, .type = WEIR_TYPE_COLLATED };
    assert_int_equal(weir_to_dlpack(&item, WEIR_ARRAY_DATA, NULL, &made, NULL), WEIR_OK);
    weir_item_release(&item);
    dl_versioned *tensor = (dl_versioned *)(void *)made;
    assert_int_equal(tensor->tensor.device.type, 3); /* kDLCUDAHost */
    assert_int_equal(((const uint8_t *)tensor->tensor.data)[0], pixel(0, 0, 0, 0, 0));
    assert_int_equal(atomic_load(&memory.num_closed), 0);
    tensor->deleter(tensor);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

/* ---- handing on ----------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static char path[128]; /* of a file of this test's own */

static void make_path(const char *ending)
{
    snprintf(path, sizeof path, "/tmp/weir-collate-%d.%s", (int)getpid(), ending);
}

#define BATCH_ITEM(batch) ((weir_item){ .data = (batch), .type = WEIR_TYPE_COLLATED })

static weir_collated *small_batch(weir_dtype dtype)
{
    clip_source source = {
        .count = 2, .frames = { 2, 1 }, .width = { 5 }, .height = { 3 }, .channels = 3, .with_entry = true
    };
    return only_batch(&source, &(weir_collate_config){ .num_items = 2, .dtype = dtype, .layout = WEIR_COLLATE_NCHW });
}

/* The tensor of that name: its bytes are where the header says. */
static void assert_tensor(const char *bytes, size_t size, const char *header, const void *data, size_t num_bytes)
{
    uint64_t length;
    memcpy(&length, bytes, sizeof length); /* little endian, as all machines here are */
    assert_int_equal(length % 8, 0);
    const char *found = strstr(bytes + 8, header);
    if (!found || found > bytes + 8 + length)
        fail_msg("%s is not in %.*s", header, (int)length, bytes + 8);
    size_t start, end;
    assert_int_equal(sscanf(found + strlen(header), ",\"data_offsets\":[%zu,%zu]", &start, &end), 2);
    assert_int_equal(end - start, num_bytes);
    assert_true(8 + length + end <= size);
    assert_memory_equal(bytes + 8 + length + start, data, num_bytes);
}

TEST_CASE(a_safetensors_file_holds_all_tensors)
{
    size_t size;
    make_path("safetensors");
    weir_collated *batch = small_batch(WEIR_DTYPE_BFLOAT16);
    free(batch->names[1]);
    batch->names[1] = strdup("a\"b\\c\n");
    assert_int_equal(weir_write_safetensors(&BATCH_ITEM(batch), path, NULL), WEIR_OK);
    char *bytes = read_file(path, &size);
    assert_tensor(bytes, size, "\"frames\":{\"dtype\":\"BF16\",\"shape\":[2,2,3,3,5]", batch->data, 2 * 2 * 45 * 2);
    assert_tensor(bytes, size, "\"labels\":{\"dtype\":\"I64\",\"shape\":[2]", batch->labels, 16);
    assert_tensor(bytes, size, "\"ids\":{\"dtype\":\"I64\",\"shape\":[2]", batch->ids, 16);
    assert_tensor(bytes, size, "\"sizes\":{\"dtype\":\"I32\",\"shape\":[2,3]", batch->sizes, 24);
    assert_tensor(bytes, size, "\"mask\":{\"dtype\":\"U8\",\"shape\":[2,2]", batch->mask, 4);
    assert_tensor(bytes, size, "\"valid\":{\"dtype\":\"U8\",\"shape\":[2]", batch->valid, 2);
    assert_non_null(strstr(bytes + 8, "\"epoch\":\"5\""));
    assert_non_null(strstr(bytes + 8, "\"names\":\"[\\\"a\\\",\\\"a\\\\\\\"b\\\\\\\\c\\\\u000a\\\"]\""));
    free(bytes);
    unlink(path);
    weir_collated_free(batch);

    clip_source source = { .count = 1, .frames = { 4 }, .width = { 5 }, .height = { 3 }, .channels = 3 };
    weir_frames *frames = make_frames(&source, 0);
    frames->pts = calloc(4, sizeof *frames->pts);
    assert_int_equal(weir_write_safetensors(&(weir_item){ .data = frames, .type = WEIR_TYPE_FRAMES }, path, NULL),
                     WEIR_OK);
    bytes = read_file(path, &size);
    assert_tensor(bytes, size, "\"frames\":{\"dtype\":\"U8\",\"shape\":[4,3,5,3]", frames->data, 180);
    assert_tensor(bytes, size, "\"pts\":{\"dtype\":\"I64\",\"shape\":[4]", frames->pts, 32);
    free(bytes);
    unlink(path);
    weir_frames_free(frames);
}

TEST_CASE(a_batch_is_an_npy_file_unless_numpy_lacks_the_type)
{
    size_t size;
    make_path("npy");
    static const char *const types[] = { "|u1", "<f2", NULL, "<f4" };
    for (int dtype = 0; dtype <= WEIR_DTYPE_FLOAT32; dtype++) {
        weir_collated *batch = small_batch((weir_dtype)dtype);
        int status = weir_write_npy(&BATCH_ITEM(batch), path, NULL);
        assert_int_equal(status, types[dtype] ? WEIR_OK : WEIR_EUNSUPPORTED);
        if (status == WEIR_OK) {
            char header[128];
            char *bytes = read_file(path, &size);
            snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 2, 3, 3, 5, ), }",
                     types[dtype]);
            assert_memory_equal(bytes + 10, header, strlen(header));
            assert_memory_equal(bytes + size - batch->data_bytes, batch->data, batch->data_bytes);
            free(bytes);
        }
        unlink(path);
        weir_collated_free(batch);
    }
}

TEST_CASE(a_place_that_cannot_be_written_is_named)
{
    weir_error error = { 0 };
    weir_collated *batch = small_batch(WEIR_DTYPE_UINT8);
    assert_int_equal(weir_write_safetensors(&BATCH_ITEM(batch), "/nowhere/at/all.safetensors", &error),
                     WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "/nowhere/at/all.safetensors"));
    assert_int_equal(weir_write_safetensors(&BATCH_ITEM(batch), "/tmp", NULL), WEIR_EINVAL);
    weir_collated_free(batch);
}

static dl_versioned *tensor_of(weir_collated *batch, weir_array_kind kind)
{
    struct DLManagedTensorVersioned *made;
    assert_int_equal(weir_to_dlpack(&BATCH_ITEM(batch), kind, NULL, &made, NULL), WEIR_OK);
    return (dl_versioned *)(void *)made;
}

/* The batch is freed first; the leak check and the address sanitizer watch. */
TEST_CASE(tensors_share_the_batch)
{
    dl_versioned *tensors[6];
    static const int64_t frames_shape[] = { 2, 2, 3, 3, 5 };
    weir_collated *batch = small_batch(WEIR_DTYPE_FLOAT16);
    for (int kind = 0; kind <= WEIR_ARRAY_VALID; kind++)
        tensors[kind] = tensor_of(batch, (weir_array_kind)kind);
    assert_ptr_equal(tensors[0]->tensor.data, batch->data);
    weir_collated_free(batch);
    assert_int_equal(tensors[0]->tensor.num_dims, 5);
    assert_memory_equal(tensors[0]->tensor.shape, frames_shape, sizeof frames_shape);
    assert_int_equal(tensors[0]->tensor.dtype.code, DL_FLOAT);
    assert_int_equal(tensors[0]->tensor.dtype.bits, 16);
    assert_int_equal(tensors[1]->tensor.dtype.code, DL_INT);
    assert_int_equal(tensors[1]->tensor.dtype.bits, 64);
    assert_int_equal(((const int64_t *)tensors[2]->tensor.data)[1], 1001);
    assert_int_equal(((const int32_t *)tensors[3]->tensor.data)[4], 3);
    assert_int_equal(((const uint8_t *)tensors[4]->tensor.data)[3], 0);
    assert_int_equal(((const uint8_t *)tensors[5]->tensor.data)[1], 0); /* the second clip stands in for another */
    for (int kind = 0; kind <= WEIR_ARRAY_VALID; kind++)
        tensors[kind]->deleter(tensors[kind]);
}

/* Every dimension has another length: 3 clips, 4 frames at most, 5 x 2 pixels; sizes have 3 numbers. */
TEST_CASE(each_tensor_has_its_shape)
{
    static const struct {
        int num_dims, bits;
        int64_t shape[5];
    } wanted[] = { [WEIR_ARRAY_DATA] = { 5, 8, { 3, 4, 2, 5, 1 } },
                   [WEIR_ARRAY_LABELS] = { 1, 64, { 3 } },
                   [WEIR_ARRAY_IDS] = { 1, 64, { 3 } },
                   [WEIR_ARRAY_SIZES] = { 2, 32, { 3, 3 } },
                   [WEIR_ARRAY_MASK] = { 2, 8, { 3, 4 } },
                   [WEIR_ARRAY_VALID] = { 1, 8, { 3 } } };
    static const weir_collate_layout layouts[] = { WEIR_COLLATE_NHWC, WEIR_COLLATE_NCHW, WEIR_COLLATE_TIME_SECOND };
    for (size_t l = 0; l < 3; l++) {
        clip_source source = {
            .count = 3, .frames = { 2, 4, 1 }, .width = { 5 }, .height = { 2 }, .channels = 1, .with_entry = true
        };
        weir_collated *batch = only_batch(&source, &(weir_collate_config){ .num_items = 3, .layout = layouts[l] });
        for (int kind = 0; kind <= WEIR_ARRAY_VALID; kind++) {
            int64_t shape[5];
            memcpy(shape, wanted[kind].shape, sizeof shape);
            if (kind == WEIR_ARRAY_DATA && l > 0) { /* one channel: before, or before and after the frames */
                const int64_t planar[][5] = { { 3, 4, 1, 2, 5 }, { 3, 1, 4, 2, 5 } };
                memcpy(shape, planar[l - 1], sizeof shape);
            }
            dl_versioned *tensor = tensor_of(batch, (weir_array_kind)kind);
            assert_int_equal(tensor->tensor.num_dims, wanted[kind].num_dims);
            assert_int_equal(tensor->tensor.dtype.bits, wanted[kind].bits);
            assert_int_equal(tensor->tensor.dtype.lanes, 1);
            assert_memory_equal(tensor->tensor.shape, shape, (size_t)wanted[kind].num_dims * sizeof *shape);
            tensor->deleter(tensor);
        }
        weir_collated_free(batch);
    }
}

/* A batch of 3 items of 2 clips has the values of a batch of 6 items, which are these clips; shorter ones are
   padded. */
TEST_CASE(clips_have_an_axis_of_their_own)
{
    for (int layout = 0; layout <= WEIR_COLLATE_TIME_SECOND; layout++)
        for (int crop = 0; crop < 2; crop++) {
            clip_source source = {
                .count = 3, .frames = { 8, 4, 8 }, .width = { 12 }, .height = { 9 }, .channels = 3
            };
            clip_source parts = source;
            source.num_clips = 2;
            parts.split = 2;
            parts.count = 6;
            const uint32_t part_frames[8] = { 4, 4, 2, 2, 4, 4 };
            memcpy(parts.frames, part_frames, sizeof part_frames);
            weir_collate_config config = { .num_items = 3, .layout = (weir_collate_layout)layout };
            config.crop_width = config.crop_height = crop ? 6 : 0;
            weir_collated *batch = only_batch(&source, &config);
            config.num_items = 6;
            weir_collated *flat = only_batch(&parts, &config);
            assert_int_equal(batch->num_dims, 6);
            assert_int_equal(batch->num_clips, 2);
            assert_int_equal(batch->num_frames, 8);
            assert_int_equal(batch->shape[0], 3);
            assert_int_equal(batch->shape[1], 2);
            assert_memory_equal(batch->shape + 2, flat->shape + 1, 4 * sizeof *flat->shape);
            assert_int_equal(batch->data_bytes, flat->data_bytes);
            assert_memory_equal(batch->data, flat->data, flat->data_bytes);
            dl_versioned *tensor = tensor_of(batch, WEIR_ARRAY_MASK);
            const int64_t mask_shape[] = { 3, 2, 4 };
            assert_int_equal(tensor->tensor.num_dims, 3);
            assert_memory_equal(tensor->tensor.shape, mask_shape, sizeof mask_shape);
            tensor->deleter(tensor);
            weir_collated_free(batch);
            weir_collated_free(flat);
        }
}

/* ---- failures ------------------------------------------------------------------------------------------------ */

TEST_CASE(what_does_not_fit_fails_alone)
{
    clip_source small = { .count = 3, .frames = { 1 }, .width = { 20, 9 }, .height = { 20 }, .channels = 3 };
    weir_error error = { 0 };
    weir_pipeline *pipeline =
        start(&small, &(weir_collate_config){ .num_items = 2, .crop_width = 10, .crop_height = 10 });
    weir_collated *batch = next_batch(pipeline);
    assert_int_equal(batch->num_items, 2);
    assert_int_equal(batch->ids[1], 2);
    weir_collated_free(batch);
    assert_null(next_batch(pipeline));
    weir_pipeline_error(pipeline, "collate", &error);
    assert_int_equal(error.status, WEIR_EINVAL);
    assert_non_null(strstr(error.message, "9×20, are smaller than the crop, 10×10"));
    weir_pipeline_free(pipeline);

    clip_source yuv = { .count = 1, .frames = { 1 }, .width = { 4 }, .height = { 4 } };
    pipeline = start(&yuv, &(weir_collate_config){ .num_items = 2 });
    assert_null(next_batch(pipeline));
    weir_pipeline_error(pipeline, "collate", &error);
    assert_int_equal(error.status, WEIR_EUNSUPPORTED);
    weir_pipeline_free(pipeline);

    for (int wide = 0; wide < 2; wide++) { /* integers of another size */
        clip_source deep = {
            .count = 1, .frames = { 1 }, .width = { 4 }, .height = { 4 }, .channels = 3, .wide_by = wide ? 257 : 0
        };
        pipeline = start(
            &deep, &(weir_collate_config){ .num_items = 1, .dtype = wide ? WEIR_DTYPE_UINT8 : WEIR_DTYPE_UINT16 });
        assert_null(next_batch(pipeline));
        weir_pipeline_error(pipeline, "collate", &error);
        assert_int_equal(error.status, WEIR_EUNSUPPORTED);
        assert_non_null(strstr(error.message, wide ? "of 16 bits cannot become" : "of 8 bits cannot become"));
        weir_pipeline_free(pipeline);
    }
}

TEST_CASE(options_that_make_no_sense_are_refused)
{
    const weir_collate_config cases[] = {
        { 0 },
        { .num_items = 1, .dtype = (weir_dtype)9 },
        { .num_items = 1, .crop_width = 3 },
        { .num_items = 1, .crop = WEIR_CROP_RANDOM },
        { .num_items = 1, .flip = 1.5 },
        { .num_items = 1, .flip = NAN },
        { .num_items = 1, .min_area = 0.5, .max_area = 0.4 },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_pipeline *pipeline;
        clip_source source = { 0 };
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &clips_op, &source, 0, NULL);
        weir_pipe_collate(builder, &cases[i], NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_EINVAL);
    }
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
