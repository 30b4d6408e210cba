#include "setting_changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "table.h"
#include "text_escape.h"

typedef struct setting {
    const char *node; /* "" = of the whole run */
    const char *name; /* as for weir whatif --set */
    int64_t numbers[2];
    const char *words[2]; /* NULL = numbers */
    const char *zero;     /* what 0 means; NULL = not known */
} setting;

enum { MOST_SETTINGS = 6 };

/* The settings of a pair that both sides know. Returns how many. */
static size_t settings_of(const comparison_pair *pair, setting settings[MOST_SETTINGS])
{
    const comparison_side *a = &pair->sides[0], *b = &pair->sides[1];
    const comparison_settings *x = &a->built, *y = &b->built;
    const char *key = pair->key, *colon = strrchr(key, ':');
    bool is_node = pair->subject == WEIR_SUBJECT_STAGE || pair->subject == WEIR_SUBJECT_FLOW;
    bool is_pool = pair->subject == WEIR_SUBJECT_POOL && strcmp(colon ? colon + 1 : key, "pool") == 0;
    if (is_pool || pair->subject == WEIR_SUBJECT_PROCESS) {
        settings[0] = (setting){ "", is_pool ? "threads" : "cpus", { a->capacity, b->capacity }, { NULL }, NULL };
        return 1;
    }
    if (!is_node || !x->output_order || !y->output_order)
        return 0;
    const setting all[MOST_SETTINGS] = {
        { key, "concurrency", { x->concurrency, y->concurrency }, { NULL }, NULL },
        { key, "threads", { x->threads, y->threads }, { NULL }, "none of its own" },
        { key, "queue_items", { x->queue_items, y->queue_items }, { NULL }, NULL },
        { key, "queue_bytes", { x->queue_bytes, y->queue_bytes }, { NULL }, "unlimited" },
        { key, "output_order", { 0 }, { x->output_order, y->output_order }, NULL },
        { key, "merge_order", { 0 }, { x->merge_order, y->merge_order }, NULL },
    };
    memcpy(settings, all, sizeof all);
    return MOST_SETTINGS;
}

static bool differs(const setting *s)
{
    if (s->words[0])
        return *s->words[0] && *s->words[1] && strcmp(s->words[0], s->words[1]) != 0;
    bool is_known = s->zero || (s->numbers[0] > 0 && s->numbers[1] > 0);
    return is_known && s->numbers[0] != s->numbers[1];
}

/* The settings that differ, to be freed. *are_same: all are known, and none differs. */
static setting *find_changes(const lap_comparison *c, size_t *count, bool *are_same)
{
    setting settings[MOST_SETTINGS], *changes = NULL;
    size_t num_known = 0;
    bool are_same_nodes = true;
    *count = 0;
    for (size_t i = 0; i < c->num_pairs; i++) {
        const comparison_pair *pair = &c->pairs[i];
        size_t num_settings = settings_of(pair, settings);
        num_known += num_settings > 1;
        are_same_nodes &= !pair->sides[0].built.output_order == !pair->sides[1].built.output_order;
        for (size_t j = 0; j < num_settings; j++)
            if (differs(&settings[j])) {
                changes = memory_grow(changes, *count, sizeof *changes);
                changes[(*count)++] = settings[j];
            }
    }
    *are_same = *count == 0 && num_known && are_same_nodes;
    return changes;
}

static void say_value(FILE *out, const setting *s, int side)
{
    if (s->words[0])
        weir__text_escape_to(out, s->words[side]);
    else if (s->numbers[side] <= 0)
        fputs(s->zero, out);
    else
        fprintf(out, "%" PRId64, s->numbers[side]);
}

/* -- command lines: what is decoded, and how */

/* Options with a value that are settings, which are told, or say where a recording goes. */
static bool is_told(const char *word, size_t length)
{
    static const char *const told[] = {
        "--concurrency",        "--threads",          "--queue-items",  "--queue-bytes", "--order",       "--db-path",
        "--source-queue-items", "--sink-queue-items", "--log-interval", "--openmetrics", "--tensorboard", "--trace"
    };
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strlen(told[i]) == length && memcmp(told[i], word, length) == 0)
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
        if (!is_told(start, name))
            return memory_format("%.*s", (int)length, start);
    }
    return NULL;
}

static const char *arguments_of(const lap_comparison *c, int side)
{
    const char *command = c->commands[side] ? c->commands[side] : "";
    return command + strcspn(command, " ");
}

/* The next part that the command of the other side does not have. */
static char *next_own_part(const lap_comparison *c, int side, const char **at)
{
    bool is_shared = true;
    char *part = NULL;
    while (is_shared) {
        free(part);
        part = next_part(at);
        is_shared = false;
        const char *other_at = arguments_of(c, !side);
        for (char *other; part && !is_shared && (other = next_part(&other_at)); free(other))
            is_shared = strcmp(part, other) == 0;
    }
    return part;
}

bool setting_changes_other_job(const lap_comparison *c)
{
    bool differ = false;
    for (int side = 0; side < 2 && !differ; side++) {
        const char *at = arguments_of(c, side);
        char *part = next_own_part(c, side, &at);
        differ = part;
        free(part);
    }
    return differ;
}

/* "Only the command of A has: videos --first 16" */
static void say_commands(FILE *out, const lap_comparison *c)
{
    for (int side = 0; side < 2; side++) {
        const char *at = arguments_of(c, side);
        size_t count = 0;
        for (char *part; (part = next_own_part(c, side, &at)); free(part)) {
            if (count++ == 0)
                fprintf(out, "Only the command of %c has:", "AB"[side]);
            fputc(' ', out);
            weir__text_escape_to(out, part);
        }
        fputs(count ? "\n" : "", out);
    }
}

void setting_changes_say(FILE *out, const lap_comparison *c)
{
    size_t count;
    bool are_same;
    setting *changes = find_changes(c, &count, &are_same);
    for (size_t i = 0; i < count; i++) {
        const setting *s = &changes[i];
        bool is_next = i > 0 && (!*s->node || s->node != s[-1].node);
        fputs(i == 0 ? "Settings of B that differ: " : is_next ? "; " : ", ", out);
        if (*s->node && (i == 0 || is_next)) {
            weir__text_escape_to(out, s->node);
            fputc('.', out);
        }
        fprintf(out, "%s ", s->name);
        say_value(out, s, 1);
        fputs(" instead of ", out);
        say_value(out, s, 0);
    }
    fputs(count ? ".\n" : "", out);
    free(changes);
    say_commands(out, c);
    if (are_same && !setting_changes_other_job(c))
        fputs("All settings in the recordings are the same.\n", out);
}

void setting_changes_put_json(const lap_comparison *c)
{
    size_t count;
    bool are_same;
    setting *changes = find_changes(c, &count, &are_same);
    for (size_t i = 0; i < count; i++) {
        const setting *s = &changes[i];
        json_print(stdout, i ? ", {'name': %s, 'setting': %s, " : "[{'name': %s, 'setting': %s, ", s->node, s->name);
        if (s->words[0])
            json_print(stdout, "'a': %s, 'b': %s}", s->words[0], s->words[1]);
        else
            json_print(stdout, "'a': %" PRId64 ", 'b': %" PRId64 "}", s->numbers[0], s->numbers[1]);
    }
    free(changes);
    for (int side = 0; side < 2; side++) {
        const char *at = arguments_of(c, side);
        for (char *part; (part = next_own_part(c, side, &at)); free(part), count++) {
            fputs(count ? ", " : "[", stdout);
            json_print(stdout, "{'name': '', 'setting': 'command', %s: null, %s: %s}", side ? "a" : "b",
                       side ? "b" : "a", part);
        }
    }
    fputs(count ? "]" : "[]", stdout);
}
