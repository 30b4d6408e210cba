#include "tools/view/setting_changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/export.h>

#include "common/text_escape.h"
#include "tools/cli/memory.h"
#include "tools/cli/table.h"

static void add_change(setting_changes *changes, setting_change change)
{
    changes->all = memory_grow(changes->all, changes->count, sizeof *changes->all);
    changes->all[changes->count++] = change;
}

/* zero: see setting_change; "" = 0 means that it is not known. */
static void add_numbers(setting_changes *changes, const char *node, const char *name, int64_t a, int64_t b,
                        const char *zero)
{
    if (a != b && (*zero || (a > 0 && b > 0)))
        add_change(changes, (setting_change){
                                node, name, { memory_format("%" PRId64, a), memory_format("%" PRId64, b) }, zero });
}

static void add_words(setting_changes *changes, const char *node, const char *name, const char *a, const char *b)
{
    if (*a && *b && strcmp(a, b) != 0)
        add_change(changes, (setting_change){ node, name, { memory_copy(a), memory_copy(b) }, NULL });
}

/* How a node was built; of several runs, in the last one. NULL = not known. */
static const weir_stage_record *built_as(const comparison_side *side, const weir_total *node)
{
    const weir_stage_record *found = NULL;
    for (size_t i = 0; i < side->stages.count && node; i++)
        if (strcmp(side->stages.all[i]->stage.name, node->key.name) == 0)
            found = &side->stages.all[i]->stage;
    return found;
}

static void add_node(setting_changes *changes, const lap_comparison *c, const comparison_pair *pair)
{
    const weir_stage_record *a = built_as(&c->sides[0], pair->sides[0]), *b = built_as(&c->sides[1], pair->sides[1]);
    changes->are_same &= a && b;
    if (!a || !b)
        return;
    add_numbers(changes, pair->key, "concurrency", a->concurrency, b->concurrency, "");
    add_numbers(changes, pair->key, "threads", a->threads, b->threads, "none of its own");
    add_numbers(changes, pair->key, "queue_items", a->queue_items, b->queue_items, "");
    add_numbers(changes, pair->key, "queue_bytes", a->queue_bytes, b->queue_bytes, "unlimited");
    add_numbers(changes, pair->key, "look_ahead_items", a->look_ahead_items, b->look_ahead_items, "none");
    add_words(changes, pair->key, "output_order", a->output_order, b->output_order);
    add_words(changes, pair->key, "merge_order", a->merge_order, b->merge_order);
}

/* -- command lines: what is decoded, and how */

static bool is_option(const char *name, const char *word, size_t length)
{
    return length > 2 && strlen(name) == length - 2 && memcmp(word, "--", 2) == 0 &&
           memcmp(word + 2, name, length - 2) == 0;
}

/* Options with a value. Either they are settings, which are reported, or they say where a recording goes. */
static bool is_reported(const char *word, size_t length)
{
    static const char *const reported[] = { "concurrency", "threads", "queue-items",        "queue-bytes",
                                            "order",       "db-path", "source-queue-items", "sink-queue-items",
                                            "log-interval" };
    const weir_export_format *format;
    for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
        if (is_option(reported[i], word, length))
            return true;
    for (size_t i = 0; (format = weir_export_at(i)); i++)
        if (format->live_help && is_option(format->name, word, length))
            return true;
    return false;
}

/* The next part behind the program, an option with its value or a word, to be freed; *at is where it looks. NULL = there
   is none. */
static char *next_part(const char **at)
{
    for (*at += strspn(*at, " "); **at;) {
        const char *start = *at;
        size_t length = strcspn(start, " "), name = strcspn(start, " =");
        const char *next = start + length + strspn(start + length, " ");
        bool has_value = *start == '-' && name == length && *next && *next != '-';
        if (has_value)
            length = (size_t)(next - start) + strcspn(next, " ");
        *at = start + length + strspn(start + length, " ");
        if (!is_reported(start, name))
            return memory_format("%.*s", (int)length, start);
    }
    return NULL;
}

static const char *arguments_of(const lap_comparison *c, int side)
{
    const char *command = c->sides[side].command ? c->sides[side].command : "";
    return command + strcspn(command, " ");
}

static bool has_part(const lap_comparison *c, int side, const char *part)
{
    const char *at = arguments_of(c, side);
    bool is_there = false;
    for (char *own; !is_there && (own = next_part(&at)); free(own))
        is_there = strcmp(own, part) == 0;
    return is_there;
}

static void add_command(setting_changes *changes, const lap_comparison *c, int side)
{
    const char *at = arguments_of(c, side);
    for (char *part; (part = next_part(&at));) {
        setting_change change = { "", "command", { NULL }, NULL };
        change.values[side] = part;
        if (has_part(c, !side, part))
            free(part);
        else
            add_change(changes, change);
    }
}

/* -- all of them */

setting_changes setting_changes_find(const lap_comparison *c)
{
    setting_changes changes = { .are_same = true };
    for (const comparison_pair *pair = c->pairs; pair && pair < c->pairs + c->num_pairs; pair++) {
        const char *colon = strrchr(pair->key, ':');
        bool is_pool = pair->subject == WEIR_SUBJECT_POOL && strcmp(colon ? colon + 1 : pair->key, "pool") == 0;
        if (pair->subject <= WEIR_SUBJECT_FLOW && (pair->sides[0] || pair->sides[1]))
            add_node(&changes, c, pair);
        else if ((is_pool || pair->subject == WEIR_SUBJECT_PROCESS) && pair->sides[0] && pair->sides[1])
            add_numbers(&changes, "", is_pool ? "threads" : "cpus", pair->sides[0]->capacity,
                        pair->sides[1]->capacity, "");
    }
    size_t num_settings = changes.count;
    add_command(&changes, c, 0);
    add_command(&changes, c, 1);
    changes.is_other_job = changes.count > num_settings;
    changes.are_same &= changes.count == 0 && c->sides[0].stages.count;
    for (size_t i = 0; i < c->sides[0].stages.count; i++)
        changes.are_recorded |= c->sides[0].stages.all[i]->stage.concurrency > 0;
    return changes;
}

void setting_changes_free(setting_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->all[i].values[0]);
        free(changes->all[i].values[1]);
    }
    free(changes->all);
}

static void say_value(FILE *out, const setting_change *s, int side)
{
    weir__text_escape_to(out, s->zero && strcmp(s->values[side], "0") == 0 ? s->zero : s->values[side]);
}

static void say_settings(FILE *out, const setting_changes *changes)
{
    const setting_change *last = NULL;
    for (const setting_change *s = changes->all; s && s < changes->all + changes->count; s++) {
        if (!s->values[0] || !s->values[1])
            continue;
        bool is_next = !last || !*s->node || s->node != last->node;
        fputs(!last ? "Settings of B that differ: " : is_next ? "; " : ", ", out);
        if (*s->node && is_next) {
            weir__text_escape_to(out, s->node);
            fputc('.', out);
        }
        fprintf(out, "%s ", s->name);
        say_value(out, s, 1);
        fputs(" instead of ", out);
        say_value(out, s, 0);
        last = s;
    }
    fputs(last ? ".\n" : "", out);
}

/* "Only the command of A has: videos --first 16" */
static void say_command(FILE *out, const setting_changes *changes, int side)
{
    const char *between = side ? "Only the command of B has: " : "Only the command of A has: ";
    for (const setting_change *s = changes->all; s && s < changes->all + changes->count; s++)
        if (s->values[side] && !s->values[!side]) {
            fputs(between, out);
            weir__text_escape_to(out, s->values[side]);
            between = " ";
        }
    fputs(*between == ' ' ? "\n" : "", out);
}

void setting_changes_say(FILE *out, const setting_changes *changes)
{
    say_settings(out, changes);
    say_command(out, changes, 0);
    say_command(out, changes, 1);
    if (changes->are_same)
        fputs(changes->are_recorded ? "All settings in the recordings are the same.\n"
                                    : "The recordings do not say with which settings they were made.\n",
              out);
}

void setting_changes_put_json(const setting_changes *changes)
{
    static const table_column columns[] = {
        { "name", NULL, TABLE_WORDS },
        { "setting", NULL, TABLE_WORDS },
        { "a", NULL, TABLE_WORDS },
        { "b", NULL, TABLE_WORDS },
    };
    table *t = table_begin(stdout, TABLE_JSON, TABLE_COLUMNS(columns));
    for (const setting_change *s = changes->all; s && s < changes->all + changes->count; s++) {
        table_words(t, s->node);
        table_words(t, s->name);
        for (int side = 0; side < 2; side++)
            if (!s->values[side])
                table_nothing(t);
            else if (s->zero)
                table_count(t, strtoll(s->values[side], NULL, 10));
            else
                table_words(t, s->values[side]);
    }
    table_end(t);
}
