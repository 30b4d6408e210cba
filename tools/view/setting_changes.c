#include "setting_changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "table.h"
#include "text_escape.h"

typedef struct setting {
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
    const char *colon = strrchr(pair->key, ':');
    bool is_node = pair->subject == WEIR_SUBJECT_STAGE || pair->subject == WEIR_SUBJECT_FLOW;
    bool is_pool = pair->subject == WEIR_SUBJECT_POOL && strcmp(colon ? colon + 1 : pair->key, "pool") == 0;
    if (is_pool || pair->subject == WEIR_SUBJECT_PROCESS) {
        settings[0] = (setting){ is_pool ? "threads" : "cpus", { a->capacity, b->capacity }, { NULL }, NULL };
        return 1;
    }
    if (!is_node || !x->output_order || !y->output_order)
        return 0;
    const setting all[MOST_SETTINGS] = {
        { "concurrency", { x->concurrency, y->concurrency }, { NULL }, NULL },
        { "threads", { x->threads, y->threads }, { NULL }, "none of its own" },
        { "queue_items", { x->queue_items, y->queue_items }, { NULL }, NULL },
        { "queue_bytes", { x->queue_bytes, y->queue_bytes }, { NULL }, "unlimited" },
        { "output_order", { 0 }, { x->output_order, y->output_order }, NULL },
        { "merge_order", { 0 }, { x->merge_order, y->merge_order }, NULL },
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

static void say_value(FILE *out, const setting *s, int side)
{
    if (s->words[0])
        weir__text_escape_to(out, s->words[side]);
    else if (s->numbers[side] <= 0)
        fputs(s->zero, out);
    else
        fprintf(out, "%" PRId64, s->numbers[side]);
}

/* A node that is not, or of which nothing is known, in the other recording. */
static bool is_on_one_side(const comparison_pair *pair)
{
    return !pair->sides[0].built.output_order != !pair->sides[1].built.output_order;
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

/* A word of a command, with the option that it is the value of. */
typedef struct command_part {
    const char *start;
    size_t length;
} command_part;

/* The next part behind the program; *at is where it looks. Length 0 = there is none. */
static command_part next_part(const char **at)
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
            return (command_part){ start, length };
    }
    return (command_part){ *at, 0 };
}

static const char *arguments_of(const char *command)
{
    return command ? command + strcspn(command, " ") : "";
}

static bool has_part(const char *command, const command_part *wanted)
{
    const char *at = arguments_of(command);
    for (command_part part; (part = next_part(&at)).length;)
        if (part.length == wanted->length && memcmp(part.start, wanted->start, part.length) == 0)
            return true;
    return false;
}

/* Writes what the command of a side has and the other one does not. Returns how much that is. */
static size_t put_parts(FILE *out, const lap_comparison *c, int side)
{
    size_t count = 0;
    char text[1024];
    const char *at = arguments_of(c->commands[side]);
    for (command_part part; (part = next_part(&at)).length;)
        if (!has_part(c->commands[!side], &part)) {
            snprintf(text, sizeof text, "%.*s", (int)part.length, part.start);
            fputs(count++ ? " " : "", out);
            weir__text_escape_to(out, text);
        }
    return count;
}

bool setting_changes_other_job(const lap_comparison *c)
{
    for (int side = 0; side < 2 && c->commands[0] && c->commands[1]; side++) {
        const char *at = arguments_of(c->commands[side]);
        for (command_part part; (part = next_part(&at)).length;)
            if (!has_part(c->commands[!side], &part))
                return true;
    }
    return false;
}

/* "Only the command of A has: videos --first 16" */
static void say_commands(FILE *out, const lap_comparison *c)
{
    for (int side = 0; side < 2 && setting_changes_other_job(c); side++) {
        char *text = NULL;
        size_t size;
        FILE *memory = memory_file_open(&text, &size);
        size_t count = put_parts(memory, c, side);
        memory_file_close(memory);
        if (count)
            fprintf(out, "Only the command of %c has: %s\n", "AB"[side], text);
        free(text);
    }
}

void setting_changes_say(FILE *out, const lap_comparison *c)
{
    setting settings[MOST_SETTINGS];
    size_t num_known = 0, num_told = 0;
    bool are_same_nodes = true;
    for (size_t i = 0; i < c->num_pairs; i++) {
        const comparison_pair *pair = &c->pairs[i];
        size_t count = settings_of(pair, settings), told_before = num_told;
        num_known += count > 1;
        are_same_nodes &= !is_on_one_side(pair);
        for (size_t j = 0; j < count; j++) {
            if (!differs(&settings[j]))
                continue;
            fputs(num_told == 0 ? "Settings of B that differ: " : num_told > told_before ? ", " : "; ", out);
            if (count > 1 && num_told == told_before) {
                weir__text_escape_to(out, pair->key);
                fputc('.', out);
            }
            fprintf(out, "%s ", settings[j].name);
            say_value(out, &settings[j], 1);
            fputs(" instead of ", out);
            say_value(out, &settings[j], 0);
            num_told++;
        }
    }
    if (num_told)
        fputs(".\n", out);
    say_commands(out, c);
    if (!num_told && num_known && are_same_nodes && !setting_changes_other_job(c))
        fputs("All settings in the recordings are the same.\n", out);
}

static void put_json_value(const setting *s, int side)
{
    if (s->words[0])
        json_string(stdout, s->words[side]);
    else
        printf("%" PRId64, s->numbers[side]);
}

void setting_changes_put_json(const lap_comparison *c)
{
    setting settings[MOST_SETTINGS];
    const char *comma = "";
    putchar('[');
    for (size_t i = 0; i < c->num_pairs; i++) {
        size_t count = settings_of(&c->pairs[i], settings);
        for (size_t j = 0; j < count; j++) {
            if (!differs(&settings[j]))
                continue;
            printf("%s{\"name\": ", comma);
            json_string(stdout, count > 1 ? c->pairs[i].key : "");
            printf(", \"setting\": \"%s\", \"a\": ", settings[j].name);
            put_json_value(&settings[j], 0);
            fputs(", \"b\": ", stdout);
            put_json_value(&settings[j], 1);
            putchar('}');
            comma = ", ";
        }
    }
    for (int side = 0; side < 2; side++) {
        const char *at = arguments_of(c->commands[side]);
        for (command_part part; (part = next_part(&at)).length;)
            if (!has_part(c->commands[!side], &part)) {
                char text[1024];
                snprintf(text, sizeof text, "%.*s", (int)part.length, part.start);
                printf("%s{\"name\": \"\", \"setting\": \"command\", \"%s\": null, \"%s\": ", comma, side ? "a" : "b",
                       side ? "b" : "a");
                json_string(stdout, text);
                putchar('}');
                comma = ", ";
            }
    }
    putchar(']');
}
