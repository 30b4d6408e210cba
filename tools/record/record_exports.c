#include "tools/record/record_exports.h"

#include <stdlib.h>
#include <string.h>

#include <weir/observer.h>
#include <weir/verdict.h>

#include "tools/cli/export_rows.h"
#include "tools/cli/memory.h"
#include "tools/record/record_ended.h"

const weir_export_format *record_export_format(size_t index)
{
    return index < RECORD_MAX_EXPORTS ? weir_export_at(index) : NULL;
}

static option_row path_row(const weir_export_format *format, size_t offset)
{
    bool is_folder = format->kind == WEIR_OUTPUT_FOLDER;
    return (option_row){ .name = format->name,
                         .argument = is_folder ? "DIR" : "FILE",
                         .kind = is_folder ? &option_folder : &option_file,
                         .offset = offset + offsetof(record_export, path),
                         .help = format->live_help };
}

const option_row *record_export_rows(void)
{
    static const option_row *made;
    export_rows rows = { 0 };
    const weir_export_format *format;
    for (size_t i = 0; !made && (format = record_export_format(i)); i++) {
        size_t offset = offsetof(record_settings, exports) + i * sizeof(record_export);
        if (!format->live_help)
            continue;
        export_rows_add(&rows, path_row(format, offset));
        export_rows_add_settings(&rows, format, false, offset + offsetof(record_export, options));
    }
    if (!made) {
        if (rows.count > 0)
            rows.rows[0].heading = "Exports";
        made = export_rows_end(&rows);
    }
    return made;
}

static void set_preset(weir_export_options *options, const weir_export_setting *setting)
{
    void *value = (char *)options + setting->offset;
    if (setting->value == WEIR_EXPORT_BYTES && *(uint64_t *)value == 0)
        *(uint64_t *)value = setting->preset;
    if (setting->value == WEIR_EXPORT_DURATION && *(int64_t *)value == 0)
        *(int64_t *)value = (int64_t)setting->preset;
}

weir_export_options record_export_options(const record_settings *settings, size_t index)
{
    weir_export_options options = settings->exports[index].options;
    const weir_export_format *format = record_export_format(index);
    for (const weir_export_setting *s = format->settings; s && s->name; s++)
        if (!s->from_database)
            set_preset(&options, s);
    options.rank = (int32_t)settings->rank;
    options.local_rank = (int32_t)settings->local_rank;
    options.world_size = (uint32_t)settings->world;
    options.force = settings->force;
    options.limit_rules = weir_verdict_limit_rules();
    return options;
}

char *record_export_rank_path(size_t index, const char *path, const char *rank)
{
    const weir_export_format *format = record_export_format(index);
    if (format->expands_path && strstr(path, "{rank}"))
        return NULL;
    return format->kind == WEIR_OUTPUT_FOLDER ? memory_format("%s/rank%s", path, rank) : record_rank_path(path, rank);
}

bool record_exports_take_requests(const record_settings *settings)
{
    const weir_export_format *format;
    for (size_t i = 0; (format = record_export_format(i)); i++)
        if (settings->exports[i].path && format->request)
            return true;
    return false;
}

void record_exports_report(const record_settings *settings, const char *folder, weir_pipeline *pipeline)
{
    const weir_export_format *format;
    for (size_t i = 0; (format = record_export_format(i)); i++) {
        const char *path = settings->exports[i].path;
        if (!path || !format->place_event)
            continue;
        char *whole = folder && *path != '/' ? memory_format("%s/%s", folder, path) : memory_copy(path);
        weir_pipeline_event(pipeline, format->place_event, "pipeline", whole);
        free(whole);
    }
}
