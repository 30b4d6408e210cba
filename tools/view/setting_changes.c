#include "setting_changes.h"

#include <inttypes.h>
#include <string.h>

#include <weir/escape.h>

#include "table.h"

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
        weir_text_escape_to(out, s->words[side]);
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
                weir_text_escape_to(out, pair->key);
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
    else if (num_known && are_same_nodes)
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
    putchar(']');
}
