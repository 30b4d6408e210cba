/*
 * The text of a checkpoint, line by line:
 *
 *     weir checkpoint 2
 *     epoch E                          the resumed pipeline begins with this epoch
 *     source NUMBER NAME
 *       …                              what the source wrote itself, indented
 *     begun E N                        epochs before E were begun by the run that this one has continued; it left N items over
 *     done E LOW A-B C …               of this epoch: all items before LOW, A to B, C
 *     chunks E SEQ PATH …              of this item: these results (a hexadecimal number for each)
 *     end HASH                         of all before this line, as 16 hexadecimal digits
 */
#include "engine/resume/checkpoint_parsed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

void weir__checkpoint_end(const char *text, size_t length, char end[WEIR__CHECKPOINT_END])
{
    snprintf(end, WEIR__CHECKPOINT_END, "end %016" PRIx64 "\n", weir__hash(WEIR__HASH_START, text, length));
}

static const char first_line[] = "weir checkpoint ";

typedef struct text_reader {
    char *at;         /* the next line */
    const char *copy; /* the whole text, whose line ends become NUL */
    const char *text; /* as it was given */
    uint64_t line;
    weir_checkpoint *to;
    weir_error *error;
} text_reader;

static int fail_damaged(const text_reader *reader, const char *what)
{
    return weir_error_set(reader->error, WEIR_EDATA, 0, "checkpoint, line %" PRIu64 ": %s", reader->line, what);
}

static int fail_parse_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a checkpoint");
}

/* The next line without its end; NULL = none. */
static char *next_line(text_reader *reader)
{
    char *line = reader->at;
    char *end = line ? strchr(line, '\n') : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    reader->at = end + 1;
    reader->line++;
    return line;
}

static bool read_number(char **at, int base, uint64_t *number)
{
    char *end = *at;
    uint64_t value = 0;
    for (;; end++) {
        int digit = *end >= '0' && *end <= '9' ? *end - '0' : *end >= 'a' && *end <= 'f' ? *end - 'a' + 10 : base;
        if (digit >= base)
            break;
        if (value > (UINT64_MAX - (uint64_t)digit) / (uint64_t)base)
            return false;
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    bool is_read = end > *at;
    *at = end;
    *number = value;
    return is_read;
}

static bool read_spaced(char **at, int base, uint64_t *number)
{
    return *(*at)++ == ' ' && read_number(at, base, number);
}

/* Makes room for one more element. */
static int grow_array(void **array, size_t num, size_t size)
{
    if (num & (num - 1)) /* capacities are powers of 2 */
        return WEIR_OK;
    void *larger = realloc(*array, (num ? 2 * num : 1) * size);
    if (!larger)
        return WEIR_ENOMEM;
    *array = larger;
    return WEIR_OK;
}

static weir_done_source *last_source(const text_reader *reader)
{
    return reader->to->num_sources ? &reader->to->sources[reader->to->num_sources - 1] : NULL;
}

static int read_source(text_reader *reader, char *at)
{
    weir_checkpoint *to = reader->to;
    uint64_t number;
    if (!read_spaced(&at, 10, &number) || *at != ' ' || number != to->num_sources)
        return fail_damaged(reader, "expected \"source NUMBER NAME\"");
    if (grow_array((void **)&to->sources, to->num_sources, sizeof *to->sources) != WEIR_OK)
        return fail_parse_memory(reader->error);
    assert(to->sources);
    weir_done_source *source = &to->sources[to->num_sources++];
    *source = (weir_done_source){ .name = strdup(at + 1), .text = strdup("") };
    return source->name && source->text ? WEIR_OK : fail_parse_memory(reader->error);
}

static int read_source_text(text_reader *reader, weir_done_source *source, const char *line)
{
    size_t old = strlen(source->text);
    char *text = realloc(source->text, old + strlen(line) + sizeof "\n");
    if (!text)
        return fail_parse_memory(reader->error);
    strcpy(stpcpy(text + old, line), "\n");
    source->text = text;
    return WEIR_OK;
}

static int read_done(text_reader *reader, weir_done_source *source, char *at)
{
    static const char expected[] = "expected \"done EPOCH LOW A-B C ...\" with increasing numbers";
    weir_done_set set = { 0 };
    if (!read_spaced(&at, 10, &set.epoch) || !read_spaced(&at, 10, &set.low))
        return fail_damaged(reader, expected);
    if (grow_array((void **)&source->sets, source->num_sets, sizeof *source->sets) != WEIR_OK)
        return fail_parse_memory(reader->error);
    weir_done_set *to = &source->sets[source->num_sets++];
    *to = set;
    for (uint64_t low = set.low; *at;) {
        weir_done_run run = { 0 };
        bool is_read = read_spaced(&at, 10, &run.first);
        run.last = run.first;
        if (is_read && *at == '-') {
            at++;
            is_read = read_number(&at, 10, &run.last);
        }
        if (!is_read || run.first <= low || run.last < run.first || run.last >= UINT64_MAX - 1)
            return fail_damaged(reader, expected);
        low = run.last + 1;
        if (grow_array((void **)&to->runs, to->num_runs, sizeof *to->runs) != WEIR_OK)
            return fail_parse_memory(reader->error);
        to->runs[to->num_runs++] = run;
    }
    return WEIR_OK;
}

static int read_chunks(text_reader *reader, weir_done_source *source, char *at)
{
    weir_done_chunk chunk = { 0 };
    if (!read_spaced(&at, 10, &chunk.epoch) || !read_spaced(&at, 10, &chunk.seq) || !*at ||
        chunk.seq >= UINT64_MAX - 1)
        return fail_damaged(reader, "expected \"chunks EPOCH NUMBER PATH ...\"");
    while (*at) {
        if (!read_spaced(&at, 16, &chunk.path))
            return fail_damaged(reader, "a path is not a hexadecimal number");
        if (grow_array((void **)&source->chunks, source->num_chunks, sizeof *source->chunks) != WEIR_OK)
            return fail_parse_memory(reader->error);
        source->chunks[source->num_chunks++] = chunk;
    }
    return WEIR_OK;
}

static int read_begun(const text_reader *reader, weir_done_source *source, char *at)
{
    bool is_read = read_spaced(&at, 10, &source->begun_before) && read_spaced(&at, 10, &source->num_left_over);
    return is_read && !*at ? WEIR_OK : fail_damaged(reader, "expected \"begun EPOCH NUMBER\"");
}

static int read_head(text_reader *reader)
{
    char *line = next_line(reader);
    uint64_t version;
    if (!line || strncmp(line, first_line, sizeof first_line - 1) != 0)
        return weir_error_set(reader->error, WEIR_EDATA, 0, "the text is not a checkpoint of weir");
    line += sizeof first_line - 1;
    if (!read_number(&line, 10, &version) || *line)
        return fail_damaged(reader, "the version is not a number");
    if (version != 2)
        return weir_error_set(
            reader->error, WEIR_EUNSUPPORTED, 0,
            "the checkpoint has format %" PRIu64
            ", but this library, version %s, reads only format 2: use a library of the version that "
            "wrote it",
            version, WEIR_VERSION);
    line = next_line(reader);
    if (!line || strncmp(line, "epoch", 5) != 0)
        return fail_damaged(reader, "expected \"epoch NUMBER\"");
    line += 5;
    return read_spaced(&line, 10, &reader->to->epoch) && !*line ? WEIR_OK
                                                                : fail_damaged(reader, "expected \"epoch NUMBER\"");
}

static int read_end(text_reader *reader, const char *line)
{
    char expected[WEIR__CHECKPOINT_END];
    if (*reader->at)
        return fail_damaged(reader, "there is text after \"end\"");
    weir__checkpoint_end(reader->text, (size_t)(line - reader->copy), expected);
    return strncmp(line, expected, strlen(expected) - 1) == 0 && strlen(line) == strlen(expected) - 1
               ? WEIR_OK
               : fail_damaged(reader, "the text is damaged: its hash does not match");
}

static int read_lines(text_reader *reader)
{
    int status = read_head(reader);
    for (char *line = NULL; status == WEIR_OK;) {
        line = next_line(reader);
        if (!line)
            return weir_error_set(reader->error, WEIR_EDATA, 0,
                                  "the checkpoint is cut off after line %" PRIu64
                                  ": its last line must begin with \"end\"",
                                  reader->line);
        if (strncmp(line, "end", 3) == 0)
            return read_end(reader, line);
        weir_done_source *source = last_source(reader);
        if (strncmp(line, "source", 6) == 0)
            status = read_source(reader, line + 6);
        else if (!source)
            status = fail_damaged(reader, "expected \"source NUMBER NAME\"");
        else if (strncmp(line, "  ", 2) == 0)
            status = read_source_text(reader, source, line + 2);
        else if (strncmp(line, "begun", 5) == 0)
            status = read_begun(reader, source, line + 5);
        else if (strncmp(line, "done", 4) == 0)
            status = read_done(reader, source, line + 4);
        else if (strncmp(line, "chunks", 6) == 0)
            status = read_chunks(reader, source, line + 6);
        else
            status = fail_damaged(reader, "unknown word");
    }
    return status;
}

static void describe_sources(weir_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->num_sources; i++) {
        weir_done_source *of = &checkpoint->sources[i];
        of->known = (weir_checkpoint_source){ of->name, of->text, checkpoint->epoch };
        uint64_t *last = &of->known.last_epoch;
        for (size_t j = 0; j < of->num_sets; j++)
            *last = of->sets[j].epoch > *last ? of->sets[j].epoch : *last;
        for (size_t j = 0; j < of->num_chunks; j++)
            *last = of->chunks[j].epoch > *last ? of->chunks[j].epoch : *last;
    }
}

int weir_checkpoint_read(const char *text, weir_checkpoint **checkpoint, weir_error *error)
{
    if (checkpoint)
        *checkpoint = NULL;
    if (!text || !checkpoint)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    char *copy = strdup(text);
    text_reader reader = {
        .at = copy, .copy = copy, .text = text, .to = calloc(1, sizeof *reader.to), .error = error
    };
    int status = copy && reader.to ? read_lines(&reader) : fail_parse_memory(error);
    free(copy);
    if (status == WEIR_OK) {
        describe_sources(reader.to);
        *checkpoint = reader.to;
    } else {
        weir_checkpoint_free(reader.to);
    }
    return status;
}

void weir_checkpoint_free(weir_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->num_sources; i++) {
        weir_done_source *source = &checkpoint->sources[i];
        for (size_t j = 0; j < source->num_sets; j++)
            free(source->sets[j].runs);
        free(source->sets);
        free(source->chunks);
        free(source->text);
        free(source->name);
    }
    free(checkpoint->sources);
    free(checkpoint);
}

/* ---- access ----------------------------------------------------------------------------------------------------- */

const weir_checkpoint_source *weir_checkpoint_source_at(const weir_checkpoint *checkpoint, size_t source)
{
    return checkpoint && source < checkpoint->num_sources ? &checkpoint->sources[source].known : NULL;
}

static const weir_done_set *find_parsed_set(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch)
{
    if (!checkpoint || source >= checkpoint->num_sources)
        return NULL;
    const weir_done_source *from = &checkpoint->sources[source];
    for (size_t i = 0; i < from->num_sets; i++)
        if (from->sets[i].epoch == epoch)
            return &from->sets[i];
    return NULL;
}

static bool is_epoch_done(const weir_checkpoint *checkpoint, uint64_t epoch)
{
    return checkpoint && epoch < checkpoint->epoch;
}

bool weir_checkpoint_is_done(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch, uint64_t seq)
{
    const weir_done_set *set = find_parsed_set(checkpoint, source, epoch);
    if (!set || seq < set->low)
        return set || is_epoch_done(checkpoint, epoch);
    size_t low = 0;
    for (size_t high = set->num_runs; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (set->runs[middle].last < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->num_runs && set->runs[low].first <= seq;
}

void weir_checkpoint_range(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch, uint64_t *low,
                           uint64_t *end)
{
    const weir_done_set *set = find_parsed_set(checkpoint, source, epoch);
    if (!low || !end)
        return;
    *low = set ? set->low : is_epoch_done(checkpoint, epoch) ? UINT64_MAX : 0;
    *end = set && set->num_runs ? set->runs[set->num_runs - 1].last + 1 : *low;
    for (size_t i = 0; checkpoint && source < checkpoint->num_sources && i < checkpoint->sources[source].num_chunks;
         i++) {
        const weir_done_chunk *chunk = &checkpoint->sources[source].chunks[i];
        if (chunk->epoch == epoch && chunk->seq >= *end)
            *end = chunk->seq + 1;
    }
}
