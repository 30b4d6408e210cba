"""weir.Pipeline: what it delivers, how it fails, and how it ends."""

import asyncio
import copy
import gc
import gzip
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref
from fractions import Fraction

import pytest

import weir
from weir import _core


def chain(source, *functions, sink=3, **options):
    """A pipeline of these functions, which runs."""
    described = weir.Pipeline().add_source(source)
    for function in functions:
        described.pipe(function)
    return described.add_sink(sink).build(threads=2, **options)


def run_python(program, *args, timeout=60):
    """Runs a program in a new interpreter."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *args], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def double(x):
    return 2 * x


def fail_at(number):
    def function(x):
        if x == number:
            raise KeyError(f"no {x}")
        return x

    return function


class Gate:
    """A function that waits until it is opened."""

    def __init__(self):
        self.is_reached = threading.Event()
        self.is_open = threading.Event()

    def __call__(self, x):
        self.is_reached.set()
        self.is_open.wait()
        return x


# ---- what it delivers


def test_functions_are_called_one_after_the_other():
    with chain(range(100), double, str) as pipeline:
        assert sorted(pipeline, key=int) == [str(2 * x) for x in range(100)]


def test_input_order_is_kept_with_several_slots():
    described = weir.Pipeline().add_source(range(200))
    described.pipe(double, concurrency=4, output_order="input").add_sink()
    with described.build(threads=4) as pipeline:
        assert list(pipeline) == [2 * x for x in range(200)]


def test_objects_pass_as_they_are():
    objects = [object(), {"a": 1}, [1, 2], "text", b"bytes", 0, ""]
    with chain(objects, lambda x: x) as pipeline:
        for expected, got in zip(objects, pipeline, strict=True):
            assert got is expected


def test_none_and_skip_are_left_out():
    with chain([1, None, 2, weir.SKIP, 3, 4], lambda x: None if x == 2 else weir.SKIP if x == 3 else x) as pipeline:
        assert list(pipeline) == [1, 4]
        assert pipeline.account()["skipped"] >= 2


def test_each_value_of_a_generator_is_a_result():
    def count(x):
        for i in range(x):
            yield (x, i)

    with chain([0, 3, 1], count) as pipeline:
        assert list(pipeline) == [(3, 0), (3, 1), (3, 2), (1, 0)]


def test_a_generator_goes_on_only_when_there_is_room():
    made = []

    def endless(x):
        while True:
            made.append(x)
            yield x

    with chain([1], endless, sink=1) as pipeline:
        assert [value for value, _ in zip(pipeline, range(5))] == [1] * 5
        assert len(made) < 12


def test_a_generator_that_is_not_used_up_is_closed():
    ended = threading.Event()

    def endless(x):
        try:
            while True:
                yield x
        finally:
            ended.set()

    with chain([1], endless) as pipeline:
        pipeline.get_item()
    assert ended.is_set()


def test_batches_are_lists_and_can_be_taken_apart():
    described = weir.Pipeline().add_source(range(10)).aggregate(4).pipe(lambda x: [sum(x), len(x)]).disaggregate()
    with described.add_sink().build() as pipeline:
        assert list(pipeline) == [6, 4, 22, 4, 17, 2]


def test_an_incomplete_batch_can_be_left_out():
    with weir.Pipeline().add_source(range(10)).aggregate(4, drop_last=True).add_sink().build() as pipeline:
        assert list(pipeline) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_list_and_a_dict_are_looked_up():
    with chain([2, 0], ["a", "b", "c"], {"a": "A", "c": "C"}) as pipeline:
        assert list(pipeline) == ["C", "A"]


def test_async_functions_wait_at_the_same_time():
    reached = threading.Barrier(4)

    async def meet(x):
        await asyncio.get_running_loop().run_in_executor(None, reached.wait)
        return x

    described = weir.Pipeline().add_source(range(8)).pipe(meet, concurrency=4).add_sink()
    with described.build(threads=1) as pipeline:
        assert sorted(pipeline) == list(range(8))


def test_async_generators_make_several_results():
    async def twice(x):
        yield x
        await asyncio.sleep(0)
        yield -x

    with chain([1, 2], twice) as pipeline:
        assert list(pipeline) == [1, -1, 2, -2]


def test_a_pipeline_that_waits_in_async_functions_ends():
    async def forever(x):
        await asyncio.Event().wait()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(1000):  # before the call has begun, while it begins, or after it
            assert chain([1], forever, record=False).close(5)
    finally:
        sys.setswitchinterval(before)
    for thread in threading.enumerate():
        if thread.name == "weir-asyncio":
            thread.join(60)
            assert not thread.is_alive()


def test_a_pipeline_of_async_functions_that_nobody_has_is_closed():
    is_reached = threading.Event()

    async def forever(x):
        is_reached.set()
        await asyncio.Event().wait()

    pipeline = chain([1], forever)
    is_reached.wait()
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "weir-asyncio")
    del pipeline
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_epochs_are_iterations():
    with weir.Pipeline().add_source(range(3), epochs=2).pipe(double).add_sink().build() as pipeline:
        assert list(pipeline) == [0, 2, 4]
        assert list(pipeline) == [0, 2, 4]
        assert list(pipeline) == []


def test_a_new_iteration_goes_on_where_the_last_one_ended():
    with chain(range(6)) as pipeline:
        assert [x for x, _ in zip(pipeline, range(2))] == [0, 1]
        assert pipeline.get_item() in (2, 3)  # zip() has taken one more
        assert list(pipeline)[-1] == 5
        with pytest.raises(EOFError):
            pipeline.get_item()


def test_a_description_can_be_built_again():
    described = weir.Pipeline().add_source(range(3)).pipe(double).add_sink()
    for _ in range(2):
        with described.build() as pipeline:
            assert list(pipeline) == [0, 2, 4]


def test_a_pipeline_is_a_source():
    with chain(range(10), double) as inner, chain(inner, double) as outer:
        assert sorted(outer) == [4 * x for x in range(10)]


def test_a_function_iterates_another_pipeline():
    def total(n):
        with chain(range(n), double) as inner:
            return sum(inner)

    described = weir.Pipeline().add_source([3, 4, 5] * 4).pipe(total, concurrency=3, output_order="input").add_sink()
    with described.build(threads=3) as pipeline:
        assert list(pipeline) == [6, 12, 20] * 4


def test_a_pipeline_that_waits_for_another_one_is_closed():
    gate = Gate()
    inner = chain([1], gate)
    is_iterating = threading.Event()

    def source():
        is_iterating.set()
        yield from inner

    outer = chain(source())
    gate.is_reached.wait()
    is_iterating.wait()
    assert outer.close(5)
    gate.is_open.set()
    assert inner.close(5)


def test_several_threads_share_the_results():
    with chain(range(500), double) as pipeline:
        lists = [[] for _ in range(4)]
        threads = [threading.Thread(target=part.extend, args=(pipeline,)) for part in lists]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(sum(lists, [])) == [2 * x for x in range(500)]


def test_objects_are_released():
    class Thing:
        pass

    alive = weakref.WeakSet()

    def make(x):
        thing = Thing()
        alive.add(thing)
        return thing

    with chain(range(20), make, lambda x: x) as pipeline:
        for _ in zip(pipeline, range(5)):
            pass
    del _
    gc.collect()
    assert not list(alive)


# ---- how it fails


def test_failures_are_left_out_and_kept_with_their_traceback():
    with chain(range(6), fail_at(3)) as pipeline:
        assert list(pipeline) == [0, 1, 2, 4, 5]
        (failure,) = pipeline.failures
    assert isinstance(failure, weir.Error)
    assert (failure.number, failure.epoch) == (3, 0)
    assert "function" in failure.stage
    assert isinstance(failure.__cause__, KeyError)
    assert "raise KeyError" in "".join(traceback.format_exception(failure))
    assert pipeline.failures == [failure]  # also after the end


def test_without_tolerance_the_first_failure_is_raised():
    with chain(range(6), fail_at(3), max_failures=0) as pipeline:
        results = []
        with pytest.raises(weir.Error) as caught:
            results.extend(pipeline)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.number == 3
    assert "raise KeyError" in "".join(traceback.format_exception(caught.value))


def test_a_stage_has_a_tolerance_of_its_own():
    described = weir.Pipeline().add_source(range(6)).pipe(fail_at(1)).pipe(fail_at(3), max_failures=0).add_sink()
    with described.build() as pipeline, pytest.raises(weir.Error, match="no 3"):
        list(pipeline)


def test_a_share_of_failures_is_tolerated():
    def every_third(x):
        if x % 3 == 0:
            raise ValueError(x)
        return x

    for share, is_good in ((Fraction(1, 2), True), (0.1, False)):
        with chain(range(300), every_third, max_failures=share) as pipeline:
            if is_good:
                assert len(list(pipeline)) == 200
            else:
                with pytest.raises(weir.Error):
                    list(pipeline)


def test_a_stage_that_only_fails_ends_the_run():
    def fail(x):
        raise OSError("no such thing")

    with chain(range(5), fail) as pipeline, pytest.raises(weir.Error) as caught:
        list(pipeline)
    assert isinstance(caught.value.__cause__, OSError)


def test_an_exception_of_the_source_is_raised_after_its_items():
    def source():
        yield from range(3)
        raise RuntimeError("the list ends early")

    results = []
    with chain(source()) as pipeline, pytest.raises(weir.Error) as caught:
        for result in pipeline:
            results.append(result)
    assert results == [0, 1, 2]
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_generator_fails_after_some_results():
    def two(x):
        yield x
        if x == 1:
            raise ValueError("one")
        yield -x

    with chain([2, 1, 3], two) as pipeline:
        assert list(pipeline) == [2, -2, 1, 3, -3]
        assert [type(failure.__cause__) for failure in pipeline.failures] == [ValueError]


def test_failures_hold_no_objects():
    class Thing:
        pass

    alive = weakref.WeakSet()

    def fail(x):
        thing = Thing()
        alive.add(thing)
        if x:
            raise ValueError(x)
        return 1

    with chain(range(10), fail) as pipeline:
        assert list(pipeline) == [1]
        assert len(pipeline.failures) == 9
        gc.collect()
        assert not list(alive)


def test_the_last_thousand_failures_are_kept():
    def fail(x):
        if x % 600:
            raise ValueError(x)
        return x

    with chain(range(1800), fail) as pipeline:
        for x in pipeline:
            assert len(pipeline.failures) >= x * 599 // 600 - 600  # they are pulled meanwhile
        assert [failure.number for failure in pipeline.failures] == [x for x in range(1800) if x % 600][-1000:]


@pytest.mark.parametrize("describe, error, text", [
    (lambda p: p.add_source(5), TypeError, "5"),
    (lambda p: p.add_source([]).add_source([]), ValueError, "source"),
    (lambda p: p.add_source([]).pipe(5), TypeError, "5"),
    (lambda p: p.add_source([]).aggregate(0), ValueError, "0"),
    (lambda p: p.add_source([]).add_sink(0), ValueError, "buffer_size"),
    (lambda p: p.build(), ValueError, "source"),
    (lambda p: p.add_source([]).pipe(str, output_order="random").build(), ValueError, "output_order"),
    (lambda p: p.add_source([]).pipe(str, concurrency=-1).build(), ValueError, "concurrency"),
    (lambda p: p.add_source([]).pipe(str, name="a b").build(), ValueError, "a b"),
    (lambda p: p.add_source([]).build(threads=0.5), TypeError, "threads"),
    (lambda p: p.add_source([]).build(max_failures="many"), TypeError, "max_failures"),
    (lambda p: p.add_source([]).build(max_failures=1.5), ValueError, "max_failures"),
    (lambda p: p.add_source([]).build(resume="text"), TypeError, "resume"),
    (lambda p: p.add_source([]).build(resume=["text"]), weir.Error, "checkpoint"),
    (lambda p: p.add_source([]).build(record="/proc/no/such.db"), weir.Error, "/proc/no"),
])
def test_mistakes_are_named(describe, error, text):
    with pytest.raises(error, match=text):
        describe(weir.Pipeline())


def test_the_wrong_number_of_parameters_is_a_failure():
    with chain([1], lambda: 1) as pipeline, pytest.raises(weir.Error, match="TypeError"):
        list(pipeline)


# ---- how it ends


def test_nothing_comes_after_stop():
    with chain(iter(int, 1)) as pipeline:
        pipeline.get_item()
        pipeline.stop()
        pipeline.stop()
        with pytest.raises(weir.Error, match="stopped"):
            list(pipeline)


def test_a_closed_pipeline_is_closed():
    pipeline = chain(range(3))
    assert pipeline.close()
    assert pipeline.close()
    assert pipeline.state == "closed"
    with pytest.raises(ValueError, match="closed"):
        list(pipeline)
    assert pipeline.failures == []


def test_a_result_that_does_not_come_is_a_timeout():
    gate = Gate()
    with chain([1, 2], gate) as pipeline:
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0.01)
        gate.is_open.set()
        assert list(pipeline.get_iterator(timeout=60)) == [1, 2]


def test_close_does_not_wait_longer_than_it_may():
    gate = Gate()
    pipeline = chain([1], gate)
    gate.is_reached.wait()
    assert not pipeline.close(0.01)
    gate.is_open.set()
    assert pipeline.close(60)


def test_a_function_may_close_its_own_pipeline():
    closed = []
    is_built = threading.Event()

    def close(x):
        is_built.wait()
        closed.append(pipeline.close())

    pipeline = chain([1], close)
    is_built.set()
    while not closed:
        threading.Event().wait(0.001)
    assert closed == [False]
    assert pipeline.close(60)


def test_close_ends_the_iterations_of_other_threads():
    gate = Gate()
    pipeline = chain([1], gate)
    ends = []

    def iterate():
        try:
            list(pipeline)
        except weir.Error as error:
            ends.append(error.status)

    threads = [threading.Thread(target=iterate) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.is_reached.wait()
    gate.is_open.set()
    pipeline.close()
    for thread in threads:
        thread.join()
    assert set(ends) <= {"ESTOPPED"}


def test_a_pipeline_that_nobody_has_is_closed():
    class Source:
        def __iter__(self):
            return iter(int, 1)

    source = Source()
    pipeline = chain(source)
    pipeline.get_item()
    ref = weakref.ref(source)
    del pipeline, source
    gc.collect()
    assert ref() is None


def test_a_pipeline_that_its_own_function_refers_to_is_closed():
    class Marker:
        pass

    def run():
        marker = Marker()
        pipeline = chain(range(3), lambda x: (x, marker, pipeline)[0])
        assert list(pipeline) == [0, 1, 2]
        return weakref.ref(marker)

    ref = run()
    assert ref() is not None
    gc.collect()
    assert ref() is None


def test_many_small_pipelines_take_no_more_memory(memory_bytes):
    def run(count):
        for _ in range(count):
            with chain(range(3), double, record=False) as pipeline:
                assert sum(pipeline) == 6

    run(100)
    gc.collect()
    before, threads = memory_bytes(), len(os.listdir("/proc/self/task"))
    run(1000)
    gc.collect()
    assert memory_bytes() - before < 10e6  # a pipeline has 0.4 MB
    assert len(os.listdir("/proc/self/task")) <= threads


CTRL_C = """
    import os, signal, sys, threading, time
    import weir

    def sleep(x):
        reached.set()
        time.sleep(30)

    def loop(x):
        reached.set()
        while True:
            pass

    def block(x):
        reached.set()
        os.read(pipe[0], 1)

    reached = threading.Event()
    pipe = os.pipe()
    sent = [0]

    def interrupt():
        reached.wait()
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with weir.Pipeline().add_source([1, 2]).pipe(globals()[sys.argv[1]]).add_sink().build() as pipeline:
            for x in pipeline:
                pass
    except KeyboardInterrupt:
        print("interrupted after", time.monotonic() - sent[0], flush=True)
"""


@pytest.mark.parametrize("function", ["sleep", "loop", "block"])
def test_ctrl_c_does_not_wait_for_a_function(function):
    begin = time.monotonic()
    result = run_python(CTRL_C, function)
    assert result.stdout.startswith("interrupted after"), result.stderr
    assert time.monotonic() - begin < 15  # the function sleeps for 30 s
    assert result.returncode == 0, result.stderr


END = """
    import os, sys, threading, time
    import weir

    def sleep(x):
        reached.set()
        time.sleep(30)

    def loop(x):
        reached.set()
        while True:
            pass

    def block(x):
        reached.set()
        os.read(pipe[0], 1)

    def quick(x):
        reached.set()
        return x

    reached = threading.Event()
    pipe = os.pipe()
    function = globals()[sys.argv[1]]
    pipelines = [weir.Pipeline().add_source(iter(int, 1)).pipe(function, concurrency=2).add_sink().build(threads=2)
                 for _ in range(3)]
    if sys.argv[2] == "daemon":
        threading.Thread(target=lambda: [None for x in pipelines[0]], daemon=True).start()
    reached.wait()
    print("end", flush=True)
"""


@pytest.mark.parametrize("consumer", ["nobody", "daemon"])
@pytest.mark.parametrize("function", ["sleep", "loop", "block", "quick"])
def test_the_interpreter_ends_with_running_pipelines(function, consumer):
    begin = time.monotonic()
    result = run_python(END, function, consumer)
    assert result.stdout == "end\n", result.stderr
    assert result.returncode == 0, result.stderr
    assert time.monotonic() - begin < 15


def test_the_end_of_the_interpreter_completes_recordings(tmp_path):
    result = run_python("""
        import sys, weir
        described = weir.Pipeline().add_source(range(20)).pipe(lambda x: x, name="f").add_sink()
        pipeline = described.build(record=sys.argv[1], stats_interval=1000)
        print(len(list(pipeline)))
    """, str(tmp_path / "run.db"))
    assert (result.stdout, result.returncode) == ("20\n", 0), result.stderr
    with sqlite3.connect(tmp_path / "run.db") as database:
        assert database.execute("SELECT sum(num_tasks) FROM task_stats WHERE name = '0:1:f'").fetchone() == (20,)


def test_a_forked_child_has_no_pipeline_of_its_parent():
    result = run_python("""
        import os, weir
        used = weir.Pipeline().add_source(iter(int, 1)).pipe(lambda x: x + 1).add_sink().build(threads=2)
        unused = weir.Pipeline().add_source(iter(int, 1)).add_sink().build(threads=2)
        assert used.get_item() == 1
        child = os.fork()
        if child == 0:
            for pipeline in (used, unused):
                try:
                    pipeline.get_item()
                except weir.Error as error:
                    assert error.status == "EFORKED", error
                assert pipeline.close()
            with weir.Pipeline().add_source(range(5)).pipe(lambda x: x + 1).add_sink().build() as own:
                assert list(own) == [1, 2, 3, 4, 5]
                assert own.stats()["queues"]["0:2:sink_queue"]["num_items"] == 5
            raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert used.get_item() == 1 and unused.get_item() == 0
        assert used.close() and unused.close()
        print("good")
    """)
    assert result.stdout == "good\n", result.stderr
    assert result.returncode == 0, result.stderr


def test_twenty_forks_during_functions():
    result = run_python("""
        import os, weir
        with weir.Pipeline().add_source(iter(int, 1)).pipe(lambda x: sum(range(1000)), concurrency=4).add_sink().build(threads=4) as pipeline:
            for i in range(20):
                assert pipeline.get_item() == 499500
                child = os.fork()
                if child == 0:
                    raise SystemExit(i)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == i
        print("good")
    """)
    assert result.stdout == "good\n", result.stderr
    assert result.returncode == 0, result.stderr


# ---- results that are acknowledged


def test_only_acknowledged_results_are_done():
    def build(**options):
        return chain(range(8), double, checkpoints="done", **options)

    with build() as pipeline:
        assert sorted(pipeline.get_item() for _ in range(5)) == [0, 2, 4, 6, 8]
        pipeline.done(2)
        pipeline.done()
        with pytest.raises(ValueError, match="only 2 results"):
            pipeline.done(3)
        text = pipeline.checkpoint()
    with build(resume=[text]) as pipeline:
        assert sorted(pipeline) == [6, 8, 10, 12, 14]
        pipeline.done(5)
        text = pipeline.checkpoint()
    with build(resume=[text]) as pipeline:
        assert list(pipeline) == []


def test_lists_are_acknowledged_whole():
    described = weir.Pipeline().add_source(range(8)).aggregate(3).add_sink()
    with described.build(checkpoints="done") as pipeline:
        assert [pipeline.get_item(), pipeline.get_item()] == [[0, 1, 2], [3, 4, 5]]
        pipeline.done()
        text = pipeline.checkpoint()
    with described.build(checkpoints="done", resume=[text]) as pipeline:
        assert list(pipeline) == [[3, 4, 5], [6, 7]]


def test_nothing_is_acknowledged_without_these_checkpoints():
    with chain(range(3), double, checkpoints=True) as pipeline:
        pipeline.get_item()
        with pytest.raises(ValueError, match='checkpoints="done"'):
            pipeline.done()
    with pytest.raises(ValueError, match="checkpoints"):
        chain(range(3), double, checkpoints="often")


# ---- routes and merges


def test_each_item_takes_its_path():
    paths = [weir.Pipeline().pipe(lambda x: ("even", x)), weir.Pipeline().pipe(str).pipe(lambda x: ("odd", x)), weir.Pipeline()]
    described = (
        weir.Pipeline().add_source(range(9)).path_variants(lambda x: 2 if x == 0 else x % 2, paths, output_order="input").add_sink()
    )
    with described.build() as pipeline:
        assert list(pipeline) == [0, ("odd", "1"), ("even", 2), ("odd", "3"), ("even", 4), ("odd", "5"), ("even", 6), ("odd", "7"), ("even", 8)]


def test_batches_that_are_unpacked_again_leave_items_as_they_are():
    packed = weir.Pipeline().add_source(range(7)).aggregate(2).disaggregate().pipe(double).aggregate(3).aggregate(2).disaggregate().add_sink()
    with packed.build() as pipeline:
        assert list(pipeline) == [[0, 2, 4], [6, 8, 10], [12]]


def test_an_async_router_is_refused():
    async def route(x):
        return 0

    with pytest.raises(TypeError, match="async"):
        weir.Pipeline().path_variants(route, [weir.Pipeline()])


def test_all_may_fail_by_a_share_of_one():
    with chain(range(200), lambda x: x if x == 0 else 1 / 0, max_failures=1.0) as pipeline:
        assert list(pipeline) == [0]


def test_paths_have_paths_and_async_functions():
    async def later(x):
        return x + 100

    inner = weir.Pipeline().path_variants(lambda x: x % 4 // 2, [weir.Pipeline(), weir.Pipeline().pipe(later)])
    described = weir.Pipeline().add_source(range(8)).path_variants(lambda x: x % 2, [inner, weir.Pipeline().pipe(lambda x: -x)]).add_sink()
    with described.build() as pipeline:
        assert sorted(pipeline) == [-7, -5, -3, -1, 0, 4, 102, 106]


def test_an_item_without_a_path_fails(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(str(unraisable.exc_value)))

    def route(x):
        if x == 3:
            raise LookupError("no path")
        return x

    with weir.Pipeline().add_source(range(5)).path_variants(route, [weir.Pipeline(), weir.Pipeline()]).add_sink().build() as pipeline:
        assert sorted(pipeline) == [0, 1]
        assert sorted(error.number for error in pipeline.failures) == [2, 3, 4]
    assert reported == ["no path"]


def test_paths_of_weir_stages_get_the_items_that_they_take(clip):
    paths = [weir.Pipeline().pipe(weir.decode(2, size=16)), weir.Pipeline().pipe(weir.decode(3, size=16))]
    numbers = itertools.count()
    described = weir.Pipeline().add_source([clip] * 4).path_variants(lambda path: next(numbers) % 2, paths).add_sink()
    with described.build() as pipeline:
        assert sorted(len(frames) for frames in pipeline) == [2, 2, 3, 3]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"order": "round_robin"}, [0, "0", 1, "1", 2, "2"]),
        ({"order": "weighted", "weights": (2, 1)}, [0, "0", 1, 2, "1", "2"]),
    ],
)
def test_sources_are_merged(options, expected):
    numbers = weir.Pipeline().add_source(range(3))
    texts = weir.Pipeline().add_source(range(3)).pipe(str)
    with weir.Pipeline().merge(numbers, texts, **options).pipe(lambda x: x).add_sink().build(threads=1) as pipeline:
        assert list(pipeline) == expected


def test_merged_sources_are_merged_again():
    def source(start):
        return weir.Pipeline().add_source(range(start, start + 3))

    with pytest.raises(ValueError, match="at least two"):
        weir.Pipeline().merge(source(0))
    with pytest.raises(ValueError, match="already"):
        source(0).merge(source(0), source(3))
    with pytest.raises(ValueError, match="order"):
        weir.Pipeline().merge(source(0), source(3), order="alphabet")
    with pytest.raises(ValueError, match="first"):
        weir.Pipeline().merge(source(0), weir.Pipeline().merge(source(3), source(6)))
    merged = weir.Pipeline().merge(source(0), source(3)).pipe(abs)
    with weir.Pipeline().merge(merged, source(6)).pipe(abs).add_sink().build() as pipeline:
        assert sorted(pipeline) == list(range(9))


# ---- what it tells


def test_statistics_have_the_names_of_the_database():
    with chain(range(50), double) as pipeline:
        list(pipeline)
        pipeline.stats()
    stats = pipeline.stats()
    assert stats["tasks"]["0:1:double"]["num_tasks"] == 50
    assert stats["queues"]["0:2:sink_queue"]["num_items"] == 50
    assert stats["tasks"]["0:1:double"]["ave_time"] > 0


def test_totals_of_a_running_pipeline_reach_up_to_now():
    with chain(iter(int, 1), double, stats_interval=3600) as pipeline:
        for count in range(1, 30):
            pipeline.get_item()
            before = pipeline.account("double")["passed_on"]
            stats = pipeline.stats()
            assert before <= stats["tasks"]["0:1:double"]["num_tasks"] <= pipeline.account("double")["passed_on"] + 1
            assert stats["queues"]["0:2:sink_queue"]["num_items"] == count


def test_totals_equal_the_account_once_all_is_done():
    with chain(range(50), double, stats_interval=3600) as pipeline:
        assert len(list(pipeline)) == 50
        account = pipeline.account("double")
        assert pipeline.stats()["tasks"]["0:1:double"]["num_tasks"] == account["passed_on"] == 50


def test_the_run_is_explained_during_it_and_after_it():
    with chain(iter(int, 1), double, stats_interval=0.05) as pipeline:
        pipeline.get_item()
        assert "Limit:" in pipeline.explain()
    assert "Limit:" in pipeline.explain()


def test_a_running_pipeline_is_explained_by_experiment():
    with chain(iter(int, 1), double) as pipeline:
        consumer = threading.Thread(target=consume, args=(pipeline,))
        consumer.start()
        text = pipeline.explain(live=True, seconds=0.2)
        pipeline.stop()
        consumer.join()
    assert "Limit:" in text


def consume(pipeline):
    try:
        for _ in pipeline:
            pass
    except weir.Error:
        pass


def test_without_a_recording_there_is_nothing_to_explain():
    with chain([1], record=False) as pipeline:
        with pytest.raises(weir.Error, match="nothing is recorded"):
            pipeline.stats()
    with pytest.raises(weir.Error, match="nothing is recorded"):
        pipeline.explain()


def test_live_explanations_need_a_run():
    with chain([]) as pipeline:
        assert list(pipeline) == []
        with pytest.raises(weir.Error, match="ended"):
            pipeline.explain(live=True)


def test_a_recording_and_a_trace_are_complete_after_close(tmp_path):
    with chain(range(20), double, record=tmp_path / "run.db", trace=tmp_path / "run.json.gz") as pipeline:
        list(pipeline)
    with sqlite3.connect(tmp_path / "run.db") as database:
        assert database.execute("SELECT sum(num_tasks) FROM task_stats WHERE name = '0:1:double'").fetchone() == (20,)
    with gzip.open(tmp_path / "run.json.gz") as file:
        assert json.load(file)
    assert pipeline.stats()["tasks"]["0:1:double"]["num_tasks"] == 20


def test_a_recording_that_lost_something_is_a_warning(tmp_path):
    path = tmp_path / "run.db"
    options = {"record": path, "record_options": {"retry_limit_ns": 10_000_000}}
    pipeline = _core.Pipeline([(_core.iterate([1]), {"threads": 1})], None, options)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="run.db"):
        pipeline.close()


def test_a_pipeline_goes_on_from_a_checkpoint():
    described = weir.Pipeline().add_source(range(10)).pipe(double).add_sink()
    with described.build(checkpoints=True) as pipeline:
        first = [pipeline.get_item() for _ in range(4)]
        text = pipeline.checkpoint()
    with described.build(checkpoints=True, resume=[text]) as pipeline:
        rest = list(pipeline)
    assert first + rest == [2 * x for x in range(10)]


def test_batches_go_on_from_a_checkpoint():
    described = weir.Pipeline().add_source(range(12)).aggregate(2).pipe(lambda x: x).disaggregate().add_sink()
    with described.build(checkpoints=True) as pipeline:
        first = [pipeline.get_item() for _ in range(5)]
        text = pipeline.checkpoint()
    with described.build(checkpoints=True, resume=[text]) as pipeline:
        rest = list(pipeline)
    assert sorted(set(first + rest)) == list(range(12))


def test_checkpoints_have_to_be_asked_for():
    with chain(range(3)) as pipeline, pytest.raises(weir.Error, match="checkpoints"):
        pipeline.checkpoint()


def test_a_snapshot_shows_what_runs():
    gate = Gate()
    with weir.Pipeline().add_source(range(5)).pipe(gate, name="gate").add_sink().build() as pipeline:
        gate.is_reached.wait()
        snapshot = pipeline.snapshot()
        assert snapshot["state"] == pipeline.state == "running"
        assert [task["stage"] for task in snapshot["tasks"] if "gate" in task["stage"]] == ["0:1:gate"]
        gate.is_open.set()
        assert list(pipeline) == [0, 1, 2, 3, 4]
        assert pipeline.account()["passed_on"] == 5
        with pytest.raises(weir.Error, match="nothing"):
            pipeline.account("nothing")


def test_settings_change_while_it_runs():
    with weir.Pipeline().add_source(iter(int, 1)).pipe(double).add_sink().build() as pipeline:
        pipeline.set_concurrency("double", 3)
        pipeline.set_threads(3)
        stage = next(stage for stage in pipeline.snapshot()["stages"] if "double" in stage["name"])
        assert stage["concurrency"] == 3
        pipeline.mark_step(1)
        pipeline.mark_phase("forward")
        pipeline.mark_mode("train")
        assert pipeline.snapshot()["phase"] == "forward"
        with pytest.raises(weir.Error, match="nothing"):
            pipeline.set_concurrency("nothing", 3)


def test_the_core_names_what_is_wrong():
    source = (_core.iterate([1]), {})
    for stages, options, text in (([1], {}, "stage 0"), ([(1, {})], {}, "stage 0"), ([source], {"speed": 1}, "speed"),
                                  ([(source[0], {"speed": 1})], {}, "speed"), ([source], 5, "pipeline")):
        with pytest.raises(TypeError, match=text):
            _core.Pipeline(stages, None, options)


# ---- handlers, finalizers, texts


def test_a_dropped_run_and_the_end_of_the_interpreter_meet():
    """The object waits for its function while the interpreter ends."""
    done = run_python("""
        import threading, time, weir
        reached, dropping = threading.Event(), threading.Event()
        def busy(x):
            reached.set()
            time.sleep(0.5)
            return x
        def drop():
            run = weir.Pipeline().add_source(range(3)).pipe(busy).build()
            reached.wait()
            dropping.set()
            del run
            time.sleep(5)
        threading.Thread(target=drop, daemon=True).start()
        dropping.wait()
        time.sleep(0.03)
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_handler_may_close_the_run_that_is_waited_for():
    done = run_python("""
        import signal, time, weir
        def slow(x):
            time.sleep(0.4)
            return x
        run = weir.Pipeline().add_source(range(100)).pipe(slow).build()
        signal.signal(signal.SIGALRM, lambda *_: print("closed", run.close(), flush=True))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            list(run)
        except weir.Error as error:
            print(error.status)
    """, timeout=30)
    assert done.stdout.split() == ["closed", "False", "ESTOPPED"], done.stderr


def test_failures_are_known_after_the_end():
    with chain(range(4), fail_at(2)) as run:
        assert list(run) == [0, 1, 3]
    assert [type(error.__cause__) for error in run.failures] == [KeyError]


def test_a_long_message_is_cut_at_a_character():
    def fail(x):
        raise ValueError("é" * 400)

    with chain([1, 2], fail_at(1), fail, max_failures=5) as run:
        with pytest.raises(weir.Error):
            list(run)
        assert any("éééé" in str(error) for error in run.failures)


def test_an_async_generator_may_skip():
    async def both(x):
        yield x
        yield weir.SKIP
        yield x + 100

    with chain(range(2), both) as run:
        assert sorted(run) == [0, 1, 100, 101]


def test_a_generator_that_yields_nothing_can_be_stopped():
    reached = threading.Event()

    def idle(x):
        while True:
            reached.set()
            time.sleep(0.005)
            yield None

    run = chain([1], idle)
    reached.wait()
    assert run.close(10)


def test_a_failure_that_was_raised_from_another_keeps_no_objects():
    class Picture:
        pass

    alive = []

    def load(x):
        picture = Picture()
        alive.append(weakref.ref(picture))
        raise OSError("broken")

    def fail(x):
        try:
            load(x)
        except OSError as error:
            raise ValueError("no picture") from error

    with chain(range(3), fail) as run:
        with pytest.raises(weir.Error):
            list(run)
        assert len(run.failures) == 3
    gc.collect()
    assert [reference() for reference in alive] == [None, None, None]


def test_names_and_numbers_that_do_not_fit():
    long = eval("lambda x: x")
    long.__name__ = "f" * 100
    with chain([1], long) as run:
        assert list(run) == [1]
        with pytest.raises(weir.Error):
            run.set_concurrency("f" * 64, 2**32 + 3)
    with pytest.raises(ValueError, match="zero character"):
        weir.Pipeline().add_source([1]).pipe(double, name="a\0b").build()


def test_a_run_with_async_functions_that_is_dropped_in_a_cycle_ends():
    """The collection that finds it may be inside a call of its own."""
    done = run_python("""
        import gc, itertools, os, sys, threading, time, weakref, weir
        async def echo(x):
            return x
        class Holder:
            pass
        gc.set_threshold(30)
        for _ in range(6):
            holder = Holder()
            holder.itself = holder
            holder.run = weir.Pipeline().add_source(itertools.count()).pipe(echo, concurrency=4).add_sink(1000).build(record=False)
            next(iter(holder.run))
            is_there, end = weakref.ref(holder), time.monotonic() + 20
            holder = None
            while is_there() and time.monotonic() < end:  # a thread of the run collects it
                threading.Event().wait(0.001)
                if not getattr(sys, "_is_gil_enabled", lambda: True)():
                    gc.collect()  # without the GIL, Python collects more rarely
        loops = [thread for thread in threading.enumerate() if thread.name == "weir-asyncio"]
        for thread in loops:
            thread.join(10)
        print(sum(thread.is_alive() for thread in loops))
        sys.stdout.flush()
        os._exit(0)
    """)
    assert done.stdout == "0\n", done.stderr


# ---- what others write


def test_a_timeout_that_is_none_leaves_the_pipeline_as_it_is():
    with weir.Pipeline().add_source(range(5)).add_sink(3).build(threads=1) as run:
        for timeout in (float("nan"), -1):
            with pytest.raises(ValueError, match="timeout is"):
                run.close(timeout=timeout)
        assert list(run) == [0, 1, 2, 3, 4]


def test_a_run_is_not_copied_and_a_description_is():
    description = weir.Pipeline().add_source(["1"]).pipe(int)
    other = copy.copy(description).pipe(str)
    assert repr(description) == "<weir.Pipeline source > int > sink>"
    assert repr(other) == "<weir.Pipeline source > int > str > sink>"
    with description.build() as run, pytest.raises(TypeError, match="a weir.Run cannot be copied or pickled"):
        copy.copy(run)


@pytest.mark.parametrize("options, message", [({"deadline": float("nan")}, "deadline is nan"), ({"deadline": 1e10}, "deadline is 1")])
def test_a_time_that_is_none_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        weir.Pipeline().pipe(int, **options)


def test_a_result_that_comes_with_a_signal_is_the_next_one_and_not_done():
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    wanted, over = threading.Event(), threading.Event()
    interval, before = sys.getswitchinterval(), signal.signal(signal.SIGUSR1, ring)

    def numbers():  # gets the GIL when the main thread waits for a result: only then a signal comes
        for number in range(12):
            wanted.wait()
            wanted.clear()
            if over.is_set():
                return
            os.kill(os.getpid(), signal.SIGUSR1)
            yield number

    sys.setswitchinterval(10)
    run = weir.Pipeline().add_source(numbers()).build(threads=1, checkpoints=True)
    try:
        for number in range(8):
            wanted.set()
            with pytest.raises(Alarm):
                run.get_item(timeout=20)
            text = run.checkpoint()
            assert run.get_item(timeout=20) == number
    finally:
        over.set()
        wanted.set()
        run.close()
        sys.setswitchinterval(interval)
        signal.signal(signal.SIGUSR1, before)
    with weir.Pipeline().add_source(range(12)).build(threads=1, checkpoints=True, resume=[text]) as run:
        assert list(run) == list(range(7, 12))
