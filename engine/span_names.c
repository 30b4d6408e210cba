/* The names of spans and counters. They are never freed, so that programs can keep pointers to them. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 200 };

static weir_span_name *names[WEIR_SPAN_MAX_NAMES]; /* written under the lock, before num_names */
static atomic_uint num_names;
static _Atomic uint64_t num_refused;

weir_span_name *const *weir_span_names(uint32_t *count)
{
    *count = atomic_load(&num_names);
    return names;
}

uint64_t weir_span_names_refused(void)
{
    return atomic_load(&num_refused);
}

const char *weir_span_kind_name(const weir_span_name *name)
{
    static const char *const kinds[] = { "span", "frame", "marker", "counter" };
    return kinds[atomic_load_explicit(&name->kind, memory_order_relaxed)];
}

static weir_span_name *find_locked(const char *text)
{
    uint32_t count = atomic_load(&num_names);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i]->text, text) == 0)
            return names[i];
    return NULL;
}

static weir_span_name *add_locked(char *text, size_t category_bytes, struct weir_counter *counter, uint32_t value)
{
    uint32_t count = atomic_load(&num_names);
    weir_span_name *name = calloc(1, sizeof *name);
    if (!name)
        return NULL;
    *name = (weir_span_name){
        .text = text, .category_bytes = category_bytes, .id = count, .counter = counter, .value = value
    };
    atomic_init(&name->kind, counter ? SPAN_KIND_COUNTER : SPAN_KIND_SPAN);
    names[count] = name;
    atomic_store(&num_names, count + 1);
    return name;
}

/* Takes ownership of `text`. The last place is for the names that are refused. */
static weir_span_name *get(char *text, size_t category_bytes, struct weir_counter *counter, uint32_t value)
{
    static const char others[] = "weir/others";
    if (!text)
        return NULL;
    weir_spans_lock();
    weir_span_name *name = find_locked(text);
    bool is_new = !name, fits = atomic_load(&num_names) < WEIR_SPAN_MAX_NAMES - 1, is_first = false;
    if (is_new && fits)
        name = add_locked(text, category_bytes, counter, value);
    if (is_new && !fits) {
        is_first = atomic_fetch_add(&num_refused, 1) == 0;
        name = counter ? NULL : find_locked(others);
        if (!name && !counter) {
            char *copy = strdup(others);
            name = copy ? add_locked(copy, strlen("weir"), NULL, 0) : NULL;
            if (!name)
                free(copy);
        }
    }
    weir_spans_unlock();
    if (is_first)
        weir_log(WEIR_LOG_WARNING, "%s: more than %d names of spans and counters; further ones are recorded as %s",
                 text, WEIR_SPAN_MAX_NAMES, others);
    if (!name || name->text != text)
        free(text);
    return name;
}

static bool is_valid(const char *text)
{
    return text && *text && strlen(text) <= MAX_TEXT_BYTES;
}

/* "one/two/three"; NULL = out of memory. Empty texts are left out. */
static char *join(const char *one, size_t one_bytes, const char *two, const char *three)
{
    size_t size = one_bytes + strlen(two) + strlen(three) + 3;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%.*s%s%s%s%s", (int)one_bytes, one, *two ? "/" : "", two, *three ? "/" : "", three);
    return text;
}

weir_span_name *weir_span_name_get(const char *category, const char *name)
{
    if (!is_valid(category) || !is_valid(name))
        return NULL;
    weir_span_name *found = get(join(category, strlen(category), name, ""), strlen(category), NULL, 0);
    return found && !found->counter ? found : NULL;
}

weir_span_name *weir_span_name_with_prefix(const weir_span_name *name, const char *prefix)
{
    weir_span_name *found = get(join(name->text, name->category_bytes, prefix, name->text + name->category_bytes + 1),
                                name->category_bytes, NULL, 0);
    return found && !found->counter ? found : NULL;
}

weir_span_name *weir_span_name_of_value(const char *category, const char *name, const char *value,
                                        struct weir_counter *counter, uint32_t which)
{
    if (!is_valid(category) || !is_valid(name) || strlen(value) > MAX_TEXT_BYTES)
        return NULL;
    return get(join(category, strlen(category), name, value), strlen(category), counter, which);
}
