/* Settings: reading them from text, and applying them. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/similar_word.h"
#include "stats/advice/model/model.h"

typedef struct setting_row {
    const char *name;
    model_key key;
    double least, most;
    const char *wanted;
} setting_row;

#define A_COUNT "a whole number above 0"
#define A_TIME  "a time, such as 5ms or 0.2s, or a multiple, such as 0.5x"

static const setting_row of_pipeline[] = {
    { "threads", MODEL_THREADS, 1, WEIR_MAX_THREADS, A_COUNT },
    { "cpus", MODEL_CPUS, 0.01, WEIR_MAX_SLOTS, "a number above 0" },
    { "background", MODEL_BACKGROUND, 0, WEIR_MAX_SLOTS, "a number, 0 or more" },
    { NULL, 0, 0, 0, NULL },
};

static const setting_row of_stage[] = {
    { "concurrency", MODEL_CONCURRENCY, 1, WEIR_MAX_SLOTS, A_COUNT },
    { "threads", MODEL_THREADS, 0, WEIR_MAX_THREADS, "a whole number; 0 = it uses the pipeline's pool" },
    { "queue_items", MODEL_QUEUE_ITEMS, 1, WEIR_MAX_QUEUE_ITEMS, A_COUNT },
    { "queue_bytes", MODEL_QUEUE_BYTES, 0, 0x1p53, "a number of bytes; 0 = unlimited" },
    { "look_ahead_items", MODEL_LOOK_AHEAD_ITEMS, 0, WEIR_MAX_QUEUE_ITEMS, "a whole number; 0 = none" },
    { "output_order", MODEL_OUTPUT_ORDER, 0, 1, "completion or input" },
    { "time", MODEL_TIME, 0, 1e6, A_TIME },
    { "cpu_time", MODEL_CPU_TIME, 0, 1e6, A_TIME },
    { "wait_time", MODEL_WAIT_TIME, 0, 1e6, A_TIME },
    { NULL, 0, 0, 0, NULL },
};

static const setting_row *find_row(const setting_row *rows, const char *name)
{
    while (rows->name && strcmp(rows->name, name) != 0)
        rows++;
    return rows->name ? rows : NULL;
}

/* -- applying */

static void set_times(const model_setting *setting, weir_model_node *node)
{
    double rest_s = node->time_s - node->cpu_s;
    double all_s = setting->key == MODEL_TIME ? node->time_s : setting->key == MODEL_CPU_TIME ? node->cpu_s : rest_s;
    double to_s = setting->is_factor ? all_s * setting->value : setting->value;
    double factor = all_s > 0 ? to_s / all_s : 0;
    if (setting->key != MODEL_WAIT_TIME)
        node->cpu_s *= factor;
    if (setting->key != MODEL_CPU_TIME) {
        node->pending_s *= factor;
        rest_s *= factor;
    }
    if (all_s <= 0) { /* no time was measured: a task that only has a length waits */
        node->cpu_s = setting->key == MODEL_CPU_TIME ? to_s : node->cpu_s;
        rest_s = setting->key == MODEL_CPU_TIME ? rest_s : to_s;
    }
    node->time_s = node->cpu_s + rest_s;
}

static void apply_to_node(const model_setting *setting, weir_model_node *node)
{
    uint32_t count = (uint32_t)fmin(setting->value, UINT32_MAX);
    switch (setting->key) {
    case MODEL_CONCURRENCY: node->concurrency = count; break;
    case MODEL_THREADS: node->threads = count; break;
    case MODEL_QUEUE_ITEMS: node->queue_items = count; break;
    case MODEL_QUEUE_BYTES: node->queue_bytes = (uint64_t)setting->value; break;
    case MODEL_LOOK_AHEAD_ITEMS: node->look_ahead_items = count; break;
    case MODEL_OUTPUT_ORDER: node->output_order = (weir_order)count; break;
    default: set_times(setting, node); break;
    }
}

void weir__model_apply(const weir_model *model, model_state *state)
{
    for (size_t i = 0; i < model->num_settings; i++) {
        const model_setting *setting = &model->settings[i];
        if (setting->node < model->num_nodes)
            apply_to_node(setting, &state->nodes[setting->node]);
        else if (setting->key == MODEL_THREADS)
            state->threads = setting->value;
        else if (setting->key == MODEL_CPUS)
            state->cpus = setting->value;
        else
            state->background = setting->value;
    }
}

void weir__model_show(weir_model *model)
{
    weir_model_node *nodes = model->shown.nodes;
    if (model->num_nodes)
        memcpy(nodes, model->recorded.nodes, model->num_nodes * sizeof *nodes);
    model->shown = model->recorded;
    model->shown.nodes = nodes;
    weir__model_apply(model, &model->shown);
}

/* -- reading */

static bool parse_time(const char *text, double number, const char *unit, model_setting *setting)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "µs", 1e-6 }, { "ns", 1e-9 }, { "", 1 } };
    setting->is_factor = strcmp(unit, "x") == 0;
    setting->value = number;
    if (setting->is_factor)
        return unit > text;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0) {
            setting->value = number * units[i].seconds;
            return unit > text;
        }
    return false;
}

static bool parse_value(const setting_row *row, const char *text, model_setting *setting)
{
    char *unit;
    if (row->key == MODEL_OUTPUT_ORDER) {
        setting->value = strcmp(text, "input") == 0;
        return setting->value > 0 || strcmp(text, "completion") == 0;
    }
    if (!strchr("0123456789.", *text) || strspn(text, "0123456789.") == 0)
        return false;
    double number = strtod(text, &unit);
    if (row->key >= MODEL_TIME) {
        if (!parse_time(text, number, unit, setting))
            return false;
    } else {
        setting->value = number;
        bool is_whole = row->key != MODEL_CPUS && row->key != MODEL_BACKGROUND;
        if (*unit || (is_whole && number != floor(number)))
            return false;
    }
    return setting->value >= row->least && setting->value <= row->most;
}

/* "; did you mean concurrency?", or "". */
typedef struct similar_text {
    char text[80];
} similar_text;

static similar_text similar_to(const char *word, const char *const *words, size_t count)
{
    similar_text hint = { "" };
    const char *similar = weir__most_similar(word, words, count);
    if (similar)
        snprintf(hint.text, sizeof hint.text, "; did you mean %s?", similar);
    return hint;
}

static similar_text similar_setting(const setting_row *rows, const char *name)
{
    const char *words[16];
    size_t count = 0;
    for (; rows[count].name; count++)
        words[count] = rows[count].name;
    return similar_to(name, words, count);
}

/* By short names: "decode" of "0:1:decode[10]". */
static similar_text similar_stage(const weir_model *model, const char *name)
{
    char names[64][40];
    const char *words[64];
    size_t count = 0;
    for (; count < model->num_nodes && count < sizeof words / sizeof words[0]; count++) {
        const char *full = model->recorded.nodes[count].name, *colon = strrchr(full, ':');
        const char *begin = colon ? colon + 1 : full;
        snprintf(names[count], sizeof names[count], "%.*s", (int)strcspn(begin, "["), begin);
        words[count] = names[count];
    }
    return similar_to(name, words, count);
}

/* The row and the node of "decode.concurrency" or "threads". */
static int find_setting(const weir_model *model, const char *name, const setting_row **row, size_t *node,
                        weir_error *error)
{
    char stage[256] = "";
    const char *dot = strrchr(name, '.'), *setting = dot ? dot + 1 : name;
    const setting_row *rows = dot ? of_stage : of_pipeline;
    *row = find_row(rows, setting);
    *node = SIZE_MAX;
    if (!*row)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%s: no such setting%s (there are threads, cpus, background, and STAGE.concurrency, "
                              ".threads, .queue_items, .queue_bytes, .look_ahead_items, .output_order, .time, "
                              ".cpu_time and .wait_time)",
                              name, similar_setting(rows, setting).text);
    if (!dot)
        return WEIR_OK;
    snprintf(stage, sizeof stage, "%.*s", (int)(dot - name), name);
    *node = weir__model_find(model, stage);
    if (*node < model->num_nodes)
        return WEIR_OK;
    char names[400] = "";
    for (size_t i = 0, used = 0; i < model->num_nodes && used < sizeof names; i++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", model->recorded.nodes[i].name);
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s: no stage, or more than one, is called %s%s (there are %s)",
                          name, stage, similar_stage(model, stage).text, names);
}

/* Whether the way from a join upstream to its route passes the node. num_open: joins on this way that were not closed by
   their routes. */
static bool is_in_branches(const weir_model *model, size_t join, size_t node, int num_open)
{
    for (uint32_t i = 0; i < model->recorded.nodes[join].num_inputs; i++) {
        size_t input = model->recorded.nodes[join].inputs[i];
        const weir_model_node *from = &model->recorded.nodes[input];
        bool is_route = from->num_shares > 1;
        if (input == node)
            return true;
        if ((!is_route || num_open > 0) &&
            is_in_branches(model, input, node, num_open + (from->num_inputs > 1) - is_route))
            return true;
    }
    return false;
}

/* All stages before a join that restores the order keep the input order, from its route on. */
static bool must_keep_order(const weir_model *model, size_t node)
{
    for (size_t i = node + 1; i < model->num_nodes; i++) {
        const weir_model_node *join = &model->recorded.nodes[i];
        if (join->num_inputs > 1 && join->output_order == WEIR_ORDER_INPUT && is_in_branches(model, i, node, 0))
            return true;
    }
    return false;
}

/* What the engine would refuse, or what would have no effect. */
static const char *mistake_in_setting(const weir_model *model, const model_setting *setting)
{
    if (setting->node >= model->num_nodes)
        return NULL;
    const weir_model_node *node = &model->shown.nodes[setting->node];
    bool is_stage = strcmp(node->kind, "stage") == 0 || strcmp(node->kind, "route") == 0;
    bool is_merge = strcmp(node->kind, "merge") == 0, is_source = strcmp(node->kind, "source") == 0;
    if (setting->key == MODEL_CONCURRENCY && !is_stage && setting->value > 1)
        return "only stages and routes have more than one slot";
    if (setting->key == MODEL_THREADS && !is_stage && !is_source)
        return "only sources, stages and routes have threads";
    if (setting->key == MODEL_OUTPUT_ORDER && !is_stage)
        return "only stages and routes have an order of results that can be changed";
    if (setting->key == MODEL_OUTPUT_ORDER && setting->value != WEIR_ORDER_INPUT &&
        must_keep_order(model, setting->node))
        return "a join after it restores the order, so its results are in input order, too";
    if (setting->key >= MODEL_TIME && is_merge)
        return "a merge takes no time";
    return NULL;
}

int weir__model_set(weir_model *model, const char *name, const char *value, weir_error *error)
{
    if (!model || !name || !value)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    const setting_row *row;
    model_setting setting = { 0 };
    int status = find_setting(model, name, &row, &setting.node, error);
    if (status != WEIR_OK)
        return status;
    setting.key = row->key;
    if (!parse_value(row, value, &setting))
        return weir_error_set(error, WEIR_EINVAL, 0, "%s=%s: the value must be %s", name, value, row->wanted);
    const char *mistake = mistake_in_setting(model, &setting);
    if (mistake)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s: %s", name, mistake);
    size_t at = 0;
    while (at < model->num_settings &&
           (model->settings[at].node != setting.node || model->settings[at].key != setting.key))
        at++;
    if (at == model->num_settings) {
        model_setting *settings = weir__array_grow(model->settings, model->num_settings, sizeof *settings);
        if (!settings)
            return weir__model_no_memory(error);
        model->settings = settings;
        model->num_settings++;
    }
    model->settings[at] = setting;
    weir__model_show(model);
    return WEIR_OK;
}

void weir__model_reset(weir_model *model)
{
    if (!model)
        return;
    model->num_settings = 0;
    weir__model_show(model);
}
