/* A job of the engine bench, done by weir. */
#ifndef BENCH_ENGINE_WEIR_H
#define BENCH_ENGINE_WEIR_H

#include "engine_job.h"

engine_run engine_run_weir;

#endif
