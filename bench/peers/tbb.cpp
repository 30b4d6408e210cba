/*
 * oneTBB: its flow graph with a limiter, and its parallel_pipeline. Stages take one item at a time, like stages of weir
 * with one slot. The number of items is limited to the total capacity of weir's queues.
 */
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <weir/clock.h>

#include "bench/harness/spin.h"
#include "bench/peers/peers.h"

namespace
{

namespace flow = oneapi::tbb::flow;

class Source
{
  public:
    Source(const engine_job &job, engine_result &result) : job_(job), result_(result)
    {
    }

    std::uint64_t next(oneapi::tbb::flow_control &control)
    {
        if (num_made_ == 0)
            result_.start_ns = weir_clock_ns();
        if (num_made_ == job_.num_items) {
            control.stop();
            return 0;
        }
        return ++num_made_;
    }

  private:
    const engine_job &job_;
    engine_result &result_;
    std::uint64_t num_made_ = 0;
};

std::size_t max_items(const engine_job &job)
{
    return static_cast<std::size_t>(job.queue_items) * (job.num_stages + 1);
}

using Stage = flow::function_node<std::uint64_t, std::uint64_t>;
using Sink = flow::function_node<std::uint64_t, flow::continue_msg>;

std::vector<std::unique_ptr<Stage>> make_stages(flow::graph &graph, const engine_job &job)
{
    std::vector<std::unique_ptr<Stage>> stages;
    for (std::uint32_t i = 0; i < job.num_stages; i++) {
        stages.push_back(std::make_unique<Stage>(graph, flow::serial, [&job](std::uint64_t item) {
            bench_spin(job.op_spins);
            return item;
        }));
        if (i > 0)
            flow::make_edge(*stages[i - 1], *stages[i]);
    }
    return stages;
}

std::uint64_t run_flow(const engine_job &job, engine_result &result)
{
    flow::graph graph;
    Source source(job, result);
    std::uint64_t num_items = 0;
    flow::input_node<std::uint64_t> input(
        graph, [&source](oneapi::tbb::flow_control &control) { return source.next(control); });
    flow::limiter_node<std::uint64_t> limiter(graph, max_items(job));
    std::vector<std::unique_ptr<Stage>> stages = make_stages(graph, job);
    Sink sink(graph, flow::serial, [&num_items](std::uint64_t) {
        num_items++;
        return flow::continue_msg();
    });

    flow::receiver<std::uint64_t> &first =
        stages.empty() ? static_cast<flow::receiver<std::uint64_t> &>(sink) : *stages.front();
    if (!stages.empty())
        flow::make_edge(*stages.back(), sink);
    flow::make_edge(input, limiter);
    flow::make_edge(limiter, first);
    flow::make_edge(sink, limiter.decrementer());
    input.activate();
    graph.wait_for_all();
    return num_items;
}

std::uint64_t run_pipeline(const engine_job &job, engine_result &result)
{
    using oneapi::tbb::filter;
    using oneapi::tbb::filter_mode;
    using oneapi::tbb::make_filter;
    Source source(job, result);
    std::uint64_t num_items = 0;
    filter<void, std::uint64_t> line = make_filter<void, std::uint64_t>(
        filter_mode::serial_out_of_order,
        [&source](oneapi::tbb::flow_control &control) { return source.next(control); });
    for (std::uint32_t i = 0; i < job.num_stages; i++)
        line = line & make_filter<std::uint64_t, std::uint64_t>(filter_mode::serial_out_of_order,
                                                                [&job](std::uint64_t item) {
                                                                    bench_spin(job.op_spins);
                                                                    return item;
                                                                });
    oneapi::tbb::parallel_pipeline(
        max_items(job), line & make_filter<std::uint64_t, void>(filter_mode::serial_out_of_order,
                                                                [&num_items](std::uint64_t) { num_items++; }));
    return num_items;
}

/* The calling thread is one of the threads of the job. */
template <typename Run> int run_with_threads(const char *name, const engine_job *job, engine_result *result, Run run)
{
    try {
        oneapi::tbb::global_control threads(oneapi::tbb::global_control::max_allowed_parallelism, job->threads);
        oneapi::tbb::task_arena arena(static_cast<int>(job->threads));
        std::uint64_t num_items = 0;
        arena.execute([&] { num_items = run(*job, *result); });
        result->end_ns = weir_clock_ns();
        if (num_items == job->num_items)
            return 0;
        std::fprintf(stderr, "weir-bench: %s: %llu of %llu items arrived\n", name,
                     static_cast<unsigned long long>(num_items), static_cast<unsigned long long>(job->num_items));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "weir-bench: %s: %s\n", name, error.what());
    }
    return -1;
}

} // namespace

int bench_run_tbb_flow(const engine_job *job, engine_result *result)
{
    return run_with_threads("tbb_flow", job, result, run_flow);
}

int bench_run_tbb_pipeline(const engine_job *job, engine_result *result)
{
    return run_with_threads("tbb_pipeline", job, result, run_pipeline);
}
