/*
 * The configs that stages share: copied with their strings, checked field by field, given by programs with older and newer
 * headers, and sent to a child of weir_isolated. The tests walk the tables of fields, so a new field is in all of them.
 */
#include "tests/support.h"

#include <math.h>
#include <stddef.h>

#include <weir/stages.h>

#include "stages/audio/audio_config.h"
#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/config/own_config.h"
#include "stages/config/picture_fields.h"
#include "stages/image/image_stage.h"
#include "stages/isolate/isolated_config.h"
#include "stages/reader/sampling_fields.h"
#include "stages/reader/video_config.h"

static const struct_rules *const tables[] = { &weir__input_fields,       &weir__decoder_fields, &weir__picture_fields,
                                              &weir__sampling_fields,    &weir__video_fields,   &weir__image_fields,
                                              &weir__audio_config_fields };

static bool is_number(const field_rule *rule)
{
    return rule->kind == FIELD_UNSIGNED || rule->kind == FIELD_SIGNED || rule->kind == FIELD_ENUM;
}

/* ---- copies --------------------------------------------------------------------------------------------------- */

TEST_CASE(no_config_is_the_defaults)
{
    weir_video_config video = { 0 };
    assert_int_equal(weir_video_decode.config_init(&video, NULL), WEIR_OK);
    assert_int_equal(video.input->io_timeout_ns, 30 * WEIR_SECOND);
    assert_true(video.input->max_pipe_bytes == UINT64_C(4) << 30);
    assert_int_equal(video.decoder->max_pixels, 1 << 26);
    assert_int_equal(video.decoder->max_decoder_bytes, 1 << 30);
    assert_true(video.decoder->max_all_decoder_bytes > 1 << 20);
    assert_int_equal(video.picture->width, 0);
    assert_int_equal(video.input_size, sizeof *video.input);
    assert_int_equal(video.decoder_size, sizeof *video.decoder);
    assert_int_equal(video.picture_size, sizeof *video.picture);
    weir_video_decode.config_free(&video);
}

TEST_CASE(what_is_set_stays_and_more_pixels_than_ffmpeg_takes_are_its_most)
{
    weir_probe_config probe = { WEIR_WITH_INPUT(.io_timeout_ns = -1, .max_pipe_bytes = 7, .io_thread = -1),
                                WEIR_WITH_DECODER(.max_pixels = UINT64_C(1) << 31, .max_decoder_bytes = 5,
                                                  .max_all_decoder_bytes = 6) };
    assert_int_equal(weir_probe.config_init(&probe, NULL), WEIR_OK);
    assert_true(probe.input->io_timeout_ns == -1 && probe.input->max_pipe_bytes == 7 && probe.input->io_thread == -1);
    assert_true(probe.decoder->max_pixels == INT32_MAX);
    assert_true(probe.decoder->max_decoder_bytes == 5 && probe.decoder->max_all_decoder_bytes == 6);
    weir_probe.config_free(&probe);
}

TEST_CASE(a_config_is_copied_with_its_strings)
{
    char file[] = "/dev/null", filter[] = "hflip";
    weir_input_config input = { .ca_file = file };
    weir_picture_config picture = { .width = 3, .filter = filter };
    const weir_input_config *own_input = &input;
    const weir_picture_config *own_picture = &picture;
    size_t input_size = sizeof input, picture_size = sizeof picture;
    assert_int_equal(weir__input_config_own(&own_input, &input_size, NULL), WEIR_OK);
    assert_int_equal(weir__picture_config_own(&own_picture, &picture_size, NULL), WEIR_OK);
    memset(file, 'x', sizeof file - 1);
    memset(filter, 'x', sizeof filter - 1);
    picture.width = 4;
    assert_string_equal(own_input->ca_file, "/dev/null");
    assert_string_equal(own_picture->filter, "hflip");
    assert_int_equal(own_picture->width, 3);
    weir__input_config_free(own_input);
    weir__picture_config_free(own_picture);
}

TEST_CASE(an_empty_filter_is_none)
{
    weir_picture_config picture = { .filter = "" };
    const weir_picture_config *own = &picture;
    size_t size = sizeof picture;
    assert_int_equal(weir__picture_config_own(&own, &size, NULL), WEIR_OK);
    assert_null(own->filter);
    weir__picture_config_free(own);
}

/* ---- other programs -------------------------------------------------------------------------------------------- */

/* On the heap, so that a sanitizer sees each byte that is read beyond its end. */
TEST_CASE(an_older_programs_config_is_not_read_beyond_its_end)
{
    size_t old_size = offsetof(weir_decoder_config, loop_filter);
    weir_decoder_config *old = malloc(old_size);
    assert_non_null(old);
    memset(old, 0, old_size);
    *(uint64_t *)(void *)old = 1234; /* max_pixels */
    weir_image_config image = { .decoder = old, .decoder_size = old_size };
    assert_int_equal(weir_image_decode.config_init(&image, NULL), WEIR_OK);
    free(old);
    assert_int_equal(image.decoder->max_pixels, 1234);
    assert_int_equal(image.decoder->loop_filter, WEIR_LOOP_FILTER_ALL);
    assert_int_equal(image.decoder_size, sizeof(weir_decoder_config));
    weir_image_decode.config_free(&image);
}

TEST_CASE(a_newer_programs_config_is_refused_if_it_sets_more)
{
    weir_error error = { 0 };
    struct {
        weir_picture_config known;
        uint64_t unknown;
    } newer = { .known = { .width = 7 } };
    weir_video_config video = { .picture = &newer.known, .picture_size = sizeof newer };
    assert_int_equal(weir_video_decode.config_init(&video, &error), WEIR_OK);
    assert_int_equal(video.picture->width, 7);
    weir_video_decode.config_free(&video);
    newer.unknown = 1;
    video = (weir_video_config){ .picture = &newer.known, .picture_size = sizeof newer };
    assert_int_equal(weir_video_decode.config_init(&video, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "weir_picture_config"));
}

TEST_CASE(a_config_without_its_size_is_refused)
{
    weir_error error = { 0 };
    const weir_input_config input = { 0 };
    weir_audio_config audio = { .input = &input };
    assert_int_equal(weir_audio_decode.config_init(&audio, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "pass sizeof(weir_input_config)"));
}

/* ---- limits ---------------------------------------------------------------------------------------------------- */

/* What programs may set, apart from the tables. */
static const struct {
    const struct_rules *rules;
    const char *field;
    int64_t lowest, highest;
} limits[] = {
    { &weir__input_fields, "allow", 0, WEIR_ALLOW_PIPES | WEIR_ALLOW_INSECURE },
    { &weir__decoder_fields, "loop_filter", WEIR_LOOP_FILTER_ALL, WEIR_LOOP_FILTER_NONE },
    { &weir__decoder_fields, "fast_decode", 0, 1 },
    { &weir__decoder_fields, "lowres", 0, 3 },
    { &weir__decoder_fields, "threads", 0, 64 },
    { &weir__picture_fields, "width", 0, 32767 },
    { &weir__picture_fields, "height", 0, 32767 },
    { &weir__picture_fields, "longest", 0, 32767 },
    { &weir__picture_fields, "shortest", 0, 32767 },
    { &weir__picture_fields, "resize", WEIR_RESIZE_PAD, WEIR_RESIZE_CROP },
    { &weir__picture_fields, "pixel", WEIR_PIXEL_RGB24, WEIR_PIXEL_YUV420P10 },
    { &weir__picture_fields, "layout", WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW },
    { &weir__picture_fields, "scaler", WEIR_SCALER_DEFAULT, WEIR_SCALER_FAST },
    { &weir__picture_fields, "no_autorotate", 0, 1 },
    { &weir__sampling_fields, "what", WEIR_SAMPLE_ALL, WEIR_SAMPLE_CLIPS },
    { &weir__sampling_fields, "clip_start", WEIR_CLIP_FIRST, WEIR_CLIP_EVEN },
    { &weir__sampling_fields, "clip_short", WEIR_SHORT_LAST, WEIR_SHORT_FAIL },
    { &weir__sampling_fields, "stride_ns", 0, INT64_MAX },
    { &weir__sampling_fields, "start_frame", 0, INT64_MAX },
    { &weir__sampling_fields, "end_frame", 0, INT64_MAX },
    { &weir__sampling_fields, "match", WEIR_MATCH_SHOWN, WEIR_MATCH_EXACT },
    { &weir__sampling_fields, "outside", WEIR_OUTSIDE_NEAR, WEIR_OUTSIDE_FAIL },
    { &weir__sampling_fields, "origin", WEIR_ORIGIN_FIRST, WEIR_ORIGIN_STREAM },
    { &weir__video_fields, "keep_open", 0, 65536 },
    { &weir__video_fields, "damage", WEIR_DAMAGE_TOLERANT, WEIR_DAMAGE_STRICT },
    { &weir__video_fields, "max_duration_ns", 0, INT64_MAX },
    { &weir__audio_config_fields, "sample_rate", 0, 1 << 22 },
    { &weir__audio_config_fields, "channels", 0, 64 },
    { &weir__audio_config_fields, "planar", 0, 1 },
    { &weir__video_fields, "clip_items", 0, 1 },
};

static void find_limits(const struct_rules *rules, const field_rule *rule, int64_t *lowest, uint64_t *highest)
{
    unsigned num_bits = (unsigned)rule->size_bytes * 8;
    bool is_signed = rule->kind == FIELD_SIGNED;
    *highest = UINT64_MAX >> (64 - num_bits) >> is_signed;
    *lowest = is_signed ? -(int64_t)*highest - 1 : 0;
    for (size_t i = 0; i < LENGTH(limits); i++)
        if (limits[i].rules == rules && strcmp(limits[i].field, rule->name) == 0) {
            *lowest = limits[i].lowest;
            *highest = (uint64_t)limits[i].highest;
        }
}

static void expect_checked(const struct_rules *rules, const field_rule *rule, uint64_t number, bool is_good)
{
    char config[512] = { 0 }, taken[512];
    weir_error error = { 0 };
    assert_true(rules->size_bytes <= sizeof config);
    memcpy(config + rule->offset, &number, rule->size_bytes); /* little-endian machines only, as weir is */
    int status = weir__rules_check(rules, config, &error);
    if (status != (is_good ? WEIR_OK : WEIR_EINVAL) || (!is_good && !strstr(error.message, rule->name)))
        fail_msg("%s.%s = %lld: %s", rules->name, rule->name, (long long)number, error.message);
    if ((weir__rules_take(rules, taken, config) == NULL) != is_good)
        fail_msg("%s.%s = %lld from another process", rules->name, rule->name, (long long)number);
}

TEST_CASE(each_number_of_a_config_is_taken_at_its_limits_and_refused_beyond)
{
    for (size_t i = 0; i < LENGTH(tables); i++) {
        for (size_t j = 0; j < tables[i]->num_fields; j++) {
            const field_rule *rule = &tables[i]->fields[j];
            int64_t lowest;
            uint64_t highest;
            if (!is_number(rule))
                continue;
            uint64_t most = UINT64_MAX >> (64 - 8 * rule->size_bytes) >> (rule->kind == FIELD_SIGNED);
            find_limits(tables[i], rule, &lowest, &highest);
            expect_checked(tables[i], rule, (uint64_t)lowest, true);
            expect_checked(tables[i], rule, highest, true);
            if (highest < most)
                expect_checked(tables[i], rule, highest + 1, false);
            if (rule->kind == FIELD_SIGNED && rule->size_bytes == 8 && lowest > INT64_MIN)
                expect_checked(tables[i], rule, (uint64_t)lowest - 1, false);
        }
    }
}

TEST_CASE(a_share_is_from_0_to_1)
{
    static const double bad[] = { -0.001, 1.001, (double)INFINITY, -(double)INFINITY, (double)NAN };
    weir_error error = { 0 };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        weir_video_config video = { .min_share = bad[i] };
        assert_int_equal(weir_video_decode.config_init(&video, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "min_share"));
    }
    for (int i = 0; i <= 2; i++) {
        weir_video_config video = { .min_share = i / 2.0 };
        assert_int_equal(weir_video_decode.config_init(&video, &error), WEIR_OK);
        weir_video_decode.config_free(&video);
    }
}

static void expect_refused(const weir_op *op, void *config, const char *text)
{
    weir_error error = { 0 };
    assert_int_equal(op->config_init(config, &error), WEIR_EINVAL);
    if (!strstr(error.message, text))
        fail_msg("%s, not %s", error.message, text);
}

TEST_CASE(what_has_no_effect_is_refused)
{
    expect_refused(&weir_audio_decode,
                   &(weir_audio_config){ WEIR_WITH_DECODER(.loop_filter = WEIR_LOOP_FILTER_NONE) }, "loop_filter");
    expect_refused(&weir_audio_decode, &(weir_audio_config){ WEIR_WITH_DECODER(.fast_decode = true) }, "fast_decode");
    expect_refused(&weir_audio_decode, &(weir_audio_config){ WEIR_WITH_DECODER(.lowres = 1) }, "lowres");
    expect_refused(&weir_image_decode, &(weir_image_config){ WEIR_WITH_PICTURE(.filter = "hflip") }, "hflip");
    const weir_audio_config sound = { WEIR_WITH_DECODER(.lowres = 1) };
    expect_refused(&weir_video_decode, &(weir_video_config){ .audio = &sound, .audio_size = sizeof sound }, "lowres");
    weir_audio_config limited = { WEIR_WITH_DECODER(.max_decoder_bytes = 1 << 20) };
    assert_int_equal(weir_audio_decode.config_init(&limited, NULL), WEIR_OK);
    weir_audio_decode.config_free(&limited);
}

TEST_CASE(each_stage_checks_the_configs_that_it_is_given)
{
    expect_refused(&weir_video_decode, &(weir_video_config){ WEIR_WITH_INPUT(.allow = 4) }, "WEIR_ALLOW_");
    expect_refused(&weir_image_decode, &(weir_image_config){ WEIR_WITH_INPUT(.allow = 4) }, "WEIR_ALLOW_");
    expect_refused(&weir_audio_decode, &(weir_audio_config){ WEIR_WITH_INPUT(.allow = 4) }, "WEIR_ALLOW_");
    expect_refused(&weir_probe, &(weir_probe_config){ WEIR_WITH_INPUT(.allow = 4) }, "WEIR_ALLOW_");
    expect_refused(&weir_video_decode, &(weir_video_config){ WEIR_WITH_DECODER(.lowres = 4) }, "lowres 4");
    expect_refused(&weir_image_decode, &(weir_image_config){ WEIR_WITH_DECODER(.lowres = 4) }, "lowres 4");
    expect_refused(&weir_audio_decode, &(weir_audio_config){ WEIR_WITH_DECODER(.lowres = 4) }, "lowres 4");
    expect_refused(&weir_probe, &(weir_probe_config){ WEIR_WITH_DECODER(.lowres = 4) }, "lowres 4");
    expect_refused(&weir_video_decode, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 40000) }, "width 40000");
    expect_refused(&weir_image_decode, &(weir_image_config){ WEIR_WITH_PICTURE(.width = 40000) }, "width 40000");
}

TEST_CASE(certificates_are_a_file_that_can_be_read_and_are_checked)
{
    expect_refused(&weir_probe, &(weir_probe_config){ WEIR_WITH_INPUT(.ca_file = "/nowhere/ca.pem") },
                   "/nowhere/ca.pem: No such file");
    expect_refused(&weir_video_decode,
                   &(weir_video_config){ WEIR_WITH_INPUT(.ca_file = "/dev/null", .allow = WEIR_ALLOW_INSECURE) },
                   "cannot be combined with WEIR_ALLOW_INSECURE");
}

/* ---- through the wall ------------------------------------------------------------------------------------------- */

enum { MAX_CONFIG_BYTES = 512, NUM_VALUES = 3 };

/* Different values for all fields, each within its limits; what it points to is never freed. */
static void fill(const struct_rules *rules, char *config, unsigned *number)
{
    static const int64_t values[NUM_VALUES] = { INT64_MIN, -7, INT64_MAX };
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        char *field = config + rule->offset;
        unsigned most = rule->highest > 0 && rule->highest < 100 ? (unsigned)rule->highest : 100;
        uint64_t value = 1 + ++*number % most;
        double real = 1.0 / *number;
        if (is_number(rule))
            memcpy(field, &value, rule->size_bytes);
        else if (rule->kind == FIELD_REAL)
            memcpy(field, &real, sizeof real);
        else if (rule->kind == FIELD_STRUCT)
            fill(rule->inner, field, number);
        else if (rule->kind == FIELD_STRING)
            weir__rule_point(rule, config, rule->name, 0);
        else if (rule->kind == FIELD_CONFIG) {
            char *inner = calloc(1, rule->inner->size_bytes);
            assert_non_null(inner);
            fill(rule->inner, inner, number);
            weir__rule_point(rule, config, inner, rule->inner->size_bytes);
        }
    }
    for (size_t i = 0; i < rules->num_fields; i++) /* over the numbers */
        if (rules->fields[i].kind == FIELD_LIST)
            weir__rule_point(&rules->fields[i], config, values, NUM_VALUES);
}

static void expect_same(const struct_rules *rules, const char *given, const char *got);

static void expect_same_field(const struct_rules *rules, const field_rule *rule, const char *given, const char *got)
{
    const char *to_given = weir__rule_pointer(rule, given + rule->offset);
    const char *to_got = weir__rule_pointer(rule, got + rule->offset);
    bool is_same = true;
    if ((to_given == NULL) != (to_got == NULL))
        is_same = false;
    else if (rule->kind == FIELD_STRUCT)
        expect_same(rule->inner, given + rule->offset, got + rule->offset);
    else if (rule->kind == FIELD_STRING)
        is_same = !to_given || strcmp(to_given, to_got) == 0;
    else if (rule->kind == FIELD_LIST)
        is_same = !to_given || memcmp(to_given, to_got, weir__rule_count(rule, given) * sizeof(int64_t)) == 0;
    else if (rule->kind == FIELD_CONFIG && to_given)
        expect_same(rule->inner, to_given, to_got);
    else if (rule->kind != FIELD_CONFIG && rule->kind != FIELD_OURS)
        is_same = memcmp(given + rule->offset, got + rule->offset, rule->size_bytes) == 0;
    if (!is_same)
        fail_msg("%s.%s is another one", rules->name, rule->name);
}

static void expect_same(const struct_rules *rules, const char *given, const char *got)
{
    for (size_t i = 0; i < rules->num_fields; i++)
        expect_same_field(rules, &rules->fields[i], given, got);
}

/* What the message and fill() have allocated. */
static void free_inner(const struct_rules *rules, const char *config, bool with_lists)
{
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        void *pointer = (void *)(uintptr_t)weir__rule_pointer(rule, config + rule->offset);
        if (rule->kind == FIELD_STRUCT)
            free_inner(rule->inner, config + rule->offset, with_lists);
        if (rule->kind == FIELD_CONFIG && pointer)
            free_inner(rule->inner, pointer, with_lists);
        if (rule->kind == FIELD_CONFIG || (rule->kind == FIELD_LIST && with_lists))
            free(pointer);
    }
}

static const struct own_stage {
    const weir_op *op;
    const struct_rules *rules;
} own_stages[] = { { &weir_video_decode, &weir__video_fields },
                   { &weir_image_decode, &weir__image_fields },
                   { &weir_audio_decode, &weir__audio_config_fields } };

static void expect_passed(const struct own_stage *stage, const char *given)
{
    isolated_message message = { 0 };
    weir__isolated_put_config(&message, stage->op, given);
    char *got = weir__isolated_get_config(&message, stage->op);
    assert_non_null(got);
    assert_true(weir__isolated_is_read(&message));
    expect_same(stage->rules, given, got);
    free_inner(stage->rules, got, true);
    free(got);
    weir__isolated_message_free(&message);
}

TEST_CASE(each_field_of_a_config_arrives_in_a_child_as_it_was_given)
{
    for (size_t i = 0; i < LENGTH(own_stages); i++) {
        _Alignas(max_align_t) char config[MAX_CONFIG_BYTES] = { 0 };
        unsigned number = 0;
        assert_int_equal(own_stages[i].rules->size_bytes, own_stages[i].op->config_size);
        assert_true(own_stages[i].rules->size_bytes <= sizeof config);
        expect_passed(&own_stages[i], config); /* all defaults */
        fill(own_stages[i].rules, config, &number);
        assert_true(number > 10);
        expect_passed(&own_stages[i], config);
        free_inner(own_stages[i].rules, config, false);
    }
}

/* An older program's inner config is filled up before it is sent. */
TEST_CASE(a_shorter_config_arrives_whole)
{
    size_t old_size = offsetof(weir_input_config, ca_file);
    weir_input_config *old = malloc(old_size);
    assert_non_null(old);
    memset(old, 0, old_size);
    *(uint32_t *)(void *)old = WEIR_ALLOW_PIPES;
    const weir_audio_config audio = { .input = old, .input_size = old_size };
    isolated_message message = { 0 };
    weir__isolated_put_config(&message, &weir_audio_decode, &audio);
    weir_audio_config *got = weir__isolated_get_config(&message, &weir_audio_decode);
    assert_non_null(got);
    assert_int_equal(got->input_size, sizeof *got->input);
    assert_int_equal(got->input->allow, WEIR_ALLOW_PIPES);
    assert_ptr_equal(weir__isolated_input(&weir_audio_decode, got), got->input);
    assert_null(got->input->ca_file);
    assert_null(got->decoder);
    free((void *)(uintptr_t)got->input);
    free(got);
    free(old);
    weir__isolated_message_free(&message);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
