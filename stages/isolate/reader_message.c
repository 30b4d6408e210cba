#include "stages/isolate/reader_message.h"

#include <stdlib.h>

#include "stages/audio/audio_config.h"
#include "stages/config/picture_fields.h"
#include "stages/isolate/config_message.h"
#include "stages/isolate/message_rules.h"
#include "stages/reader/sampling_fields.h"

/* -- requests: to the child only */

/* What the child has received. Its strings are in the message's body, which it keeps. */
typedef struct received_request {
    isolated_reader_request request; /* the first, as its item's data */
    char *body;
    weir_bytes *bytes;
    uint8_t *packets;
} received_request;

/* With its inner configs. */
static void free_sound(void *sound)
{
    const struct_rules *rules = &weir__audio_config_fields;
    for (size_t i = 0; sound && i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        if (rule->kind == FIELD_CONFIG)
            weir__isolated_free_config(
                rule->inner, (void *)(uintptr_t)weir__rule_pointer(rule, (const char *)sound + rule->offset));
    }
    weir__isolated_free_config(rules, sound);
}

static void release_request(void *data, void *self)
{
    received_request *received = data;
    (void)self;
    weir__isolated_free_config(&weir__sampling_fields, (void *)(uintptr_t)received->request.call.sampling);
    weir__isolated_free_config(&weir__picture_fields, (void *)(uintptr_t)received->request.call.picture);
    free_sound((void *)(uintptr_t)received->request.call.sound);
    weir_bytes_free(received->bytes);
    free(received->packets);
    free(received->body);
    free(received);
}

static bool put_source(isolated_message *message, const isolated_reader_request *request)
{
    weir__isolated_put(message, &request->one_request, sizeof request->one_request);
    weir__isolated_put_text(message, request->path);
    weir__isolated_put(message, &request->packets_bytes, sizeof request->packets_bytes);
    weir__isolated_put(message, request->packets, request->packets_bytes);
    if (request->path)
        return true;
    weir__isolated_put_text(message, request->bytes->name);
    return weir__isolated_put_data(message, request->bytes->data, request->bytes->size_bytes, NULL);
}

bool weir__isolated_put_request(isolated_message *message, const void *data)
{
    const isolated_reader_request *request = data;
    const weir_reader_call *call = &request->call;
    weir__isolated_put(message, &call->verb, sizeof call->verb);
    weir__isolated_put(message, &call->epoch, sizeof call->epoch);
    weir__isolated_put(message, &call->number, sizeof call->number);
    weir__isolated_put_inner(message, &weir__sampling_fields, call->sampling, sizeof *call->sampling);
    weir__isolated_put_inner(message, &weir__picture_fields, call->picture, sizeof *call->picture);
    weir__isolated_put_inner(message, &weir__audio_config_fields, call->sound, sizeof *call->sound);
    weir__isolated_put(message, &call->start_ns, sizeof call->start_ns);
    weir__isolated_put(message, &call->end_ns, sizeof call->end_ns);
    weir__isolated_put(message, &request->has_source, sizeof request->has_source);
    return !request->has_source || put_source(message, request);
}

static bool get_bytes(isolated_message *message, received_request *received)
{
    weir_shared_data *shared = message->data;
    const char *name = weir__isolated_get_text(message);
    received->bytes = weir_bytes_wrap(shared ? shared->data : "", shared ? shared->size_bytes : 0, name,
                                      shared ? weir__shared_data_release : NULL, shared);
    received->request.bytes = received->bytes;
    if (received->bytes)
        message->data = NULL;
    return received->bytes;
}

static bool get_source(isolated_message *message, received_request *received)
{
    isolated_reader_request *request = &received->request;
    weir__isolated_get(message, &request->one_request, sizeof request->one_request);
    request->path = weir__isolated_get_text(message);
    weir__isolated_get(message, &request->packets_bytes, sizeof request->packets_bytes);
    if (request->packets_bytes > message->head.body_bytes - message->position)
        return false;
    received->packets = request->packets_bytes ? malloc(request->packets_bytes) : NULL;
    request->packets = received->packets;
    if ((request->packets_bytes && !received->packets) ||
        !weir__isolated_get(message, received->packets, request->packets_bytes))
        return false;
    return request->path || get_bytes(message, received);
}

bool weir__isolated_get_request(isolated_message *message, weir_item *item)
{
    received_request *received = calloc(1, sizeof *received);
    item->data = received;
    item->release = release_request;
    if (!received)
        return false;
    weir_reader_call *call = &received->request.call;
    weir__isolated_get(message, &call->verb, sizeof call->verb);
    weir__isolated_get(message, &call->epoch, sizeof call->epoch);
    weir__isolated_get(message, &call->number, sizeof call->number);
    call->sampling = weir__isolated_get_inner(message, &weir__sampling_fields);
    call->picture = weir__isolated_get_inner(message, &weir__picture_fields);
    call->sound = weir__isolated_get_inner(message, &weir__audio_config_fields);
    weir__isolated_get(message, &call->start_ns, sizeof call->start_ns);
    weir__isolated_get(message, &call->end_ns, sizeof call->end_ns);
    weir__isolated_get(message, &received->request.has_source, sizeof received->request.has_source);
    bool is_whole = !message->is_bad && (!received->request.has_source || get_source(message, received));
    received->body = message->body;
    message->body = NULL;
    return is_whole && !message->is_bad;
}

/* -- facts */

void weir__isolated_release_facts(void *data, void *self)
{
    isolated_reader_facts *facts = data;
    (void)self;
    if (facts)
        weir_frame_times_free(facts->answer.times);
    free(facts);
}

bool weir__isolated_put_facts(isolated_message *message, const void *data)
{
    const isolated_reader_facts *facts = data;
    const weir_frame_times *times = facts->answer.times;
    const uint8_t has_times = times != NULL, is_end = facts->is_end;
    weir__isolated_put_struct(message, &weir__info_rules, &facts->answer.info);
    weir__isolated_put_struct(message, &weir__frames_size_rules, &facts->answer.size);
    weir__isolated_put(message, &is_end, sizeof is_end);
    weir__isolated_put(message, &has_times, sizeof has_times);
    if (!times)
        return true;
    weir__isolated_put_struct(message, &weir__times_rules, times);
    weir__isolated_put(message, times->times_ns, times->num_frames * sizeof *times->times_ns);
    weir__isolated_put(message, times->is_key, times->num_frames * sizeof *times->is_key);
    return true;
}

/* Times rise, and the end is after them. NULL, or the field that makes no sense. */
static const char *find_wrong_times(const weir_frame_times *times)
{
    for (uint64_t i = 0; i < times->num_frames; i++) {
        if (times->is_key[i] > 1)
            return "times.is_key";
        if (i > 0 && times->times_ns[i] < times->times_ns[i - 1])
            return "times.times_ns";
    }
    return times->num_frames && times->end_ns < times->times_ns[times->num_frames - 1] ? "times.end_ns" : NULL;
}

static bool get_times(isolated_message *message, weir_frame_times *times)
{
    if (!weir__isolated_get_struct(message, &weir__times_rules, times))
        return false;
    uint64_t num_frames = times->num_frames;
    uint64_t left = message->head.body_bytes - message->position;
    if (num_frames > left / (sizeof *times->times_ns + sizeof *times->is_key)) {
        weir__isolated_complain(message, "times.num_frames");
        return false;
    }
    times->times_ns = calloc(num_frames + 1, sizeof *times->times_ns);
    times->is_key = calloc(num_frames + 1, sizeof *times->is_key);
    if (!times->times_ns || !times->is_key ||
        !weir__isolated_get(message, times->times_ns, num_frames * sizeof *times->times_ns) ||
        !weir__isolated_get(message, times->is_key, num_frames * sizeof *times->is_key))
        return false;
    const char *wrong = find_wrong_times(times);
    if (wrong)
        weir__isolated_complain(message, wrong);
    return !wrong;
}

bool weir__isolated_get_facts(isolated_message *message, weir_item *item)
{
    isolated_reader_facts *facts = calloc(1, sizeof *facts);
    uint8_t is_end, has_times;
    item->data = facts;
    item->release = weir__isolated_release_facts;
    if (!facts || !weir__isolated_get_struct(message, &weir__info_rules, &facts->answer.info) ||
        !weir__isolated_get_struct(message, &weir__frames_size_rules, &facts->answer.size) ||
        !weir__isolated_get(message, &is_end, sizeof is_end) ||
        !weir__isolated_get(message, &has_times, sizeof has_times))
        return false;
    if (is_end > 1 || has_times > 1) {
        weir__isolated_complain(message, "facts");
        return false;
    }
    facts->is_end = is_end;
    if (!has_times)
        return true;
    facts->answer.times = calloc(1, sizeof *facts->answer.times);
    return facts->answer.times && get_times(message, facts->answer.times);
}
