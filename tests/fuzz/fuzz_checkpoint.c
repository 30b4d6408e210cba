/*
 * libFuzzer's target: checkpoints, as text and as a file with the state of the program behind it. A text ends with a hash of
 * all before it, and so does a state. The fuzzer would never find one: where the first byte of the input says so, the right
 * ones are added here.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/checkpoint.h>
#include <weir/status.h>

#include "common/hash.h"
#include "engine/resume/checkpoint_parsed.h"
#include "tests/fuzz/require.h"

enum { SEALED = 1, IN_FILE = 2, MAX_QUESTIONS = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both functions write what is done in one way. */
static void ask_number(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch, uint64_t seq)
{
    uint64_t low = 7, end = 7;
    weir_checkpoint_range(checkpoint, source, epoch, &low, &end);
    bool is_done = weir_checkpoint_is_done(checkpoint, source, epoch, seq);
    require(low <= end);
    require(seq >= low || is_done);
    require(seq < end || end == UINT64_MAX || !is_done);
}

static void ask_set(const weir_checkpoint *checkpoint, size_t source, const weir_done_set *set)
{
    static const uint64_t others[] = { 0, 1, UINT64_MAX - 1, UINT64_MAX };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ask_number(checkpoint, source, set->epoch, others[i]);
    for (size_t i = 0; i < set->num_runs && i < MAX_QUESTIONS; i++) {
        const weir_done_run *run = &set->runs[i];
        /* what is done is written in one way: runs that touch are one run */
        require(run->first <= run->last && run->first > (i ? run[-1].last + 1 : set->low));
        ask_number(checkpoint, source, set->epoch, run->first - 1);
        ask_number(checkpoint, source, set->epoch, run->first);
        ask_number(checkpoint, source, set->epoch, run->last + 1);
    }
}

/* An item of which something is done is before the end. */
static void ask_chunk(const weir_checkpoint *checkpoint, size_t source, const weir_done_chunk *chunk)
{
    uint64_t low, end;
    weir_checkpoint_range(checkpoint, source, chunk->epoch, &low, &end);
    require(end > chunk->seq);
    ask_number(checkpoint, source, chunk->epoch, chunk->seq);
}

static void ask_checkpoint(const weir_checkpoint *checkpoint)
{
    require(!weir_checkpoint_source_at(checkpoint, checkpoint->num_sources));
    for (size_t i = 0; i < checkpoint->num_sources && i < MAX_QUESTIONS; i++) {
        const weir_checkpoint_source *known = weir_checkpoint_source_at(checkpoint, i);
        const weir_done_source *source = &checkpoint->sources[i];
        require(known && known->name && known->text && known->last_epoch >= checkpoint->epoch);
        for (size_t j = 0; j < source->num_sets && j < MAX_QUESTIONS; j++)
            ask_set(checkpoint, i, &source->sets[j]);
        for (size_t j = 0; j < source->num_chunks && j < MAX_QUESTIONS; j++)
            ask_chunk(checkpoint, i, &source->chunks[j]);
        ask_number(checkpoint, i, checkpoint->epoch, 3);
        ask_number(checkpoint, i, known->last_epoch, UINT64_MAX);
        ask_number(checkpoint, i, 0, 0);
    }
}

static void read_text(const char *text)
{
    weir_error error = { 0 };
    weir_checkpoint *checkpoint;
    int status = weir_checkpoint_read(text, &checkpoint, &error);
    require((status == WEIR_OK) == (checkpoint != NULL));
    require(status == WEIR_OK || (error.status == status && error.message[0]));
    if (status == WEIR_OK)
        ask_checkpoint(checkpoint);
    weir_checkpoint_free(checkpoint);
}

/* The input without NUL, in memory of just its size and, if wanted, with its last line; the state is after the first NUL. */
static char *make_text(const uint8_t *data, size_t size, bool is_sealed)
{
    char end[WEIR__CHECKPOINT_END] = "";
    char *text = malloc(size + sizeof end);
    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    size_t length = strlen(text);
    if (is_sealed && length > 0 && text[length - 1] == '\n')
        weir__checkpoint_end(text, length, end);
    strcpy(text + length, end);
    return text;
}

/* The file of weir_checkpoint_store(); it takes the state's size and hash from `claimed` if that is not 0. */
static void read_file(const char *text, const uint8_t *state, size_t state_bytes, uint8_t claimed)
{
    char path[64], *loaded = NULL;
    void *loaded_state = NULL;
    size_t loaded_bytes = 0;
    weir_error error = { 0 };
    int fd = memfd_create("checkpoint", 0);
    require(fd >= 0);
    uint64_t hash = weir__hash(WEIR__HASH_START, (const char *)state, state_bytes);
    dprintf(fd, "%sstate %zu %016" PRIx64 "\n", text, state_bytes + (claimed & 3U) * (claimed >> 2),
            hash ^ (claimed & 4U));
    require(state_bytes == 0 || write(fd, state, state_bytes) == (ssize_t)state_bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int status = weir_checkpoint_load(path, &loaded, &loaded_state, &loaded_bytes, &error);
    require(status == WEIR_OK || (!loaded && !loaded_state && error.message[0]));
    if (status == WEIR_OK) {
        require(loaded && ((char *)loaded_state)[loaded_bytes] == '\0');
        require(claimed ||
                (loaded_bytes == state_bytes && (!state_bytes || !memcmp(loaded_state, state, state_bytes))));
        read_text(loaded);
    }
    free(loaded);
    free(loaded_state);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return -1;
    char *text = make_text(data + 2, size - 2, data[0] & SEALED);
    size_t text_bytes = strnlen((const char *)data + 2, size - 2);
    size_t state_at = text_bytes < size - 2 ? text_bytes + 3 : size;
    if (data[0] & IN_FILE)
        read_file(text, data + state_at, size - state_at, data[1]);
    else
        read_text(text);
    free(text);
    return 0;
}
