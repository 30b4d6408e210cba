/* The names of spans and counters. They are never freed, so that programs can keep pointers to them. */
#include "engine/spans/spans.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 200 };

static weir_span_name *names[WEIR_SPAN_MAX_NAMES]; /* written under the lock, before num_names */
static atomic_uint num_names;
static _Atomic uint64_t num_refused;
static bool must_log; /* guarded by the registry's lock */

weir_span_name *const *weir__span_names(uint32_t *count)
{
    *count = atomic_load(&num_names);
    return names;
}

uint64_t weir__span_names_refused(void)
{
    return atomic_load(&num_refused);
}

const char *weir__span_kind_name(const weir_span_name *name)
{
    static const char *const kinds[] = { "span", "frame", "marker", "level", "total" };
    return kinds[atomic_load_explicit(&name->kind, memory_order_relaxed)];
}

static weir_span_name *find_name_locked(const char *text)
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
    atomic_init(&name->kind, (int)(counter ? weir__counter_kind(counter) : SPAN_KIND_SPAN));
    names[count] = name;
    atomic_store(&num_names, count + 1);
    return name;
}

static const char others[] = "weir/others";

/* Takes ownership of `text`. The last place is for the spans whose names are refused. */
static weir_span_name *get_name_locked(char *text, size_t category_bytes, struct weir_counter *counter,
                                       uint32_t value)
{
    weir_span_name *name = text ? find_name_locked(text) : NULL;
    if (text && !name && atomic_load(&num_names) < WEIR_SPAN_MAX_NAMES - 1) {
        name = add_locked(text, category_bytes, counter, value);
    } else if (text && !name) {
        must_log |= atomic_fetch_add(&num_refused, 1) == 0;
        name = counter ? NULL : find_name_locked(others);
        char *copy = counter || name ? NULL : strdup(others);
        if (copy && !(name = add_locked(copy, strlen("weir"), NULL, 0)))
            free(copy);
    }
    if (!name || name->text != text)
        free(text);
    return name;
}

void weir__span_names_unlock(void)
{
    bool logs = must_log;
    must_log = false;
    weir__spans_unlock();
    if (logs)
        weir_log(
            WEIR_LOG_WARNING,
            "more than %d names of spans and counters; further spans are recorded as %s, further counters are not "
            "recorded",
            WEIR_SPAN_MAX_NAMES, others);
}

/* Finds or makes the name of a span, a frame or a marker. */
static weir_span_name *get_span(char *text, size_t category_bytes)
{
    weir__spans_lock();
    weir_span_name *found = get_name_locked(text, category_bytes, NULL, 0);
    weir__span_names_unlock();
    return found && !found->counter ? found : NULL;
}

static bool is_valid(const char *text)
{
    return text && *text && strlen(text) <= MAX_TEXT_BYTES;
}

/* "one/two/three"; NULL = out of memory. Empty texts are left out. */
static char *join_text(const char *one, size_t one_bytes, const char *two, const char *three)
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
    return get_span(join_text(category, strlen(category), name, ""), strlen(category));
}

weir_span_name *weir__span_name_with_prefix(const weir_span_name *name, const char *prefix)
{
    return get_span(join_text(name->text, name->category_bytes, prefix, name->text + name->category_bytes + 1),
                    name->category_bytes);
}

weir_span_name *weir__span_name_of_value_locked(const char *category, const char *name, const char *value,
                                                struct weir_counter *counter, uint32_t which)
{
    if (!is_valid(category) || !is_valid(name) || strlen(value) > MAX_TEXT_BYTES)
        return NULL;
    return get_name_locked(join_text(category, strlen(category), name, value), strlen(category), counter, which);
}
