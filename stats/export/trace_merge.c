/* One trace from several, in constant memory: each event is read, changed and written. */
#include <weir/trace_file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* otherwise it ends the process */
#include <uthash.h>

#include "trace_output.h"
#include "trace_path.h"
#include "trace_reader.h"

enum { WRITE_BYTES = 1 << 18, UNIX_TIMES_US = 1000000000 };

/* The number of a process in the result. */
typedef struct process {
    int64_t pid;
    int64_t merged_pid;
    UT_hash_handle hh;
} process;

typedef struct input {
    const char *path;
    bool has_clock;
    int64_t unix_ns; /* has_clock: at time 0 */
    int64_t first_ns;
    process *processes;
} input;

typedef struct merge {
    input *inputs;
    size_t num_inputs;
    int64_t base_unix_ns; /* of the result's time 0 */
    int64_t num_processes;
    weir_trace_text out;
    weir_trace_output *output;
    weir_error *error;
} merge;

/* ---- clocks -------------------------------------------------------------------------------------------------- */

static bool is_metadata(const char *event)
{
    return weir_trace_value_is(weir_trace_member(event, "ph"), "M");
}

/* Looks for the clock, which files of weir have among their first events, and for the first time. */
static int look_at(input *in, weir_error *error)
{
    enum { MAX_EVENTS = 1000 };
    weir_trace_reader *reader;
    const char *event;
    bool has_time = false;
    int failure = weir_trace_reader_open(in->path, &reader);
    if (failure)
        return weir__trace_fail(error, failure, "cannot read", in->path);
    for (int i = 0; i < MAX_EVENTS && !in->has_clock && (event = weir_trace_reader_next(reader)); i++) {
        int64_t at_ns = weir_trace_value_ns(weir_trace_member(event, "ts"));
        if (weir_trace_value_is(weir_trace_member(event, "name"), "weir_trace")) {
            in->unix_ns = weir_trace_value_int(weir_trace_member(weir_trace_member(event, "args").text, "unix_ns"));
            in->has_clock = in->unix_ns > 0 && in->unix_ns < WEIR_TRACE_MAX_NS;
            in->unix_ns = in->has_clock ? in->unix_ns : 0;
        } else if (!is_metadata(event) && (!has_time || at_ns < in->first_ns)) {
            in->first_ns = at_ns;
            has_time = true;
        }
    }
    failure = weir_trace_reader_failure(reader);
    weir_trace_reader_close(reader);
    if (failure)
        return weir__trace_fail(error, failure, "cannot read", in->path);
    if (!in->has_clock && in->first_ns / 1000 / 1000 > UNIX_TIMES_US) { /* microseconds since 1970 */
        in->has_clock = true;
        in->unix_ns = 0;
    }
    return WEIR_OK;
}

static void choose_base(merge *all)
{
    bool found = false;
    for (size_t i = 0; i < all->num_inputs; i++) {
        const input *in = &all->inputs[i];
        int64_t begin_ns = in->unix_ns ? in->unix_ns : in->first_ns;
        if (in->has_clock && (!found || begin_ns < all->base_unix_ns))
            all->base_unix_ns = begin_ns;
        found |= in->has_clock;
    }
}

/* ---- events -------------------------------------------------------------------------------------------------- */

/* 0 is of nobody: it is written in every file. */
static int64_t merged_pid(merge *all, input *in, int64_t pid)
{
    process *known;
    HASH_FIND(hh, in->processes, &pid, sizeof pid, known);
    if (known)
        return known->merged_pid;
    if ((known = calloc(1, sizeof *known))) {
        known->pid = pid;
        known->merged_pid = ++all->num_processes;
        HASH_ADD(hh, in->processes, pid, sizeof pid, known);
        if (known->hh.tbl)
            return known->merged_pid;
        free(known);
    }
    all->out.no_memory = true;
    return 0;
}

/* Copies the members of the event; those that are positions among the inputs are changed. */
static void put_event(merge *all, input *in, const char *event)
{
    weir_trace_text *out = &all->out;
    weir_trace_value pid = weir_trace_member(event, "pid"), at = weir_trace_member(event, "ts");
    weir_trace_value id = weir_trace_member(event, "id");
    int64_t shift_ns = in->has_clock ? in->unix_ns - all->base_unix_ns : -in->first_ns;
    const char *begin = event;
    const struct {
        weir_trace_value value;
        int what;
    } changes[] = { { pid, 0 }, { at, 1 }, { id, 2 } };
    size_t start = out->length;
    for (int num_left = 3; num_left > 0; num_left--) { /* in the order of the text */
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (changes[i].value.text >= begin && (next < 0 || changes[i].value.text < changes[next].value.text))
                next = i;
        if (next < 0)
            break;
        weir_trace_value value = changes[next].value;
        weir_trace_put(out, begin, (size_t)(value.text - begin));
        if (next == 0) {
            weir_trace_put_int(out, merged_pid(all, in, weir_trace_value_int(value)));
        } else if (next == 1) {
            weir_trace_put_us(out, is_metadata(event) ? 0 : weir_trace_value_ns(value) + shift_ns);
        } else { /* arrows and asynchronous spans of two inputs do not belong together */
            char text[32];
            uint64_t hash = weir_trace_hash(value.text, value.length, (uint64_t)(in - all->inputs) + 1);
            snprintf(text, sizeof text, "\"0x%016llx\"", (unsigned long long)hash);
            weir_trace_puts(out, text);
        }
        begin = value.text + value.length;
    }
    weir_trace_puts(out, begin);
    weir_trace_puts(out, ",\n");
    if (out->no_memory)
        out->length = start;
}

static bool is_wanted(const char *event)
{
    weir_trace_value name = weir_trace_member(event, "name");
    return !weir_trace_value_is(name, "weir_trace") && !weir_trace_value_is(name, "weir_end");
}

static int write_out(merge *all)
{
    bool no_memory = all->out.no_memory;
    int failure = weir_trace_output_write(all->output, &all->out);
    all->out.length = 0;
    return no_memory ? ENOMEM : failure;
}

static int copy_events(merge *all, input *in, const char *out_path)
{
    weir_trace_reader *reader;
    const char *event;
    int failure = weir_trace_reader_open(in->path, &reader), written = 0;
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    while (written == 0 && (event = weir_trace_reader_next(reader))) {
        if (is_wanted(event))
            put_event(all, in, event);
        if (all->out.length > WRITE_BYTES)
            written = write_out(all);
    }
    failure = weir_trace_reader_failure(reader);
    weir_trace_reader_close(reader);
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    if (written == 0)
        written = write_out(all);
    return written ? weir__trace_fail(all->error, written, "cannot write trace", out_path) : WEIR_OK;
}

/* ---- the merge ----------------------------------------------------------------------------------------------- */

static int merge_into(merge *all, const char *out_path)
{
    weir_trace_text head = { 0 };
    int status = WEIR_OK;
    for (size_t i = 0; i < all->num_inputs && status == WEIR_OK; i++)
        status = look_at(&all->inputs[i], all->error);
    if (status != WEIR_OK)
        return status;
    choose_base(all);
    weir_trace_puts(&head, WEIR_TRACE_CLOCK);
    weir_trace_put_int(&head, all->base_unix_ns);
    weir_trace_puts(&head, "}},\n");
    int failure = head.no_memory ? ENOMEM : weir_trace_output_open(out_path, &head, 0, false, &all->output);
    if (failure)
        status = weir__trace_fail(all->error, failure, "cannot write trace", out_path);
    for (size_t i = 0; i < all->num_inputs && status == WEIR_OK; i++)
        status = copy_events(all, &all->inputs[i], out_path);
    if (status != WEIR_OK)
        weir_trace_output_abandon(all->output);
    failure = weir_trace_output_close(all->output);
    weir_trace_text_free(&head);
    return status != WEIR_OK || !failure ? status
                                         : weir__trace_fail(all->error, failure, "cannot write trace", out_path);
}

int weir_trace_merge(const char *out_path, const char *const *in_paths, size_t num_ins, weir_error *error)
{
    if (!out_path || !in_paths || num_ins == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    for (size_t i = 0; i < num_ins; i++)
        if (!in_paths[i] || strcmp(in_paths[i], out_path) == 0)
            return weir_error_set(error, WEIR_EINVAL, 0, "the merged trace would replace one of its inputs");
    merge all = { .num_inputs = num_ins, .error = error, .inputs = calloc(num_ins, sizeof *all.inputs) };
    if (!all.inputs)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory to merge traces");
    for (size_t i = 0; i < num_ins; i++)
        all.inputs[i].path = in_paths[i];
    int status = merge_into(&all, out_path);
    for (size_t i = 0; i < num_ins; i++) {
        process *next;
        for (process *one = all.inputs[i].processes; one; one = next) {
            next = one->hh.next;
            HASH_DELETE(hh, all.inputs[i].processes, one);
            free(one);
        }
    }
    weir_trace_text_free(&all.out);
    free(all.inputs);
    return status;
}
