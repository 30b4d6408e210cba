#include "tools/cli/export_rows.h"

#include <string.h>

#include "tools/cli/memory.h"

void export_rows_add(export_rows *rows, option_row row)
{
    rows->rows = memory_grow(rows->rows, rows->count, sizeof *rows->rows);
    rows->rows[rows->count++] = row;
}

static const option_kind *kind_of(weir_export_value value)
{
    switch (value) {
    case WEIR_EXPORT_FLAG: break;
    case WEIR_EXPORT_BYTES: return &option_bytes;
    case WEIR_EXPORT_DURATION: return &option_duration;
    }
    return &option_flag;
}

static bool has_row(const export_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->rows[i].name, name) == 0)
            return true;
    return false;
}

void export_rows_add_settings(export_rows *rows, const weir_export_format *format, bool from_database,
                              size_t options_offset)
{
    for (const weir_export_setting *s = format->settings; s && s->name; s++) {
        if (s->from_database != from_database || has_row(rows, s->name))
            continue;
        export_rows_add(
            rows, (option_row){ .name = s->name,
                                .argument = s->argument,
                                .kind = kind_of(s->value),
                                .offset = options_offset + s->offset,
                                .needs = from_database ? NULL : format->name,
                                .help = from_database ? memory_format("%s: %s", format->name, s->help) : s->help });
    }
}

const option_row *export_rows_end(export_rows *rows)
{
    export_rows_add(rows, (option_row){ .name = NULL });
    return rows->rows;
}
