#include "tools/record/record_observers.h"

#include <stdio.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/log.h>

#include "tools/record/record_messages.h"

static void collect(const record_settings *settings, record_observers *own)
{
    own->observers[own->num_observers++] = weir_sqlite_observer(own->database);
    if (own->openmetrics)
        own->observers[own->num_observers++] = weir_openmetrics_observer(own->openmetrics);
    if (own->tensorboard)
        own->observers[own->num_observers++] = weir_tensorboard_observer(own->tensorboard);
    if (own->trace)
        own->observers[own->num_observers++] = weir_trace_observer(own->trace);
    if (settings->verbose)
        own->observers[own->num_observers++] = weir_console_observer();
}

/* The database is opened last: if it is refused, the others leave no files. */
int record_observers_open(const record_settings *settings, record_observers *observers)
{
    weir_error error = { 0 };
    const weir_openmetrics_options metrics = { .force = settings->force };
    *observers = (record_observers){ 0 };
    if (settings->openmetrics_path &&
        weir_openmetrics_open(settings->openmetrics_path, &metrics, &observers->openmetrics, &error) != WEIR_OK)
        return record_refuse(settings, "--openmetrics: %s", error.message);
    if (settings->tensorboard_dir &&
        weir_tensorboard_open(settings->tensorboard_dir, NULL, &observers->tensorboard, &error) != WEIR_OK)
        return record_refuse(settings, "--tensorboard: %s", error.message);
    bool triggers = settings->trace_last_ns > 0;
    weir_trace_options trace = {
        .rank = (int32_t)settings->rank,
        .local_rank = (int32_t)settings->local_rank,
        .world_size = (uint32_t)settings->world,
        .overwrite = true,
        .force = settings->force,
        .max_bytes = settings->trace_bytes,
        .on_stall = triggers,
        .on_failure = triggers,
        .on_request = triggers,
        .last_ns = settings->trace_last_ns,
    };
    if (settings->trace_path && weir_trace_open(settings->trace_path, &trace, &observers->trace, &error) != WEIR_OK)
        return record_refuse(settings, "--trace: %s", error.message);
    weir_sqlite_options options = { .rank = (int32_t)settings->rank,
                                    .world = (uint32_t)settings->world,
                                    .job = settings->job };
    if (weir_sqlite_open(settings->db_path, &options, &observers->database, &error) != WEIR_OK)
        return record_refuse(settings, "--db-path: %s", error.message);
    weir_sqlite_items items = { .cost_of = weir_decode_cost, .all = settings->all_items || settings->resume_path };
    if (weir_sqlite_item_hook(observers->database, &items, &observers->items, &error) != WEIR_OK)
        return record_refuse(settings, "--db-path: %s", error.message);
    collect(settings, observers);
    return RECORD_DONE;
}

int record_observers_close(const record_settings *settings, record_observers *observers)
{
    weir_error errors[4] = { 0 };
    weir_sqlite_close(observers->database, &errors[0]);
    weir_openmetrics_close(observers->openmetrics, &errors[1]);
    weir_tensorboard_close(observers->tensorboard, &errors[2]);
    weir_trace_close(observers->trace, &errors[3]);
    int exit_status = RECORD_DONE;
    observers->has_lost_database = errors[0].status == WEIR_ENOTFOUND;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].status == WEIR_OK)
            continue;
        record_refuse(settings, "%s", errors[i].message);
        if (errors[i].status != WEIR_ELIMIT) /* records of the trace were lost: the statistics are complete */
            exit_status = RECORD_FAILED;
    }
    return exit_status;
}
