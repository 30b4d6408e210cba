/*
 * What passes between weir_isolated and its children: messages that are cut or make no sense, and a child by itself. The
 * child is forked, as the parent speaks to it by hand; it has no sandbox, or is where the kernel refuses one, so that its
 * lines are counted.
 */
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/isolated.h>
#include <weir/stages.h>

#include "stages/isolate/child_process.h"
#include "stages/isolate/isolated_config.h"
#include "stages/isolate/message.h"
#include "stages/isolate/message_rules.h"
#include "stages/isolate/reader_message.h"
#include "stages/isolate/sandbox.h"
#include "stages/reader/video_config.h"
#include "stages/scale/scaler.h"
#include "tests/clips.h"

static const char broken_answer[] = "WEIR_TEST_BROKEN_ANSWER"; /* set for a child program that answers so */

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* The message as it arrives. */
static isolated_message pass(const isolated_message *sent)
{
    isolated_message received;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_true(weir__isolated_send(fds[0], sent));
    assert_true(weir__isolated_receive(fds[1], &(isolated_sender){ ISOLATED_CHILD, NULL, 0 }, &received));
    close(fds[0]);
    close(fds[1]);
    return received;
}

static weir_item pass_item(const weir_item *item)
{
    isolated_message sent = { .head = { .kind = ISOLATED_RESULT } };
    weir_item result;
    assert_true(weir__isolated_put_item(&sent, item));
    isolated_message received = pass(&sent);
    assert_true(weir__isolated_get_item(&received, &result));
    assert_string_equal(result.type, item->type);
    weir__isolated_message_free(&sent);
    weir__isolated_message_free(&received);
    return result;
}

/* A message whose body is that one's first size_bytes, with as much data. */
static isolated_message cut_message(const isolated_message *whole, size_t size_bytes)
{
    isolated_message cut = { .head = whole->head };
    cut.head.body_bytes = 0;
    weir__isolated_put(&cut, whole->body, size_bytes);
    if (whole->data)
        cut.data = weir__shared_data_new(whole->data->size_bytes);
    return cut;
}

static void expect_nonsense(isolated_message *message)
{
    weir_item item;
    assert_false(weir__isolated_get_item(message, &item));
    assert_int_equal(errno, EPROTO);
    assert_null(item.data);
    weir__isolated_message_free(message);
}

/* No cut of the message is taken for an item. */
static void expect_all_parts_are_needed(const weir_item *item)
{
    isolated_message whole = { .head = { .kind = ISOLATED_RESULT } };
    assert_true(weir__isolated_put_item(&whole, item));
    for (size_t size_bytes = 0; size_bytes < whole.head.body_bytes; size_bytes++) {
        isolated_message cut = cut_message(&whole, size_bytes);
        expect_nonsense(&cut);
    }
    weir__isolated_message_free(&whole);
}

static uint8_t samples[2 * 96];
static int64_t times[2] = { 7, 9 };
static int64_t times_ns[2] = { 0, 200000000 };
static uint8_t mask[2] = { 1, 0 };

static weir_frames some_frames(weir_pixel pixel)
{
    weir_frames frames = { .data = samples,
                           .num_frames = 2,
                           .width = 4,
                           .height = 4,
                           .pixel = pixel,
                           .scaler = WEIR_SCALER_EXACT,
                           .pts = times,
                           .times_ns = times_ns,
                           .mask = mask,
                           .time_base_num = 1,
                           .time_base_den = 10,
                           .is_last_chunk = true };
    frames.channels = pixel % 3 == WEIR_PIXEL_RGB24 ? 3 : pixel % 3 == WEIR_PIXEL_GRAY8 ? 1 : 0;
    frames.frame_bytes = weir__scaler_picture_bytes(pixel, 4, 4);
    return frames;
}

static weir_audio some_audio(void)
{
    static float values[6] = { 0.5F, -0.5F, 0.25F, 0, 0, 1 };
    return (weir_audio){ .data = values, .num_samples = 3, .channels = 2, .sample_rate = 8000 };
}

TEST_CASE(items_of_all_types_arrive)
{
    char path[] = "clip.mp4";
    uint8_t packets[] = { 1, 2, 3 };
    size_t size_bytes = 100 << 10; /* goes through shared memory */
    char *long_text = malloc(size_bytes);
    memset(long_text, 'x', size_bytes - 1);
    long_text[size_bytes - 1] = '\0';
    weir_item item = pass_item(&(weir_item){ .type = WEIR_TYPE_TEXT, .data = long_text });
    assert_string_equal(item.data, long_text);
    weir_item_release(&item);
    free(long_text);

    weir_entry entry = { .path = path, .number = 7, .packets = packets, .packets_bytes = sizeof packets };
    item = pass_item(&(weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry });
    assert_string_equal(((weir_entry *)item.data)->path, path);
    assert_int_equal(((weir_entry *)item.data)->number, 7);
    assert_memory_equal(((weir_entry *)item.data)->packets, packets, sizeof packets);
    weir_item_release(&item);

    weir_bytes bytes = { .data = samples, .size_bytes = sizeof samples, .name = path };
    for (int i = 0; i < 2; i++, bytes.size_bytes = 0) {
        item = pass_item(&(weir_item){ .type = WEIR_TYPE_BYTES, .data = &bytes });
        assert_int_equal(((weir_bytes *)item.data)->size_bytes, bytes.size_bytes);
        weir_item_release(&item);
    }
    for (weir_pixel pixel = WEIR_PIXEL_RGB24; pixel <= WEIR_PIXEL_YUV420P10; pixel++) {
        weir_frames frames = some_frames(pixel);
        item = pass_item(&(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames });
        assert_memory_equal(((weir_frames *)item.data)->pts, times, sizeof times);
        assert_memory_equal(((weir_frames *)item.data)->times_ns, times_ns, sizeof times_ns);
        assert_memory_equal(((weir_frames *)item.data)->mask, mask, sizeof mask);
        weir_item_release(&item);
    }
    weir_audio audio = some_audio();
    item = pass_item(&(weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio });
    assert_memory_equal(((weir_audio *)item.data)->data, audio.data, 6 * sizeof(float));
    weir_item_release(&item);
}

/* What a reader in a child says of a file with two frames. */
static isolated_reader_facts some_facts(weir_frame_times *two)
{
    static int64_t starts_ns[] = { 0, 5 };
    static uint8_t is_key[] = { 1, 0 };
    *two = (weir_frame_times){ .num_frames = 2, .times_ns = starts_ns, .is_key = is_key, .end_ns = 10 };
    return (isolated_reader_facts){
        .answer = { .info = { .codec = "h264",
                              .sample_aspect_den = 1,
                              .average_rate_den = 1,
                              .real_rate_den = 1,
                              .time_base_num = 1,
                              .time_base_den = 25,
                              .num_frames = 2 },
                    .times = two },
    };
}

TEST_CASE(facts_of_a_reader_arrive_as_they_were_sent)
{
    weir_frame_times two;
    isolated_reader_facts facts = some_facts(&two);
    weir_item item = pass_item(&(weir_item){ .type = ISOLATED_TYPE_FACTS, .data = &facts });
    const isolated_reader_facts *got = item.data;
    assert_string_equal(got->answer.info.codec, "h264");
    assert_int_equal(got->answer.info.num_frames, 2);
    assert_int_equal(got->answer.times->times_ns[1], 5);
    assert_int_equal(got->answer.times->is_key[0], 1);
    assert_int_equal(got->answer.times->end_ns, 10);
    assert_false(got->is_end);
    weir_item_release(&item);
}

TEST_CASE(times_that_fall_and_keys_that_are_no_truth_values_are_refused)
{
    weir_frame_times two;
    isolated_reader_facts facts = some_facts(&two);
    const weir_item item = { .type = ISOLATED_TYPE_FACTS, .data = &facts };
    for (int i = 0; i < 2; i++) {
        isolated_message message = { .head = { .kind = ISOLATED_RESULT } };
        weir_item result;
        two.times_ns[1] = i ? 5 : -1;
        two.is_key[1] = i ? 2 : 0;
        assert_true(weir__isolated_put_item(&message, &item));
        isolated_message received = pass(&message);
        assert_false(weir__isolated_get_item(&received, &result));
        assert_string_equal(received.complaint, i ? "times.is_key" : "times.times_ns");
        weir__isolated_message_free(&message);
        weir__isolated_message_free(&received);
        two.times_ns[1] = 5;
        two.is_key[1] = 0;
    }
}

TEST_CASE(an_item_of_another_type_is_not_sent)
{
    isolated_message message = { 0 };
    char text[] = "x";
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .type = "other", .data = text }));
    assert_int_equal(errno, ENOTSUP);
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .data = text }));
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .type = WEIR_TYPE_TEXT }));
    weir__isolated_message_free(&message);
}

TEST_CASE(a_cut_item_makes_no_sense)
{
    char path[] = "clip.mp4";
    uint8_t packets[] = { 1, 2, 3 };
    weir_entry entry = { .path = path, .packets = packets, .packets_bytes = sizeof packets };
    weir_bytes bytes = { .data = samples, .size_bytes = sizeof samples, .name = path };
    weir_frames frames = some_frames(WEIR_PIXEL_GRAY8);
    weir_audio audio = some_audio();
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_TEXT, .data = path });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_BYTES, .data = &bytes });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio });

    weir_frame_times two;
    isolated_reader_facts facts = some_facts(&two);
    const int64_t indices[] = { 3, 1 };
    const weir_sampling list = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 2 };
    const weir_picture_config picture = { .width = 4, .filter = "null" };
    isolated_reader_request request = {
        .call = { .verb = WEIR_READER_FRAMES, .sampling = &list, .picture = &picture, .epoch = 1, .number = 2 },
        .has_source = true,
        .bytes = &bytes,
        .packets = packets,
        .packets_bytes = sizeof packets
    };
    expect_all_parts_are_needed(&(weir_item){ .type = ISOLATED_TYPE_FACTS, .data = &facts });
    expect_all_parts_are_needed(&(weir_item){ .type = ISOLATED_TYPE_REQUEST, .data = &request });
}

/* -- each number at its limits, and one beyond */

/* A field of a struct behind the type of the item: from `lowest` to `highest` it is accepted, with all else as in the
   test's sample. That is why sizes and counts that must agree with the data have one value only. No number is left
   out: see below. Held constant: one sample of each type, in one block of just its size. */
typedef struct number_limit {
    const struct_rules *rules;
    const char *field;
    int64_t lowest;
    uint64_t highest;
} number_limit;

static const uint64_t max_part_ns = INT64_MAX / 8;

static const number_limit limits[] = {
    { &weir__frames_rules, "num_frames", 2, 2 },
    { &weir__frames_rules, "height", 4, 4 },
    { &weir__frames_rules, "width", 4, 4 },
    { &weir__frames_rules, "channels", 3, 3 },
    { &weir__frames_rules, "pixel", WEIR_PIXEL_RGB24, WEIR_PIXEL_RGB24 },
    { &weir__frames_rules, "layout", WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW },
    { &weir__frames_rules, "frame_bytes", 48, 48 },
    { &weir__frames_rules, "scaler", WEIR_SCALER_EXACT, WEIR_SCALER_FAST },
    { &weir__frames_rules, "matrix", 0, 255 },
    { &weir__frames_rules, "full_range", 0, 1 },
    { &weir__frames_rules, "time_base_num", 1, INT32_MAX },
    { &weir__frames_rules, "time_base_den", 1, INT32_MAX },
    { &weir__frames_rules, "stream", 0, INT32_MAX },
    { &weir__frames_rules, "stream_index", 0, INT32_MAX },
    { &weir__frames_rules, "source_width", 0, INT32_MAX },
    { &weir__frames_rules, "source_height", 0, INT32_MAX },
    { &weir__frames_rules, "num_errors", 0, INT64_MAX },
    { &weir__frames_rules, "num_corrupt_frames", 0, 2 },
    { &weir__frames_rules, "num_clips", 0, 2 },
    { &weir__frames_rules, "num_missing_frames", 0, INT64_MAX },
    { &weir__frames_rules, "first_frame", 0, INT64_MAX },
    { &weir__frames_rules, "is_last_chunk", 0, 1 },
    { &weir__audio_rules, "num_samples", 0, 3 },
    { &weir__audio_rules, "channels", 1, 2 },
    { &weir__audio_rules, "sample_rate", 1, INT32_MAX },
    { &weir__audio_rules, "planar", 0, 1 },
    { &weir__audio_rules, "start_ns", INT64_MIN, INT64_MAX },
    { &weir__audio_rules, "stream", 0, INT32_MAX },
    { &weir__audio_rules, "stream_index", 0, INT32_MAX },
    { &weir__audio_rules, "source_sample_rate", 0, INT32_MAX },
    { &weir__audio_rules, "source_channels", 0, INT32_MAX },
    { &weir__audio_rules, "num_errors", 0, INT64_MAX },
    { &weir__entry_rules, "number", 0, UINT64_MAX },
    { &weir__entry_rules, "epoch", 0, UINT64_MAX },
    { &weir__entry_rules, "class_id", INT64_MIN, INT64_MAX },
    { &weir__entry_rules, "size_bytes", INT64_MIN, INT64_MAX },
    { &weir__entry_rules, "mtime_ns", INT64_MIN, INT64_MAX },
    { &weir__entry_rules, "packets_bytes", 5, 5 },
    { &weir__entry_rules, "archive_length", 0, UINT64_MAX },
    { &weir__entry_rules, "offset", INT64_MIN, INT64_MAX },
    { &weir__entry_rules, "stands_in", 0, 1 },
    { &weir__window_rules, "start_ns", INT64_MIN, INT64_MAX },
    { &weir__window_rules, "end_ns", INT64_MIN, INT64_MAX },
    { &weir__window_rules, "start_frame", 0, UINT64_MAX },
    { &weir__window_rules, "end_frame", 0, UINT64_MAX },
    { &weir__entry_rules, "occurrence", 0, UINT64_MAX },
    { &weir__info_rules, "width", 0, INT32_MAX },
    { &weir__info_rules, "height", 0, INT32_MAX },
    { &weir__info_rules, "rotation", 0, 359 },
    { &weir__info_rules, "is_mirrored", 0, 1 },
    { &weir__info_rules, "sample_aspect_num", 0, INT32_MAX },
    { &weir__info_rules, "sample_aspect_den", 1, INT32_MAX },
    { &weir__info_rules, "bit_depth", 0, 64 },
    { &weir__info_rules, "primaries", 0, 255 },
    { &weir__info_rules, "transfer", 0, 255 },
    { &weir__info_rules, "matrix", 0, 255 },
    { &weir__info_rules, "full_range", 0, 1 },
    { &weir__info_rules, "average_rate_num", 0, INT32_MAX },
    { &weir__info_rules, "average_rate_den", 1, INT32_MAX },
    { &weir__info_rules, "real_rate_num", 0, INT32_MAX },
    { &weir__info_rules, "real_rate_den", 1, INT32_MAX },
    { &weir__info_rules, "time_base_num", 1, INT32_MAX },
    { &weir__info_rules, "time_base_den", 1, INT32_MAX },
    { &weir__info_rules, "is_exact", 0, 1 },
    { &weir__info_rules, "num_frames", 0, INT64_MAX },
    { &weir__info_rules, "num_keyframes", 0, INT64_MAX },
    { &weir__info_rules, "duration_ns", 0, INT64_MAX },
    { &weir__info_rules, "start_ns", INT64_MIN, INT64_MAX },
    { &weir__info_rules, "stream", 0, INT32_MAX },
    { &weir__info_rules, "stream_index", 0, INT32_MAX },
    { &weir__info_rules, "has_audio", 0, 1 },
    { &weir__frames_size_rules, "num_frames", 0, INT64_MAX },
    { &weir__frames_size_rules, "num_clips", 0, UINT32_MAX },
    { &weir__frames_size_rules, "width", 0, INT32_MAX },
    { &weir__frames_size_rules, "height", 0, INT32_MAX },
    { &weir__frames_size_rules, "channels", 0, 3 },
    { &weir__frames_size_rules, "frame_bytes", 0, INT64_MAX },
    { &weir__frames_size_rules, "num_bytes", 0, INT64_MAX },
    { &weir__times_rules, "num_frames", 2, 2 },
    { &weir__times_rules, "end_ns", 5, INT64_MAX }, /* not before the last frame */
    /* of frames and of audio */
    { &weir__cost_rules, "width", 0, INT32_MAX },
    { &weir__cost_rules, "height", 0, INT32_MAX },
    { &weir__cost_rules, "num_frames", 0, INT64_MAX },
    { &weir__cost_rules, "size_bytes", 0, INT64_MAX },
    { &weir__cost_rules, "open_ns", 0, max_part_ns },
    { &weir__cost_rules, "demux_ns", 0, max_part_ns },
    { &weir__cost_rules, "decode_ns", 0, max_part_ns },
    { &weir__cost_rules, "scale_ns", 0, max_part_ns },
    { &weir__cost_rules, "num_missing", 0, INT64_MAX },
    { &weir__cost_rules, "num_errors", 0, INT64_MAX },
};

/* What a consumer does with an item. The sanitizers look on. */
static void use_item(const weir_item *item)
{
    const weir_decode_cost *cost = weir__isolated_cost_of(item);
    volatile double sum = 0;
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0) {
        const weir_frames *frames = item->data;
        int32_t unit = frames->time_base_num / frames->time_base_den; /* of integers: 0 would end the program */
        for (uint32_t i = 0; i < frames->num_frames; i++)
            sum = sum + (double)frames->pts[i] * unit;
        for (size_t i = 0; i < frames->num_frames * frames->frame_bytes; i++)
            sum = sum + frames->data[i];
    } else if (strcmp(item->type, WEIR_TYPE_AUDIO) == 0) {
        const weir_audio *audio = item->data;
        uint64_t seconds = audio->num_samples / audio->sample_rate;
        sum = sum + (double)seconds;
        for (size_t i = 0; i < audio->num_samples * audio->channels; i++)
            sum = sum + (double)audio->data[i];
    }
    if (cost) {
        int64_t end_ns = weir_clock_ns() + cost->open_ns + cost->demux_ns + cost->decode_ns + cost->scale_ns;
        assert_true(end_ns > 0 && (int64_t)(cost->num_errors | cost->num_missing) >= 0);
    }
}

/* The item's message, with these bytes at `offset` of the struct behind the type, passes through a socket. */
static bool is_taken(const weir_item *item, size_t offset, const void *bytes, size_t num_bytes,
                     const char **complaint)
{
    static isolated_message received;
    isolated_message sent = { .head = { .kind = ISOLATED_RESULT } };
    weir_item result;
    assert_true(weir__isolated_put_item(&sent, item));
    memcpy(sent.body + sizeof(uint32_t) + offset, bytes, num_bytes);
    received = pass(&sent);
    bool is_good = weir__isolated_get_item(&received, &result);
    assert_true(is_good || (errno == EPROTO && !result.data));
    if (is_good)
        use_item(&result);
    weir_item_release(&result);
    weir__isolated_message_free(&sent);
    static char text[sizeof received.complaint];
    memcpy(text, received.complaint, sizeof text);
    *complaint = text;
    weir__isolated_message_free(&received);
    return is_good;
}

static void expect_taken(const weir_item *item, const field_rule *rule, size_t at, uint64_t number, bool expected)
{
    const char *complaint;
    /* little-endian machines only, as weir is */
    if (is_taken(item, at + rule->offset, &number, rule->size_bytes, &complaint) != expected)
        fail_msg("%s: %s = %#llx is %s", item->type, rule->name, (unsigned long long)number,
                 expected ? complaint : "taken");
    assert_true(expected || complaint[0]);
}

static const number_limit *find_limit(const struct_rules *rules, const field_rule *rule)
{
    for (size_t i = 0; i < LENGTH(limits); i++)
        if (limits[i].rules == rules && strcmp(limits[i].field, rule->name) == 0)
            return &limits[i];
    fail_msg("the test knows no limits of %s.%s", rules->name, rule->name);
    return NULL;
}

/* The lowest and the highest number, and those beyond that the field can hold. */
static void expect_limits(const weir_item *item, const struct_rules *rules, const field_rule *rule, size_t at)
{
    const number_limit *limit = find_limit(rules, rule);
    unsigned num_bits = (unsigned)rule->size_bytes * 8;
    bool is_signed = rule->kind == FIELD_SIGNED;
    uint64_t most = UINT64_MAX >> (64 - num_bits) >> is_signed;
    int64_t least = is_signed ? -(int64_t)most - 1 : 0;
    expect_taken(item, rule, at, (uint64_t)limit->lowest, true);
    expect_taken(item, rule, at, limit->highest, true);
    if (limit->lowest > least)
        expect_taken(item, rule, at, (uint64_t)limit->lowest - 1, false);
    if (limit->highest < most) {
        expect_taken(item, rule, at, limit->highest + 1, false);
        expect_taken(item, rule, at, most, false);
    }
    if (is_signed && limit->lowest > least)
        expect_taken(item, rule, at, (uint64_t)least, false);
}

/* It has an end, and nothing that moves a cursor. */
static void expect_text_is_checked(const weir_item *item, const field_rule *rule, size_t at)
{
    static const char *const others[] = { "\x1b]0;x", "a\nb", "\x7f", "\xc3\xa4", "\x01" };
    char text[64] = "";
    const char *complaint;
    assert_true(rule->size_bytes <= sizeof text);
    memset(text, '~', rule->size_bytes);
    assert_false(is_taken(item, at + rule->offset, text, rule->size_bytes, &complaint));
    text[rule->size_bytes - 1] = '\0';
    text[0] = ' ';
    assert_true(is_taken(item, at + rule->offset, text, rule->size_bytes, &complaint));
    for (size_t i = 0; i < LENGTH(others); i++)
        assert_false(is_taken(item, at + rule->offset, others[i], strlen(others[i]) + 1, &complaint));
}

static void expect_all_limits(const weir_item *item, const struct_rules *rules, size_t at)
{
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        switch (rule->kind) {
        case FIELD_UNSIGNED:
        case FIELD_SIGNED: expect_limits(item, rules, rule, at); break;
        case FIELD_TEXT: expect_text_is_checked(item, rule, at); break;
        case FIELD_STRUCT: expect_all_limits(item, rule->inner, at + rule->offset); break;
        case FIELD_OURS: break;
        case FIELD_ENUM:
        case FIELD_REAL:
        case FIELD_STRING:
        case FIELD_LIST:
        case FIELD_CONFIG: fail_msg("%s: only configs have such fields", rule->name);
        }
    }
}

TEST_CASE(each_number_of_an_item_is_taken_at_its_limits_and_refused_beyond)
{
    weir_frames frames = some_frames(WEIR_PIXEL_RGB24);
    expect_all_limits(&(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames }, &weir__frames_rules, 0);
    weir_audio audio = some_audio();
    expect_all_limits(&(weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio }, &weir__audio_rules, 0);
    weir_entry entry = { .path = (char[]){ "x" }, .packets = samples, .packets_bytes = 5 };
    expect_all_limits(&(weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry }, &weir__entry_rules, 0);
    weir_frame_times two;
    isolated_reader_facts facts = some_facts(&two);
    const weir_item item = { .type = ISOLATED_TYPE_FACTS, .data = &facts };
    expect_all_limits(&item, &weir__info_rules, 0);
    expect_all_limits(&item, &weir__frames_size_rules, sizeof(weir_video_info));
    expect_all_limits(&item, &weir__times_rules, sizeof(weir_video_info) + sizeof(weir_frames_size) + 2);
}

TEST_CASE(no_pointer_and_no_byte_between_fields_is_sent)
{
    weir_frames frames;
    memset(&frames, 0xa5, sizeof frames);
    weir_frames given = some_frames(WEIR_PIXEL_RGB24);
    memcpy(&frames, &given, sizeof frames);
    frames.entry = (void *)samples;
    isolated_message message = { 0 };
    weir__isolated_put_struct(&message, &weir__frames_rules, &frames);
    for (size_t i = 0; i < weir__frames_rules.num_fields; i++) {
        const field_rule *rule = &weir__frames_rules.fields[i];
        if (rule->kind != FIELD_OURS)
            memset(message.body + rule->offset, 0, rule->size_bytes);
    }
    for (size_t i = 0; i < message.head.body_bytes; i++)
        if (message.body[i])
            fail_msg("byte %zu is sent", i);
    weir__isolated_message_free(&message);
}

TEST_CASE(an_item_with_a_wrong_type_text_or_end_is_refused)
{
    isolated_message message = { 0 };
    weir__isolated_put(&message, &(uint32_t){ 99 }, sizeof(uint32_t)); /* no type has that number */
    expect_nonsense(&message);
    weir__isolated_put(&message, &(uint32_t){ 0 }, sizeof(uint32_t));
    weir__isolated_put(&message, &(uint32_t){ 0 }, sizeof(uint32_t)); /* a text without its end */
    expect_nonsense(&message);
    weir__isolated_put(&message, &(uint32_t){ 0 }, sizeof(uint32_t));
    weir__isolated_put(&message, &(uint32_t){ 4 }, sizeof(uint32_t));
    weir__isolated_put(&message, "a\0b", 4); /* a text with two ends */
    expect_nonsense(&message);
    char text[] = "x";
    assert_true(weir__isolated_put_item(&message, &(weir_item){ .type = WEIR_TYPE_TEXT, .data = text }));
    weir__isolated_put(&message, text, 1); /* more than the item */
    expect_nonsense(&message);
}

/* Sends the head, a body, and as many times the descriptor, as it is. */
static void send_raw_file(int fd, const isolated_head *head, size_t head_bytes, size_t body_bytes, size_t num_fds,
                          int file)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } control = { 0 };
    char body[64] = { 0 };
    isolated_head copy = *head;
    int fds[4] = { file, file, file, file };
    struct iovec parts[] = { { &copy, head_bytes }, { body, body_bytes } };
    struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
    assert_true((file >= 0 || num_fds == 0) && body_bytes <= sizeof body && num_fds <= 4);
    if (num_fds > 0) {
        packet.msg_control = &control;
        packet.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, num_fds * sizeof(int));
    }
    assert_true(sendmsg(fd, &packet, MSG_NOSIGNAL) >= 0);
}

/* The same with an empty file. */
static void send_raw(int fd, const isolated_head *head, size_t head_bytes, size_t body_bytes, size_t num_fds)
{
    int file = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    send_raw_file(fd, head, head_bytes, body_bytes, num_fds, file);
    close(file);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST_CASE(packets_that_make_no_sense_are_refused_and_leave_no_descriptor)
{
    static const struct {
        isolated_head head;
        size_t head_bytes, body_bytes, num_fds;
    } cases[] = {
        { { .kind = ISOLATED_RESULT }, 3, 0, 0 }, /* shorter than its head */
        { { .kind = ISOLATED_RESULT, .has_file = 2 }, sizeof(isolated_head), 0, 2 },
        { { .kind = ISOLATED_RESULT, .has_file = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .has_file = 1 }, sizeof(isolated_head), 0, 1 }, /* a child sends no file */
        { { .kind = ISOLATED_REQUEST, .has_file = 1 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_CONTINUE }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_CONFIG }, sizeof(isolated_head), 0, 0 },
        { { .kind = 0 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_LOG + 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = UINT32_MAX }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_LOG, .status = -1 }, sizeof(isolated_head), 0, 0 }, /* levels */
        { { .kind = ISOLATED_LOG, .status = WEIR_LOG_DEBUG + 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .status = -1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .status = WEIR_SKIP }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .status = WEIR_MORE + 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_FAILURE, .status = 0 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_SKIPPED, .status = -1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_SKIPPED, .body_bytes = 4 }, sizeof(isolated_head), 4, 0 },
        { { .kind = ISOLATED_LOG, .body_bytes = (32 << 10) + 1 }, sizeof(isolated_head), 0, 1 }, /* lines only */
        { { .kind = ISOLATED_READY, .body_bytes = (32 << 10) + 1 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .body_bytes = (1 << 30) + 1 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .library_code = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .source = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .seq = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .epoch = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .max_memory_bytes = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .sandbox = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_LOG, .data_number = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_FAILURE, .status = -1, .data_bytes = 1 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_number = WEIR_SHARED_BLOCKS }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .data_number = -2 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT, .is_data_known = 2 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT }, sizeof(isolated_head), 0, 1 }, /* nobody asked for it */
        { { .kind = ISOLATED_RESULT }, sizeof(isolated_head), 0, 4 }, /* more than there is room for */
        { { .kind = ISOLATED_RESULT, .body_bytes = 5 }, sizeof(isolated_head), 4, 0 },
        { { .kind = ISOLATED_RESULT, .body_bytes = 1 << 20 }, sizeof(isolated_head), 0, 1 }, /* not in the file */
        { { .kind = ISOLATED_RESULT, .body_bytes = UINT64_MAX }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .data_room = 9 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .data_room = UINT64_MAX }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .is_data_known = 1 },
          sizeof(isolated_head),
          0,
          0 }, /* it is not */
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .is_data_known = 1, .data_number = 8 },
          sizeof(isolated_head),
          0,
          0 },
    };
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS] = { NULL };
    isolated_message message;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    int before = count_descriptors();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        send_raw(fds[0], &cases[i].head, cases[i].head_bytes, cases[i].body_bytes, cases[i].num_fds);
        if (weir__isolated_receive(fds[1], &(isolated_sender){ ISOLATED_CHILD, blocks, 0 }, &message) ||
            errno != EPROTO)
            fail_msg("case %zu: %s", i, strerror(errno));
        weir__isolated_message_free(&message);
        if (count_descriptors() != before)
            fail_msg("case %zu: a descriptor is left", i);
    }
    close(fds[0]);
    assert_false(weir__isolated_receive(fds[1], &(isolated_sender){ ISOLATED_CHILD, blocks, 0 }, &message));
    assert_int_equal(errno, EPIPE);
    close(fds[1]);
}

/* A child and its parent, with a block of that many bytes. */
typedef struct block_pair {
    int fds[2];
    weir_shared_data *sent; /* the child's */
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS];
} block_pair;

static block_pair block_pair_of(size_t num_bytes)
{
    block_pair pair = { .sent = weir__shared_data_new(num_bytes) };
    assert_non_null(pair.sent);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.fds), 0);
    return pair;
}

static void block_pair_free(block_pair *pair)
{
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++)
        weir__shared_data_drop(pair->blocks[i]);
    weir__shared_data_release(pair->sent);
    close(pair->fds[0]);
    close(pair->fds[1]);
}

/* Is it received, with data of data_bytes, in a block of which the child says that it has room_bytes? */
static bool receives_block(block_pair *pair, int32_t number, uint64_t data_bytes, uint64_t room_bytes, bool is_known,
                           isolated_message *message)
{
    isolated_head head = { .kind = ISOLATED_RESULT,
                           .data_bytes = data_bytes,
                           .data_room = room_bytes,
                           .data_number = number,
                           .is_data_known = is_known };
    send_raw_file(pair->fds[0], &head, sizeof head, 0, is_known ? 0 : 1, pair->sent->fd);
    if (weir__isolated_receive(pair->fds[1], &(isolated_sender){ ISOLATED_CHILD, pair->blocks, 0 }, message)) {
        memset(message->data->data, 7, (size_t)data_bytes); /* to the last byte */
        return true;
    }
    assert_int_equal(errno, EPROTO);
    assert_non_null(strstr(message->complaint, "data"));
    return false;
}

/* Blocks that are sent once, that are reused, and that were sent before. 4096 - 1: the last byte is before the end of a
   page, so that only the figure can refuse the next one. */
TEST_CASE(a_child_claims_no_more_bytes_than_its_block_has)
{
    static const struct {
        uint64_t data_bytes, room_bytes;
        bool is_good;
    } claims[] = {
        { 1, 4095, true },           { 4095, 4095, true },     { 4096, 4095, false },
        { 4095, 4096, false },       { 4096, 4096, false },    { UINT32_MAX, 4095, false },
        { INT64_MAX, 4095, false },  { 1, INT64_MAX, false },  { INT64_MAX, INT64_MAX, false },
        { UINT64_MAX, 4095, false }, { 1, UINT64_MAX, false },
    };
    for (int32_t number = -1; number < WEIR_SHARED_BLOCKS; number += WEIR_SHARED_BLOCKS) {
        for (size_t i = 0; i < LENGTH(claims); i++) {
            isolated_message message;
            block_pair pair = block_pair_of(4095);
            if (receives_block(&pair, number, claims[i].data_bytes, claims[i].room_bytes, false, &message) !=
                claims[i].is_good)
                fail_msg("number %d, claim %zu", (int)number, i);
            weir__isolated_message_free(&message);
            block_pair_free(&pair);
        }
    }
    for (size_t i = 0; i < LENGTH(claims); i++) {
        isolated_message message;
        block_pair pair = block_pair_of(4095);
        assert_true(receives_block(&pair, 3, 7, 4095, false, &message));
        weir__isolated_message_free(&message);
        if (receives_block(&pair, 3, claims[i].data_bytes, claims[i].room_bytes, true, &message) != claims[i].is_good)
            fail_msg("a known block, claim %zu", i);
        weir__isolated_message_free(&message);
        block_pair_free(&pair);
    }
}

/* What a result may have besides its data is known where the operation is ours: the program copies no more. */
TEST_CASE(a_body_over_the_limit_is_not_copied)
{
    static const isolated_head head = { .kind = ISOLATED_RESULT, .body_bytes = 64 << 20 };
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 0), .max_frames = 1000 };
    isolated_shape shape = weir__isolated_shape_of(&weir_video_decode, &video);
    uint64_t max_bytes = weir__isolated_max_body(&shape);
    assert_int_equal(max_bytes, 4096 + 1000 * 17); /* pts, times_ns and mask */
    assert_int_equal(weir__isolated_max_body(&(isolated_shape){ 0 }), 0);
    const uint64_t limits_of_body[] = { max_bytes, (64 << 20) - 1, 64 << 20, 0 };
    for (size_t i = 0; i < LENGTH(limits_of_body); i++) {
        isolated_message message;
        block_pair pair = block_pair_of(64 << 20);
        isolated_sender child = { ISOLATED_CHILD, NULL, limits_of_body[i] };
        send_raw_file(pair.fds[0], &head, sizeof head, 0, 1, pair.sent->fd);
        assert_int_equal(weir__isolated_receive(pair.fds[1], &child, &message), i >= 2);
        assert_true(i >= 2 ? message.body != NULL
                           : !message.body && strcmp(message.complaint, "head.body_bytes") == 0);
        weir__isolated_message_free(&message);
        block_pair_free(&pair);
    }
}

TEST_CASE(a_block_that_is_in_use_is_not_sent_again)
{
    isolated_message first, second;
    block_pair pair = block_pair_of(96);
    assert_true(receives_block(&pair, 0, 96, 96, false, &first));
    assert_false(receives_block(&pair, 0, 1, 96, true, &second));
    assert_int_equal(first.data->size_bytes, 96);
    weir__isolated_message_free(&second);
    weir__isolated_message_free(&first);
    assert_true(receives_block(&pair, 0, 1, 96, true, &second));
    assert_int_equal(second.data->size_bytes, 1);
    weir__isolated_message_free(&second);
    block_pair_free(&pair);
}

TEST_CASE(what_is_too_long_is_not_sent)
{
    isolated_message message = { 0 };
    char byte = 0;
    weir__isolated_put(&message, &byte, SIZE_MAX);
    assert_true(message.is_bad);
    assert_false(weir__isolated_send(-1, &message));
    assert_int_equal(errno, ENOMEM);
    weir__isolated_message_free(&message);
}

/* ---- configs -------------------------------------------------------------------------------------------------- */

/* What a cut config leaves is not freed: its process ends. So this is done in one of its own. */
static void in_another_process(void (*run)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void cut_configs(void)
{
    static const int64_t indices[] = { 3, 7 };
    const weir_video_config video = {
        WEIR_WITH_PICTURE(.filter = "hflip"), WEIR_WITH_INPUT(.ca_file = "/etc/own.pem"),
        .sampling = { .indices = indices, .num_indices = 2, .times_ns = indices, .num_times = 2 }
    };
    isolated_message whole = { 0 };
    weir__isolated_put_config(&whole, &weir_video_decode, &video);
    for (size_t size_bytes = 0; size_bytes <= whole.head.body_bytes; size_bytes++) {
        isolated_message cut = cut_message(&whole, size_bytes);
        const weir_video_config *got = weir__isolated_get_config(&cut, &weir_video_decode);
        REQUIRE((got != NULL) == (size_bytes == whole.head.body_bytes));
        REQUIRE(cut.is_bad == !got);
        REQUIRE(!got ||
                (strcmp(got->picture->filter, "hflip") == 0 && strcmp(got->input->ca_file, "/etc/own.pem") == 0 &&
                 got->sampling.indices[1] == 7 && got->sampling.times_ns[0] == 3));
    }
    isolated_message other = { 0 };
    weir__isolated_put_config(&other, &weir_image_decode,
                              &(weir_image_config){ WEIR_WITH_INPUT(.ca_file = "own.pem") });
    REQUIRE(!weir__isolated_get_config(&other, &weir_video_decode) && other.is_bad);
    isolated_message long_list = { 0 };
    const bool no = false, yes = true;
    weir_video_config many = video;
    many.sampling.num_indices = SIZE_MAX;
    weir__isolated_put(&long_list, &weir_video_decode.config_size, sizeof(size_t));
    weir__isolated_put_struct(&long_list, &weir__video_fields, &many);
    for (int i = 0; i < 3; i++)
        weir__isolated_put(&long_list, &no, sizeof no); /* no input, no decoder, no picture */
    weir__isolated_put(&long_list, &yes, sizeof yes);
    weir__isolated_put(&long_list, indices, sizeof indices);
    REQUIRE(!weir__isolated_get_config(&long_list, &weir_video_decode) && long_list.is_bad);
}

TEST_CASE(a_config_arrives_whole_or_not_at_all)
{
    in_another_process(cut_configs);
}

static void take_wrong_configs(void)
{
    const weir_video_config configs[] = { { WEIR_WITH_PICTURE(.pixel = (weir_pixel)6) },
                                          { WEIR_WITH_DECODER(.lowres = 4) },
                                          { WEIR_WITH_INPUT(.allow = 4) },
                                          { .damage = (weir_damage)2 },
                                          { .sampling = { .what = (weir_sample)99 } } };
    for (size_t i = 0; i < LENGTH(configs); i++) {
        isolated_message message = { 0 };
        weir__isolated_put_config(&message, &weir_video_decode, &configs[i]);
        REQUIRE(!weir__isolated_get_config(&message, &weir_video_decode) && message.is_bad);
    }
}

TEST_CASE(a_config_with_a_number_beyond_its_limits_is_not_taken)
{
    in_another_process(take_wrong_configs);
}

/* ---- a child -------------------------------------------------------------------------------------------------- */

static int run_reported(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const char *text = in->data;
    char answer[64];
    struct rlimit memory = { 0 };
    getrlimit(RLIMIT_AS, &memory);
    snprintf(answer, sizeof answer, "%s %d %d %s", text, (int)weir_task_source(task), (int)weir_task_seq(task),
             memory.rlim_cur == RLIM_INFINITY ? "unlimited" : "limited");
    if (strcmp(text, "skip") == 0)
        return WEIR_SKIP;
    if (strcmp(text, "fail") == 0)
        return weir_task_fail(task, WEIR_EDATA, 17, "no good");
    if (strcmp(text, "keep") == 0)
        return WEIR_KEPT;
    if (strcmp(text, "log") == 0)
        weir_log(WEIR_LOG_WARNING, "a line");
    if (strcmp(text, "other") == 0)
        out->type = "other";
    out->data = strdup(answer);
    out->release = weir_release_free;
    return strcmp(text, "chunks") == 0 && weir_task_num_chunks(task) < 2 ? WEIR_MORE : WEIR_OK;
}

static const weir_op reported = {
    .name = "told", .takes = WEIR_TYPE_TEXT, .makes = WEIR_TYPE_TEXT, .run = run_reported
};
static const weir_op *const ops[] = { &reported };

typedef struct worker_child {
    pid_t pid;
    int fd;
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS];
} worker_child;

static worker_child child_start(void (*prepare)(void))
{
    worker_child made = { 0 };
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    made.pid = fork();
    assert_true(made.pid >= 0);
    if (made.pid == 0) {
        dup2(fds[1], ISOLATED_FD);
        if (prepare)
            prepare();
        weir_isolated_serve(2, (char *[]){ (char[]){ "x" }, (char[]){ ISOLATED_ARGUMENT }, NULL }, ops, LENGTH(ops));
        _exit(9);
    }
    close(fds[1]);
    made.fd = fds[0];
    return made;
}

/* The child ends, by itself if it fails, or else with its parent. */
static void child_end(worker_child *child, int expected)
{
    int status;
    if (expected == 0) {
        close(child->fd);
        child->fd = -1;
    }
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++)
        weir__shared_data_drop(child->blocks[i]);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    if (child->fd >= 0)
        close(child->fd);
}

static void child_send(worker_child *child, isolated_message *message)
{
    assert_true(weir__isolated_send(child->fd, message));
    weir__isolated_message_free(message);
}

static isolated_message child_answer(worker_child *child, isolated_kind kind)
{
    isolated_message answer;
    assert_true(weir__isolated_receive(child->fd, &(isolated_sender){ ISOLATED_CHILD, child->blocks, 0 }, &answer));
    assert_int_equal(answer.head.kind, kind);
    return answer;
}

/* Expects an answer with that text in it. */
static isolated_head expect_text(worker_child *child, isolated_kind kind, const char *expected)
{
    isolated_message answer = child_answer(child, kind);
    isolated_head head = answer.head;
    const char *text = weir__isolated_get_text(&answer);
    if (!text || !strstr(text, expected))
        fail_msg("\"%s\" is not in: %s", expected, text ? text : "nothing");
    weir__isolated_message_free(&answer);
    return head;
}

static isolated_message config_of(const weir_op *op, const void *config, uint64_t max_memory_bytes)
{
    isolated_message message = {
        .head = { .kind = ISOLATED_CONFIG, .status = WEIR_LOG_WARNING, .max_memory_bytes = max_memory_bytes }
    };
    weir__isolated_put_text(&message, WEIR_VERSION);
    weir__isolated_put_text(&message, op->name);
    weir__isolated_put_config(&message, op, config);
    return message;
}

static worker_child child_of(const weir_op *op, const void *config, uint64_t max_memory_bytes)
{
    worker_child made = child_start(NULL);
    isolated_message message = config_of(op, config, max_memory_bytes);
    child_send(&made, &message);
    message = child_answer(&made, ISOLATED_READY);
    weir__isolated_message_free(&message);
    return made;
}

static void child_ask(worker_child *child, const char *text)
{
    struct stat info = { 0 };
    isolated_message request = { .head = { .kind = ISOLATED_REQUEST, .source = 3, .seq = 41 } };
    weir__isolated_put_text(&request, "label");
    weir__isolated_put_text(&request, text);
    weir__isolated_put(&request, &(int){ -1 }, sizeof(int));
    weir__isolated_put(&request, &info, sizeof info);
    assert_true(
        weir__isolated_put_item(&request, &(weir_item){ .type = WEIR_TYPE_TEXT, .data = (void *)(uintptr_t)text }));
    child_send(child, &request);
}

static weir_item child_result(worker_child *child, int status)
{
    weir_item item;
    isolated_message answer = child_answer(child, ISOLATED_RESULT);
    assert_int_equal(answer.head.status, status);
    assert_true(weir__isolated_get_item(&answer, &item));
    weir__isolated_message_free(&answer);
    return item;
}

static void expect_result(worker_child *child, int status, const char *expected)
{
    weir_item item = child_result(child, status);
    assert_string_equal(item.data, expected);
    weir_item_release(&item);
}

TEST_CASE(each_request_has_its_answer)
{
    worker_child child = child_of(&reported, NULL, 0);
    child_ask(&child, "a");
    expect_result(&child, WEIR_OK, "a 3 41 unlimited");
    child_ask(&child, "skip");
    isolated_message skipped = child_answer(&child, ISOLATED_SKIPPED);
    weir__isolated_message_free(&skipped);
    child_ask(&child, "fail");
    isolated_head head = expect_text(&child, ISOLATED_FAILURE, "no good");
    assert_int_equal(head.status, WEIR_EDATA);
    assert_int_equal(head.library_code, 17);
    child_ask(&child, "keep");
    expect_text(&child, ISOLATED_FAILURE, "it cannot be isolated");
    child_ask(&child, "other");
    expect_text(&child, ISOLATED_FAILURE, "cannot pass a result of type \"other\" to another process");
    child_ask(&child, "log");
    assert_int_equal(expect_text(&child, ISOLATED_LOG, "a line").status, WEIR_LOG_WARNING);
    expect_result(&child, WEIR_OK, "log 3 41 unlimited");
    child_ask(&child, "chunks");
    for (int i = 0; i < 2; i++) {
        expect_result(&child, WEIR_MORE, "chunks 3 41 unlimited");
        child_send(&child, &(isolated_message){ .head = { .kind = ISOLATED_CONTINUE } });
    }
    expect_result(&child, WEIR_OK, "chunks 3 41 unlimited");
    child_end(&child, 0);
}

TEST_CASE(a_request_that_makes_no_sense_is_a_failure_of_its_own)
{
    worker_child child = child_of(&reported, NULL, 0);
    child_send(&child, &(isolated_message){ .head = { .kind = ISOLATED_REQUEST } });
    assert_int_equal(expect_text(&child, ISOLATED_FAILURE, "the process that decodes").status, WEIR_ENOMEM);
    child_ask(&child, "a");
    expect_result(&child, WEIR_OK, "a 3 41 unlimited");
    child_end(&child, 0);
}

TEST_CASE(a_child_whose_parent_leaves_before_the_answer_ends)
{
    worker_child child = child_of(&reported, NULL, 0);
    child_ask(&child, "a");
    child_end(&child, 0);
}

TEST_CASE(a_child_has_the_limit_of_memory)
{
    worker_child limited = child_of(&reported, NULL, 1 << 30);
    child_ask(&limited, "a");
    expect_result(&limited, WEIR_OK, "a 3 41 limited");
    child_end(&limited, 0);
    worker_child unlimited = child_of(&reported, NULL, UINT64_MAX);
    child_ask(&unlimited, "a");
    expect_result(&unlimited, WEIR_OK, "a 3 41 unlimited");
    child_end(&unlimited, 0);
}

TEST_CASE(configs_that_a_child_cannot_have_are_told)
{
    static const struct {
        isolated_kind kind;
        const char *version, *op;
        size_t config_size;
        const char *expected;
    } cases[] = {
        { ISOLATED_CONFIG, "0.0.1", "told", 0, "the program has weir 0.0.1, but its child program " WEIR_VERSION },
        { ISOLATED_CONFIG, NULL, "told", 0, "the program has weir ?" },
        { ISOLATED_REQUEST, WEIR_VERSION, "told", 0, "the program has weir" },
        { ISOLATED_CONFIG, WEIR_VERSION, "stranger", 0, "no operation \"stranger\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, NULL, 0, "no operation \"?\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, "told", 8, "another config of \"told\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, "decode", 8, "another config of \"decode\"" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        worker_child child = child_start(NULL);
        isolated_message message = { .head = { .kind = cases[i].kind } };
        weir__isolated_put_text(&message, cases[i].version);
        weir__isolated_put_text(&message, cases[i].op);
        weir__isolated_put(&message, &cases[i].config_size, sizeof cases[i].config_size);
        child_send(&child, &message);
        expect_text(&child, ISOLATED_FAILURE, cases[i].expected);
        child_end(&child, 1);
    }
    worker_child child = child_start(NULL); /* no config at all */
    close(child.fd);
    child.fd = -1;
    child_end(&child, 1);
}

static const char *make_video(void)
{
    return clips_make("clip.mp4", "-f lavfi -i testsrc2=s=96x64:d=2:r=10 -f lavfi -i sine=r=8000:d=2 "
                                  "-c:v mpeg4 -c:a aac");
}

/* Also of blocks that are sent once and reused. */
TEST_CASE(real_decoders_answer_in_shared_memory)
{
    static const int64_t indices[] = { 1, 5 };
    weir_video_config video = { WEIR_WITH_PICTURE(.filter = "hflip"),
                                .sampling = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 2 } };
    worker_child decoder = child_of(&weir_video_decode, &video, 0);
    for (int i = 0; i < 3; i++) {
        child_ask(&decoder, make_video());
        weir_item item = child_result(&decoder, WEIR_OK);
        assert_int_equal(((weir_frames *)item.data)->num_frames, 2);
        weir_item_release(&item);
    }
    child_ask(&decoder, "/no/such/file.mp4");
    assert_int_equal(expect_text(&decoder, ISOLATED_FAILURE, "No such file").status, WEIR_ENOTFOUND);
    child_end(&decoder, 0);
    decoder = child_of(&weir_audio_decode, &(weir_audio_config){ 0 }, 0);
    child_ask(&decoder, make_video());
    weir_item item = child_result(&decoder, WEIR_OK);
    assert_true(((weir_audio *)item.data)->num_samples > 0);
    weir_item_release(&item);
    child_end(&decoder, 0);
}

/* ---- where there is no sandbox, no descriptor, no program --------------------------------------------------------- */

#ifdef WEIR_HAVE_SECCOMP
static const char no_wall[] =
    "(seccomp): this kernel has none, or refuses it; no_sandbox (--no-sandbox) decodes without it";
#else
static const char no_wall[] =
    "(seccomp): weir was built without libseccomp; no_sandbox (--no-sandbox) decodes without it";
#endif

/* A container may refuse these calls. */
static void refuse_walls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 1, 0),
#ifdef SYS_landlock_restrict_self
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_restrict_self, 0, 1),
#else
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = LENGTH(steps), .filter = steps };
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* For files and for URLs; a build without the library tells of that instead. */
TEST_CASE(a_kernel_that_refuses_the_sandbox_is_told)
{
    const char *ca_file = clips_path("own.pem");
    clips_write_text(ca_file, "none");
    for (sandbox_kind kind = SANDBOX_FILES; kind <= SANDBOX_URLS; kind++) {
        worker_child child = child_start(refuse_walls);
        isolated_message message =
            config_of(&weir_video_decode, &(weir_video_config){ WEIR_WITH_INPUT(.ca_file = ca_file) }, 0);
        message.head.sandbox = kind;
        child_send(&child, &message);
        expect_text(&child, ISOLATED_FAILURE, no_wall);
        child_end(&child, 1);
    }
}

static void start_without_descriptors(void)
{
    isolated_process process;
    REQUIRE(weir__isolated_process_start(&process, "/no/such/program", SANDBOX_NONE) == ENOENT);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, 4096 }) == 0);
    REQUIRE(weir__isolated_process_start(&process, "/bin/true", SANDBOX_NONE) == EMFILE);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4096, 4096 }) == 0);
}

TEST_CASE(a_child_that_cannot_be_started_says_why)
{
    in_another_process(start_without_descriptors);
}

TEST_CASE(a_child_gets_only_what_it_needs_of_the_environment)
{
    static char texts[][16] = { "LANG=C", "LD_X=1", "LANGUAGE=de", "SECRET=1", "http_proxy=p" };
    char *environment[] = { texts[0], texts[1], texts[2], texts[3], texts[4], NULL };
    static const size_t expected[] = { [SANDBOX_NONE] = 5, [SANDBOX_FILES] = 2, [SANDBOX_URLS] = 3 };
    for (sandbox_kind kind = SANDBOX_NONE; kind <= SANDBOX_URLS; kind++) {
        size_t count = 0;
        char **kept = weir__sandbox_environment(environment, kind);
        while (kept[count])
            count++;
        assert_int_equal(count, expected[kind]);
        free(kept);
    }
}

/* ---- child programs that answer what makes no sense ------------------------------------------------------------- */

/* What a child answers where two pictures of 4 × 4 are asked for: a good answer with one number changed, of the frames or, with
   offset NO_FIELD, none. */
enum { NO_FIELD = sizeof(weir_frames) };

#define FRAMES_FIELD(field) offsetof(weir_frames, field), sizeof(((weir_frames *)NULL)->field)

static const struct {
    size_t offset, size_bytes;
    uint64_t number;
    int status;
    const char *complaint; /* NULL = it is a result */
} answers[] = {
    { NO_FIELD, 0, 0, WEIR_OK, NULL },
    { FRAMES_FIELD(time_base_den), 0, WEIR_OK, "frames.time_base_den" },
    { FRAMES_FIELD(time_base_den), INT32_MAX, WEIR_OK, NULL },
    { FRAMES_FIELD(time_base_num), UINT32_MAX, WEIR_OK, "frames.time_base_num" }, /* -1 */
    { FRAMES_FIELD(num_frames), 3, WEIR_OK, "frames.num_frames" },
    { FRAMES_FIELD(num_clips), 2, WEIR_OK, "frames.num_clips" }, /* none were asked for */
    { FRAMES_FIELD(num_clips), 3, WEIR_OK, "frames.num_clips" },
    { FRAMES_FIELD(first_frame), 1, WEIR_OK, "frames.first_frame" },
    { FRAMES_FIELD(is_last_chunk), 0, WEIR_OK, "frames.is_last_chunk" },
    { FRAMES_FIELD(is_last_chunk), 0, WEIR_MORE, "frames.is_last_chunk" }, /* no chunks were asked for */
    { NO_FIELD, 0, 0, WEIR_MORE, "frames.is_last_chunk" },
    { NO_FIELD, 0, 0, WEIR_SKIP, "head.status" },
    { FRAMES_FIELD(layout), WEIR_LAYOUT_NCHW, WEIR_OK, "frames.layout" },
    { FRAMES_FIELD(cost.num_frames), 3, WEIR_OK, "cost.num_frames" },
    { FRAMES_FIELD(cost.open_ns), (uint64_t)-1, WEIR_OK, "frames.open_ns" },
    { FRAMES_FIELD(cost.open_ns), 1, WEIR_OK, NULL },
    { FRAMES_FIELD(cost.open_ns), INT64_MAX / 8, WEIR_OK, "cost.open_ns" },
    { FRAMES_FIELD(cost.demux_ns), INT64_MAX / 8, WEIR_OK, "cost.demux_ns" },
    { FRAMES_FIELD(cost.decode_ns), INT64_MAX / 8, WEIR_OK, "cost.decode_ns" },
    { FRAMES_FIELD(cost.scale_ns), INT64_MAX / 8, WEIR_OK, "cost.scale_ns" },
};

static void give_answer(size_t number)
{
    isolated_message answer = { .head = { .kind = ISOLATED_RESULT, .status = answers[number].status } };
    weir_frames frames = some_frames(WEIR_PIXEL_RGB24);
    frames.cost.num_frames = 2;
    REQUIRE(weir__isolated_put_item(&answer, &(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames }));
    memcpy(answer.body + sizeof(uint32_t) + answers[number].offset, &answers[number].number,
           answers[number].size_bytes);
    REQUIRE(weir__isolated_send(ISOLATED_FD, &answer));
    weir__isolated_message_free(&answer);
}

/* A stand-in for weir-child. */
static void answer_nonsense(const char *what)
{
    isolated_message message, answer = { .head = { .kind = 99 } };
    REQUIRE(weir__isolated_receive(ISOLATED_FD, &(isolated_sender){ ISOLATED_PARENT, NULL, 0 }, &message));
    weir__isolated_message_free(&message);
    REQUIRE(weir__isolated_send(ISOLATED_FD, &(isolated_message){ .head = { .kind = ISOLATED_READY } }));
    REQUIRE(weir__isolated_receive(ISOLATED_FD, &(isolated_sender){ ISOLATED_PARENT, NULL, 0 }, &message));
    weir__isolated_message_free(&message);
    if (strcmp(what, "item") == 0)
        answer.head.kind = ISOLATED_RESULT;
    if (strcmp(what, "failure") == 0)
        answer.head = (isolated_head){ .kind = ISOLATED_FAILURE, .status = 5 };
    if (strcmp(what, "bare") == 0)
        answer.head = (isolated_head){ .kind = ISOLATED_FAILURE, .status = WEIR_ENOMEM };
    if (strcmp(what, "level") == 0)
        answer.head = (isolated_head){ .kind = ISOLATED_LOG, .status = -4000 };
    if (strncmp(what, "answer ", 7) == 0)
        give_answer((size_t)atoi(what + 7));
    else
        REQUIRE(weir__isolated_send(ISOLATED_FD, &answer));
    (void)weir__isolated_receive(ISOLATED_FD, &(isolated_sender){ ISOLATED_PARENT, NULL, 0 }, &message);
}

/* What becomes of that answer: WEIR_OK, with the result, or the failure. */
static int status_of_answer(const char *what, weir_item *item, weir_error *error)
{
    const char *path = make_video();
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 4, .height = 4) };
    weir_builder *builder = weir_builder_new();
    setenv(broken_answer, what, 1);
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_isolated(
        builder,
        &(weir_isolated_config){
            .op = &weir_video_decode, .config = &video, .config_size = sizeof video, .program = "/proc/self/exe" },
        NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    int status = weir_pipeline_next(pipeline, item, WEIR_FOREVER);
    *error = (weir_error){ 0 };
    if (status == WEIR_EOF)
        status = weir_pipeline_error(pipeline, "isolated", error);
    weir_pipeline_free(pipeline);
    unsetenv(broken_answer);
    return status;
}

TEST_CASE(answers_that_make_no_sense_are_failures)
{
    static const char *const cases[][2] = { { "kind", "makes no sense (head.kind)" },
                                            { "item", "makes no sense (an item)" },
                                            { "failure", "makes no sense (head.status)" },
                                            { "level", "makes no sense (head.status)" } };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_error error;
        weir_item item;
        assert_int_equal(status_of_answer(cases[i][0], &item, &error), WEIR_ESYSTEM);
        if (!strstr(error.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], error.message);
    }
}

TEST_CASE(a_failure_whose_text_there_was_no_memory_for_is_passed_on)
{
    weir_error error;
    weir_item item;
    assert_int_equal(status_of_answer("bare", &item, &error), WEIR_ENOMEM);
    assert_string_equal(error.message, "failed");
}

/* What the config of weir_video_decode asks for. Each row differs in one thing from the frames or from what is asked for; the
   first rows are at the limits. */
TEST_CASE(all_that_was_asked_for_is_compared_with_the_frames)
{
    const isolated_shape asked = {
        true, .width = 4, .height = 4, .chunk_frames = 2, .max_frames = 9, .max_bytes = 96
    };
    static const struct {
        const char *misfit;
        uint32_t width, height, num_frames;
        uint64_t num_before;
        weir_pixel pixel;
        weir_layout layout;
        bool is_more;
        int64_t elapsed_ns;
    } rows[] = {
        { NULL, 4, 4, 2, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, false, 50 },
        { NULL, 4, 4, 1, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, true, 50 },
        { NULL, 4, 4, 2, 7, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, true, 50 },
        { "frames.num_frames", 4, 4, 2, 8, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, true, 50 },  /* max_frames */
        { "frames.num_frames", 4, 4, 3, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, false, 50 }, /* chunk_frames */
        { "frames.width", 8, 4, 1, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, false, 50 },
        { "frames.height", 4, 2, 1, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, false, 50 },
        { "frames.pixel", 4, 4, 1, 0, WEIR_PIXEL_GRAY8, WEIR_LAYOUT_NHWC, false, 50 },
        { "frames.layout", 4, 4, 1, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NCHW, false, 50 },
        { "cost.scale_ns", 4, 4, 1, 0, WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC, false, 49 },
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        weir_frames frames = { .width = rows[i].width,
                               .height = rows[i].height,
                               .pixel = rows[i].pixel,
                               .layout = rows[i].layout,
                               .num_frames = rows[i].num_frames,
                               .frame_bytes =
                                   weir__scaler_picture_bytes(rows[i].pixel, rows[i].width, rows[i].height),
                               .first_frame = rows[i].num_before,
                               .is_last_chunk = !rows[i].is_more,
                               .cost = { .num_frames = rows[i].num_before + rows[i].num_frames, .scale_ns = 50 } };
        const weir_item item = { .type = WEIR_TYPE_FRAMES, .data = &frames };
        const char *misfit =
            weir__isolated_find_misfit(&asked, &item, rows[i].num_before, rows[i].is_more, rows[i].elapsed_ns);
        if (!misfit != !rows[i].misfit || (misfit && strcmp(misfit, rows[i].misfit) != 0))
            fail_msg("row %zu: %s", i, misfit ? misfit : "no misfit");
        isolated_shape less = asked;
        less.max_bytes = frames.num_frames * frames.frame_bytes - 1;
        assert_non_null(weir__isolated_find_misfit(&less, &item, rows[i].num_before, rows[i].is_more, 50));
        less = (isolated_shape){ 0 }; /* an operation of a user */
        assert_null(weir__isolated_find_misfit(&less, &item, 0, false, 0));
    }
}

TEST_CASE(clips_that_were_asked_for_are_compared_with_the_frames)
{
    static const struct {
        const char *misfit;
        uint32_t num_clips, num_frames;
    } rows[] = {
        { NULL, 2, 6 },
        { "frames.num_clips", 0, 6 },
        { "frames.num_clips", 3, 6 },
        { "frames.num_frames", 2, 4 },
        { "frames.num_frames", 2, 8 },
    };
    const isolated_shape asked = { true, .num_clips = 2, .num_frames = 6 };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        weir_frames frames = { .num_clips = rows[i].num_clips,
                               .num_frames = rows[i].num_frames,
                               .is_last_chunk = true,
                               .cost.num_frames = rows[i].num_frames };
        const weir_item item = { .type = WEIR_TYPE_FRAMES, .data = &frames };
        const char *misfit = weir__isolated_find_misfit(&asked, &item, 0, false, 0);
        if (!misfit != !rows[i].misfit || (misfit && strcmp(misfit, rows[i].misfit) != 0))
            fail_msg("row %zu: %s", i, misfit ? misfit : "no misfit");
    }
}

TEST_CASE(all_that_was_asked_for_is_compared_with_the_samples)
{
    const isolated_shape asked = { true, .channels = 2, .sample_rate = 8000, .max_bytes = 24 };
    static const struct {
        const char *misfit;
        weir_audio audio;
        bool is_more;
    } rows[] = {
        { NULL, { .channels = 2, .sample_rate = 8000, .num_samples = 3, .cost.open_ns = 50 }, false },
        { "audio.channels", { .channels = 1, .sample_rate = 8000, .num_samples = 3 }, false },
        { "audio.sample_rate", { .channels = 2, .sample_rate = 7999, .num_samples = 3 }, false },
        { "audio.planar", { .channels = 2, .sample_rate = 8000, .planar = true, .num_samples = 3 }, false },
        { "audio.num_samples", { .channels = 2, .sample_rate = 8000, .num_samples = 4 }, false },
        { "head.status", { .channels = 2, .sample_rate = 8000, .num_samples = 3 }, true },
        { "cost.open_ns", { .channels = 2, .sample_rate = 8000, .cost.open_ns = 51 }, false },
        { "cost.demux_ns", { .channels = 2, .sample_rate = 8000, .cost.demux_ns = 51 }, false },
        { "cost.decode_ns", { .channels = 2, .sample_rate = 8000, .cost.decode_ns = 51 }, false },
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        weir_audio audio = rows[i].audio;
        const weir_item item = { .type = WEIR_TYPE_AUDIO, .data = &audio };
        const char *misfit = weir__isolated_find_misfit(&asked, &item, 0, rows[i].is_more, 50);
        if (!misfit != !rows[i].misfit || (misfit && strcmp(misfit, rows[i].misfit) != 0))
            fail_msg("row %zu: %s", i, misfit ? misfit : "no misfit");
    }
}

/* A consumer relies on what it has asked for, and on sums: they are compared with the config, with earlier chunks and with the
   clock. */
TEST_CASE(results_that_are_not_what_was_asked_for_are_failures)
{
    char what[32];
    for (size_t i = 0; i < LENGTH(answers); i++) {
        weir_error error;
        weir_item item;
        snprintf(what, sizeof what, "answer %zu", i);
        int status = status_of_answer(what, &item, &error);
        if (status != (answers[i].complaint ? WEIR_ESYSTEM : WEIR_OK) ||
            (answers[i].complaint && !strstr(error.message, answers[i].complaint)))
            fail_msg("answer %zu: status %d, %s", i, status, error.message);
        if (status == WEIR_OK) {
            use_item(&item);
            weir_item_release(&item);
        }
    }
}

TEST_CASE(the_worker_program_by_itself_says_what_it_is)
{
    char command[512], line[256];
    snprintf(command, sizeof command, "%s 2>&1 >/dev/null </dev/null", getenv("WEIR_CHILD"));
    FILE *output = popen(command, "r");
    assert_non_null(output);
    assert_non_null(fgets(line, sizeof line, output));
    assert_non_null(strstr(line, "decodes for weir_isolated"));
    assert_int_equal(WEXITSTATUS(pclose(output)), 2);
}

int main(int argc, char *argv[])
{
    const char *what = getenv(broken_answer);
    if (what && argc == 2 && strcmp(argv[1], ISOLATED_ARGUMENT) == 0)
        answer_nonsense(what);
    return what ? 1 : test_cases_run(test_setup, test_teardown, clips_set_up, clips_tear_down);
}
