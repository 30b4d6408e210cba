/* The engine alone: pipelines without FFmpeg and without SQLite. */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include <weir/batch.h>
#include <weir/checkpoint.h>
#include <weir/clock.h>
#include <weir/item.h>
#include <weir/item_part.h>
#include <weir/log.h>
#include <weir/metrics.h>
#include <weir/observer.h>
#include <weir/op.h>
#include <weir/output.h>
#include <weir/pipeline.h>
#include <weir/profile.h>
#include <weir/span.h>
#include <weir/status.h>
#include <weir/struct_copy.h>
#include <weir/trace.h>
#include <weir/version.h>

#endif
