"""Threads that share objects. In Python without the GIL they run at the same time."""

import subprocess
import sys
import sysconfig
import threading

import pytest

import weir

NUM_THREADS = 8


def in_threads(function, count=NUM_THREADS):
    """What function(i) returns in each of so many threads that begin together; raises what one of them raised."""
    begin = threading.Barrier(count)
    results = [None] * count

    def run(i):
        begin.wait()
        try:
            results[i] = function(i)
        except BaseException as error:  # also of pytest
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_the_extensions_do_not_turn_the_gil_on():
    code = "import sys, weir, weir._media; print(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_names_that_threads_add_at_the_same_time_are_the_same():
    names = [(f"category {i % 7}", f"name {i}") for i in range(200)]

    def use(_):
        for category, name in names:
            with weir.span(name, category=category):
                pass

    in_threads(use)
    counted = {found["name"]: found["count"] for found in weir.spans()}
    assert all(counted[f"{category}/{name}"] == NUM_THREADS for category, name in names)


def test_threads_view_the_same_frames(clip):
    frames = weir.Video(clip)[:8]
    expected = bytes(memoryview(frames))

    def view(_):
        return all(bytes(memoryview(frames)) == expected and frames.shape[0] == 8 for _ in range(20))

    assert all(in_threads(view))
    del frames
    assert len(expected) == 8 * 96 * 128 * 3


def test_threads_ask_one_video(clip):
    video = weir.Video(clip)
    expected = [bytes(memoryview(video[i])) for i in range(0, 90, 10)]

    def ask(start):
        numbers = [(start + i) % 9 for i in range(9)]
        return all(bytes(memoryview(video[10 * i])) == expected[i] for i in numbers)

    assert all(in_threads(ask))


def test_threads_that_iterate_one_pipeline_get_each_item_once():
    pipeline = weir.Pipeline().add_source(range(2000)).pipe(lambda i: i, concurrency=4).add_sink(8)
    with pipeline.build(threads=4) as run:
        taken = in_threads(lambda _: list(run))
    assert sorted(item for items in taken for item in items) == list(range(2000))


def test_threads_build_and_drop_pipelines():
    def build(_):
        for _ in range(20):
            run = weir.Pipeline().add_source(range(5)).pipe(lambda i: i).add_sink(2).build(threads=1)
            assert next(iter(run)) == 0
            del run
        return True

    assert all(in_threads(build))


def test_one_thread_closes_while_others_iterate_and_ask():
    def endless():
        i = 0
        while True:
            yield i
            i += 1

    def use(i):
        if i == 0:
            ready.acquire()
            return run.close()
        for item in run:
            ready.release()
            run.snapshot()
        return True

    for _ in range(10):
        ready = threading.Semaphore(0)
        run = weir.Pipeline().add_source(endless()).add_sink(2).build(threads=1)
        try:
            in_threads(use)
        except (weir.Error, ValueError) as error:  # what the others may be told
            assert "stopped" in str(error) or "closed" in str(error), error
