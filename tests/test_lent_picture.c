/*
 * When a picture may be lent as it is, and what a copy holds: each border of the buffers once, and one byte less. What
 * libraries do with lent pictures, test_geometry.c looks at. Constant here: small pictures, one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include "stages/scale/lent_picture.h"

enum { GUARD = WEIR_LENT_GUARD_BYTES };

/* ---- pictures in memory -------------------------------------------------------------------------------------------- */

static uint8_t memory[4096]; /* no byte is 0, and neighbours differ */

static uint8_t byte_at(int place)
{
    return (uint8_t)(1 + place % 251);
}

static void keep(void *opaque, uint8_t *data)
{
    (void)opaque;
    (void)data;
}

static AVFrame *frame_of(int format, int width, int height)
{
    AVFrame *frame = av_frame_alloc();
    assert_non_null(frame);
    frame->format = format;
    frame->width = width;
    frame->height = height;
    return frame;
}

/* The bytes of `memory` from `start` on are a buffer of the frame. */
static void add_buffer(AVFrame *frame, int number, size_t start, size_t num_bytes)
{
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = byte_at((int)i);
    frame->buf[number] = av_buffer_create(memory + start, num_bytes, keep, NULL, 0);
    assert_non_null(frame->buf[number]);
}

static void set_plane(AVFrame *frame, int plane, size_t at, int linesize)
{
    frame->data[plane] = memory + at;
    frame->linesize[plane] = linesize;
}

/* A plane of RGB at `at`, in a buffer that begins at 100. */
static AVFrame *rgb_of(int width, int height, size_t num_bytes, size_t at, int linesize)
{
    AVFrame *frame = frame_of(AV_PIX_FMT_RGB24, width, height);
    add_buffer(frame, 0, 100, num_bytes);
    set_plane(frame, 0, at, linesize);
    return frame;
}

static AVFrame *copy;

static bool is_copied(const AVFrame *in, weir_touch touch)
{
    weir_error error = { 0 };
    const AVFrame *out = NULL;
    assert_int_equal(weir__lend_source(&copy, in, touch, &out, &error), WEIR_OK);
    assert_true(out == in || out == copy);
    return out == copy;
}

/* Whether it is copied; frees it. */
static bool copies(AVFrame *in, weir_touch touch)
{
    bool copied = is_copied(in, touch);
    av_frame_free(&in);
    return copied;
}

/* ---- what is lent -------------------------------------------------------------------------------------------------- */

TEST_CASE(a_picture_is_lent_if_all_that_may_be_touched_is_in_its_buffer)
{
    enum { STRIDES = 7 + 4 * 64 + GUARD, ROWS = 7 + 3 * 64 + 3 * 10 };
    assert_false(copies(rgb_of(10, 4, STRIDES, 107, 64), WEIR_TOUCH_STRIDES));
    assert_true(copies(rgb_of(10, 4, STRIDES - 1, 107, 64), WEIR_TOUCH_STRIDES));
    assert_false(copies(rgb_of(10, 4, ROWS, 107, 64), WEIR_TOUCH_ROWS));
    assert_true(copies(rgb_of(10, 4, ROWS - 1, 107, 64), WEIR_TOUCH_ROWS));
    assert_false(copies(rgb_of(10, 1, 64 + GUARD, 100, 64), WEIR_TOUCH_STRIDES)); /* its first byte is the buffer's */
    assert_true(copies(rgb_of(10, 4, 1000, 99, 64), WEIR_TOUCH_ROWS));
    assert_true(copies(rgb_of(10, 4, 1000, 1100, 64), WEIR_TOUCH_ROWS)); /* behind its last byte */
}

TEST_CASE(rows_that_go_up_are_lent_if_the_lowest_is_in_the_buffer)
{
    enum { STRIDES = 5 + 4 * 64 + GUARD, ROWS = 5 + 3 * 64 + 3 * 10 };
    assert_false(copies(rgb_of(10, 4, STRIDES, 105 + 3 * 64, -64), WEIR_TOUCH_STRIDES));
    assert_true(copies(rgb_of(10, 4, STRIDES - 1, 105 + 3 * 64, -64), WEIR_TOUCH_STRIDES));
    assert_false(copies(rgb_of(10, 4, ROWS, 105 + 3 * 64, -64), WEIR_TOUCH_ROWS));
    assert_true(copies(rgb_of(10, 4, ROWS - 1, 105 + 3 * 64, -64), WEIR_TOUCH_ROWS));
    assert_false(copies(rgb_of(10, 4, 1000, 100 + 3 * 64, -64), WEIR_TOUCH_ROWS));
    assert_true(copies(rgb_of(10, 4, 1000, 99 + 3 * 64, -64), WEIR_TOUCH_ROWS));
}

/* Four planes: two of them with half as many rows, rounded up. */
static AVFrame *yuva_of(const size_t num_bytes[4])
{
    AVFrame *frame = frame_of(AV_PIX_FMT_YUVA420P, 9, 5);
    for (int i = 0; i < 4; i++) {
        add_buffer(frame, i, (size_t)i * 1000, num_bytes[i]);
        set_plane(frame, i, (size_t)i * 1000, 16);
    }
    return frame;
}

TEST_CASE(each_plane_has_its_own_rows_and_buffer)
{
    enum { WHOLE = 5 * 16 + GUARD, HALF = 3 * 16 + GUARD };
    const size_t whole[] = { WHOLE, HALF, HALF, WHOLE };
    assert_false(copies(yuva_of(whole), WEIR_TOUCH_STRIDES));
    for (int i = 0; i < 4; i++) {
        size_t less[] = { WHOLE, HALF, HALF, WHOLE };
        less[i]--;
        assert_true(copies(yuva_of(less), WEIR_TOUCH_STRIDES));
    }
}

/* A plane that begins where another one's buffer ends is in its own. */
TEST_CASE(a_buffer_ends_before_its_end)
{
    AVFrame *frame = frame_of(AV_PIX_FMT_YUV444P, 8, 2);
    for (int i = 0; i < 3; i++) {
        add_buffer(frame, i, 100 + (size_t)i * 64, 64);
        set_plane(frame, i, 100 + (size_t)i * 64, 16);
    }
    assert_false(copies(frame, WEIR_TOUCH_STRIDES));
}

TEST_CASE(xyz_whose_rows_go_up_is_always_copied)
{
    static const enum AVPixelFormat formats[] = { AV_PIX_FMT_XYZ12LE, AV_PIX_FMT_XYZ12BE, AV_PIX_FMT_RGB48LE };
    for (int i = 0; i < 3; i++)
        for (int goes_up = 0; goes_up < 2; goes_up++) {
            AVFrame *frame = frame_of(formats[i], 4, 2);
            add_buffer(frame, 0, 100, 1000);
            set_plane(frame, 0, 200, goes_up ? -64 : 64);
            assert_int_equal(copies(frame, WEIR_TOUCH_STRIDES), goes_up && i < 2);
        }
}

/* ---- what a copy holds --------------------------------------------------------------------------------------------- */

/* Row y of the copy has the bytes of `memory` from there on, and 0 for those before `first` and from `end` on; so have the
   bytes that are seen behind the row. The bytes behind these have not changed. */
static void expect_row(int y, int at, int row_bytes, int first, int end, uint8_t before)
{
    const uint8_t *row = copy->data[0] + (ptrdiff_t)y * copy->linesize[0];
    for (int i = 0; i < copy->linesize[0]; i++) {
        bool is_seen = i < row_bytes + GUARD, is_there = at + i >= first && at + i < end;
        if (row[i] != (!is_seen ? before : is_there ? byte_at(at + i) : 0))
            fail_msg("row %d, byte %d: %d", y, i, row[i]);
    }
}

/* Nothing is written behind the last row. */
static void expect_end(int num_rows, uint8_t before)
{
    const uint8_t *end = copy->buf[0]->data + copy->buf[0]->size;
    for (const uint8_t *at = copy->data[0] + num_rows * copy->linesize[0]; at < end; at++)
        assert_int_equal(*at, before);
}

/* Copies the picture. is_used: into the existing copy, which is filled with another byte before; otherwise into a new
   one. Returns the byte that the copy had before. */
static uint8_t copy_again(const AVFrame *in, weir_touch touch, bool is_used)
{
    if (!is_used)
        av_frame_free(&copy);
    uint8_t before = is_used ? 0xee : 0;
    if (is_used)
        memset(copy->buf[0]->data, before, copy->buf[0]->size);
    const uint8_t *buffer = is_used ? copy->buf[0]->data : NULL;
    assert_true(is_copied(in, touch));
    assert_true(!is_used || copy->buf[0]->data == buffer);
    return before;
}

TEST_CASE(a_copy_has_the_bytes_behind_a_row_as_far_as_the_buffer_goes)
{
    enum { ROW = 30, END = 100 + 40 + 35 };
    AVFrame *frame = rgb_of(10, 2, END - 100, 100, 40);
    for (int is_used = 0; is_used < 2; is_used++) {
        uint8_t before = copy_again(frame, WEIR_TOUCH_STRIDES, is_used);
        expect_row(0, 100, ROW, 100, END, before);
        expect_row(1, 140, ROW, 100, END, before);
        expect_end(2, before);
    }
    assert_int_equal(copy->width, 10);
    assert_int_equal(copy->height, 2);
    assert_int_equal(copy->format, AV_PIX_FMT_RGB24);
    av_frame_free(&frame);
}

/* As in a field of two that a filter shows: rows before the buffer, also a part of one. */
TEST_CASE(rows_before_the_buffer_are_black)
{
    enum { ROW = 30, END = 100 + 1000 };
    AVFrame *up = rgb_of(10, 4, 1000, 150, -40), *outside = rgb_of(10, 4, 1000, 99, 40);
    for (int is_used = 0; is_used < 2; is_used++) {
        uint8_t before = copy_again(up, WEIR_TOUCH_ROWS, is_used);
        for (int y = 0; y < 4; y++)
            expect_row(y, 150 - 40 * y, ROW, 100, END, before);
        expect_end(4, before);
    }
    for (int is_used = 0; is_used < 2; is_used++) {
        uint8_t before = copy_again(outside, WEIR_TOUCH_ROWS, is_used);
        for (int y = 0; y < 4; y++)
            expect_row(y, 0, ROW, END, END, before);
        expect_end(4, before);
    }
    av_frame_free(&up);
    av_frame_free(&outside);
}

TEST_CASE(of_memory_without_a_buffer_only_the_rows_are_read)
{
    AVFrame *frame = rgb_of(10, 2, 10, 100, 40);
    av_buffer_unref(&frame->buf[0]);
    assert_true(is_copied(frame, WEIR_TOUCH_ROWS));
    expect_row(0, 100, 30, 100, 130, 0);
    expect_row(1, 140, 30, 140, 170, 0);
    expect_end(2, 0);
    av_frame_free(&frame);
}

TEST_CASE(a_copy_of_planes_has_each_at_its_place)
{
    const size_t less[] = { 5 * 16, 3 * 16, 3 * 16, 5 * 16 };
    AVFrame *frame = yuva_of(less);
    assert_true(is_copied(frame, WEIR_TOUCH_STRIDES));
    for (int plane = 0; plane < 4; plane++)
        for (int y = 0; y < (plane == 1 || plane == 2 ? 3 : 5); y++)
            assert_memory_equal(copy->data[plane] + (ptrdiff_t)y * copy->linesize[plane],
                                memory + plane * 1000 + y * 16, plane == 1 || plane == 2 ? 5 : 9);
    av_frame_free(&frame);
}

static AVFrame *palette_of(size_t num_bytes)
{
    AVFrame *frame = frame_of(AV_PIX_FMT_PAL8, 8, 2);
    add_buffer(frame, 0, 100, num_bytes);
    add_buffer(frame, 1, 1000, AVPALETTE_SIZE);
    set_plane(frame, 0, 100, 8);
    frame->data[1] = memory + 1000;
    return frame;
}

TEST_CASE(a_copy_with_a_palette_has_the_palette)
{
    assert_false(copies(palette_of(16 + GUARD), WEIR_TOUCH_STRIDES));
    AVFrame *frame = palette_of(16);
    assert_true(is_copied(frame, WEIR_TOUCH_STRIDES));
    for (int i = 0; i < AVPALETTE_SIZE; i++)
        assert_int_equal(copy->data[1][i], byte_at(1000 + i));
    assert_memory_equal(copy->data[0] + copy->linesize[0], memory + 108, 8);
    av_frame_free(&frame);
}

/* ---- room ---------------------------------------------------------------------------------------------------------- */

static void lend(AVFrame **frame, int format, int width, int height)
{
    weir_error error = { 0 };
    assert_int_equal(weir__lend_room(frame, format, width, height, &error), WEIR_OK);
    assert_int_equal((*frame)->format, format);
    assert_int_equal((*frame)->width, width);
    assert_int_equal((*frame)->height, height);
}

TEST_CASE(room_is_used_again_if_it_is_the_same_and_nobody_holds_it)
{
    static const int others[][3] = { { AV_PIX_FMT_GRAY8, 20, 10 },
                                     { AV_PIX_FMT_RGB24, 21, 10 },
                                     { AV_PIX_FMT_RGB24, 20, 11 } };
    AVFrame *frame = NULL;
    lend(&frame, AV_PIX_FMT_RGB24, 20, 10);
    frame->data[0][0] = 7;
    lend(&frame, AV_PIX_FMT_RGB24, 20, 10);
    assert_int_equal(frame->data[0][0], 7);
    for (int i = 0; i < 3; i++) {
        frame->data[0][0] = 7;
        lend(&frame, others[i][0], others[i][1], others[i][2]);
        assert_int_equal(frame->data[0][0], 0);
    }
    AVFrame *held = av_frame_clone(frame);
    frame->data[0][0] = 7;
    lend(&frame, AV_PIX_FMT_RGB24, 20, 11);
    assert_ptr_not_equal(frame->data[0], held->data[0]);
    assert_int_equal(held->data[0][0], 7);
    av_frame_free(&held);
    av_frame_free(&frame);
}

/* Rows are as long as FFmpeg's own of 64 pixels more or less, and all is 0. */
TEST_CASE(room_is_black_and_its_rows_are_as_long_as_ffmpegs)
{
    static const int formats[] = { AV_PIX_FMT_RGB24, AV_PIX_FMT_YUV420P, AV_PIX_FMT_GBRP10LE };
    for (int i = 0; i < 3; i++)
        for (int width = 1; width < 200; width += 63) {
            AVFrame *frame = NULL, *ffmpegs = frame_of(formats[i], (width + 63) / 64 * 64, 5);
            lend(&frame, formats[i], width, 5);
            assert_int_equal(av_frame_get_buffer(ffmpegs, 0), 0);
            for (int plane = 0; plane < 3; plane++)
                assert_int_equal(frame->linesize[plane], ffmpegs->linesize[plane]);
            for (int j = 0; j < AV_NUM_DATA_POINTERS && frame->buf[j]; j++)
                for (size_t at = 0; at < frame->buf[j]->size; at++)
                    assert_int_equal(frame->buf[j]->data[at], 0);
            av_frame_free(&ffmpegs);
            av_frame_free(&frame);
        }
}

TEST_CASE(room_that_there_cannot_be_is_an_error)
{
    AVFrame *frame = NULL;
    weir_error error = { 0 };
    lend(&frame, AV_PIX_FMT_RGB24, 20, 10);
    assert_int_not_equal(weir__lend_room(&frame, AV_PIX_FMT_RGB24, 1 << 30, 1 << 30, &error), WEIR_OK);
    assert_null(frame);
    assert_non_null(strstr(error.message, "no memory for a picture"));

    const AVFrame *out = NULL;
    AVFrame *huge = rgb_of(1 << 30, 1 << 30, 100, 100, 64);
    error = (weir_error){ 0 };
    int status = weir__lend_source(&copy, huge, WEIR_TOUCH_ROWS, &out, &error);
    assert_int_not_equal(status, WEIR_OK);
    assert_int_equal(error.status, status);
    assert_null(copy);
    av_frame_free(&huge);
}

TEST_CASE(rows_are_written_directly_if_a_stride_is_a_row_of_whole_vectors)
{
    assert_true(weir__can_lend_rows(16, 48));
    assert_true(weir__can_lend_rows(64, 192));
    assert_false(weir__can_lend_rows(16, 47));
    assert_false(weir__can_lend_rows(16, 49));
    assert_false(weir__can_lend_rows(15, 45));
    assert_false(weir__can_lend_rows(17, 51));
    assert_false(weir__can_lend_rows(24, 72));
}

static int forget_copy(void **state)
{
    (void)state;
    av_frame_free(&copy);
    return 0;
}

TEST_MAIN(NULL, forget_copy, NULL, NULL)
