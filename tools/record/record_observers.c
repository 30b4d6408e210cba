#include "tools/record/record_observers.h"

#include <stdio.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/log.h>

#include "tools/record/record_exports.h"
#include "tools/record/record_messages.h"

static void collect(const record_settings *settings, record_observers *own)
{
    own->observers[own->num_observers++] = weir_sqlite_observer(own->database);
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++)
        if (own->exports[i])
            own->observers[own->num_observers++] = weir_export_observer(own->exports[i]);
    if (settings->verbose)
        own->observers[own->num_observers++] = weir_console_observer();
}

static int open_exports(const record_settings *settings, record_observers *observers)
{
    weir_error error = { 0 };
    const weir_export_format *format;
    for (size_t i = 0; (format = record_export_format(i)); i++) {
        const char *path = settings->exports[i].path;
        weir_export_options options = record_export_options(settings, i);
        if (path && weir_export_open(format, path, &options, &observers->exports[i], &error) != WEIR_OK)
            return record_refuse(settings, "--%s: %s", format->name, error.message);
    }
    return RECORD_DONE;
}

/* The database is opened last: if it is refused, the others leave no files. */
int record_observers_open(const record_settings *settings, record_observers *observers)
{
    weir_error error = { 0 };
    *observers = (record_observers){ 0 };
    int exit_status = open_exports(settings, observers);
    if (exit_status != RECORD_DONE)
        return exit_status;
    weir_sqlite_options options = { .rank = (int32_t)settings->rank,
                                    .world = (uint32_t)settings->world,
                                    .job = settings->job,
                                    .stacks = settings->stacks,
                                    .keep_ns = (int64_t)(settings->keep_s * WEIR_SECOND) };
    if (weir_sqlite_open(settings->db_path, &options, &observers->database, &error) != WEIR_OK)
        return record_refuse(settings, "--db-path: %s", error.message);
    weir_sqlite_items items = { .all = settings->all_items || settings->resume_path };
    if (weir_sqlite_item_hook(observers->database, &items, &observers->items, &error) != WEIR_OK)
        return record_refuse(settings, "--db-path: %s", error.message);
    collect(settings, observers);
    return RECORD_DONE;
}

void record_observers_request(const record_observers *observers)
{
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++)
        weir_export_request(observers->exports[i]);
}

/* Whether all is written; records of a trace that were lost are reported, but the statistics are complete. */
static bool is_complete(const record_settings *settings, int status, const weir_error *error)
{
    if (status != WEIR_OK)
        record_refuse(settings, "%s", error->message);
    return status == WEIR_OK || status == WEIR_ELIMIT;
}

int record_observers_close(const record_settings *settings, record_observers *observers)
{
    weir_error error = { 0 };
    int status = weir_sqlite_close(observers->database, &error);
    bool is_whole = is_complete(settings, status, &error);
    observers->has_lost_database = status == WEIR_ENOTFOUND;
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++) {
        error = (weir_error){ 0 };
        status = weir_export_close(observers->exports[i], &error);
        is_whole &= is_complete(settings, status, &error);
    }
    return is_whole ? RECORD_DONE : RECORD_FAILED;
}
