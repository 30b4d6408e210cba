/* Runs a job of the engine bench with weir. */
#ifndef BENCH_ENGINE_ENGINE_WEIR_H
#define BENCH_ENGINE_ENGINE_WEIR_H

#include "engine_job.h"

engine_run engine_run_weir;

#endif
