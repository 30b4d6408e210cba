"""Spans, frames, markers and counters of Python code."""

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

import weir


def row(name):
    return weir.spans()[name]


def test_a_span_is_counted_with_its_time():
    gate = threading.Event()
    with weir.span("timed"):
        gate.wait(0.02)
    assert row("user/timed")["count"] == 1
    assert row("user/timed")["total"] >= 0.02


def test_names_are_grouped_by_category():
    with weir.span("same", "one"), weir.span("same", category="two"), weir.span(name="same", category="two"):
        pass
    assert row("one/same")["count"] == 1
    assert row("two/same")["count"] == 2
    assert row("one/same")["category"] == "one"


def test_a_span_ends_when_its_block_raises():
    with pytest.raises(KeyError), weir.span("raising"):
        raise KeyError("x")
    assert row("user/raising")["count"] == 1


def test_a_span_decorates_functions_and_keeps_their_names_and_results():
    @weir.span("decorated")
    def double(x, *, more=0):
        """Doubles."""
        return 2 * x + more

    assert double(2, more=1) == 5 and double.__name__ == "double" and double.__doc__ == "Doubles."
    with pytest.raises(TypeError):
        double("x", more=[])
    assert row("user/decorated")["count"] == 2


def test_a_recursive_function_has_a_span_for_each_call():
    @weir.span("recursive")
    def down(n):
        return n and down(n - 1)

    down(4)
    assert row("user/recursive")["count"] == 5


def test_a_generator_function_has_one_span_up_to_its_end():
    @weir.span("generated")
    def numbers():
        sent = yield 1
        yield sent

    generator = numbers()
    assert next(generator) == 1 and generator.send(7) == 7
    assert [r for r in weir.spans() if r["name"] == "user/generated" and r["count"]] == [] or row("user/generated")["count"] == 0
    assert list(generator) == []
    assert row("user/generated")["count"] == 1


def test_coroutines_of_one_thread_do_not_end_the_spans_of_each_other():
    async def main():
        first, second = asyncio.Event(), asyncio.Event()

        @weir.span("outer coroutine")
        async def a():
            first.set()
            await second.wait()

        @weir.span("inner coroutine")
        async def b():
            await first.wait()
            second.set()
            await asyncio.sleep(0)
            threading.Event().wait(0.02)

        await asyncio.gather(a(), b())

    asyncio.run(main())
    assert row("user/outer coroutine")["count"] == 1
    assert row("user/inner coroutine")["count"] == 1
    assert row("user/inner coroutine")["total"] >= 0.02


def test_a_span_may_end_on_another_thread():
    span = weir.span("across threads")
    span.__enter__()
    thread = threading.Thread(target=span.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert row("user/across threads")["count"] == 1


def test_threads_share_a_name():
    def work():
        for _ in range(1000):
            with weir.span("shared"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert row("user/shared")["count"] == 4000


def test_a_span_that_is_open_cannot_be_entered_again_and_one_that_ended_can():
    span = weir.span("again")
    with span:
        with pytest.raises(RuntimeError, match="weir.span"):
            span.__enter__()
    with span:
        pass
    assert row("user/again")["count"] == 2


def test_a_span_that_is_dropped_ends():
    span = weir.span("dropped")
    span.__enter__()
    del span
    gc.collect()
    assert row("user/dropped")["count"] == 1


@pytest.mark.parametrize("wrong", [lambda: weir.span(), lambda: weir.span(3), lambda: weir.span("a", 3), lambda: weir.span("a", "b", "c"),
                                   lambda: weir.span("a", colour="red"), lambda: weir.span("a", name="b"), lambda: weir.marker(),
                                   lambda: weir.span("x")(3), lambda: weir.frame("x", "1"), lambda: weir.counter("cw", "v").set(1.0),
                                   lambda: weir.counter("cx").set("much"), lambda: weir.counter("cy").set(), lambda: weir.counter("cz", "a").add(b=1)])
def test_wrong_arguments_are_type_errors(wrong):
    with pytest.raises(TypeError):
        wrong()


@pytest.mark.parametrize("wrong", [lambda: weir.span(""), lambda: weir.span("x" * 201), lambda: weir.marker("x", ""),
                                   lambda: weir.counter("c", *"abcdefghijklmnopq"), lambda: weir.counter("")])
def test_names_that_cannot_be_are_value_errors(wrong):
    with pytest.raises(ValueError):
        wrong()


def test_a_name_of_spans_is_no_counter():
    with weir.span("taken"):
        pass
    with pytest.raises(ValueError):
        weir.counter("taken")


def test_steps_and_frames_are_one_after_the_other():
    before = row("weir/step")["count"] if "weir/step" in [r["name"] for r in weir.spans()] else 0
    for number in range(5):
        weir.step(number)
        weir.frame("epoch", number, category="train")
    weir.step(None)
    weir.frame("epoch", None, category="train")
    assert row("weir/step")["count"] == before + 5
    assert row("train/epoch")["count"] == 5


def test_markers_are_counted():
    weir.marker("here")
    weir.marker("here", category="there")
    weir.marker("here")
    assert row("user/here")["count"] == 2 and row("there/here")["count"] == 1


def test_counters_have_one_value_or_several():
    loss = weir.counter("loss")
    loss.set(2)
    loss.add(-0.5)
    cache = weir.counter("cache", "hits", "misses", category="io")
    cache.set(hits=1, misses=2)
    cache.add(hits=4)
    assert row("user/loss")["last"] == 1.5
    assert row("io/cache/hits")["last"] == 5 and row("io/cache/misses")["last"] == 2
    weir.counter("loss").set(7)
    assert row("user/loss")["last"] == 7


def test_a_total_only_grows():
    sent = weir.counter("sent", total=True)
    sent.add(10)
    sent.add(-3)
    assert row("user/sent")["total"] == 10


def test_nothing_is_measured_in_a_pause():
    with weir.span("paused"):
        pass
    with weir.paused(), weir.span("paused"):
        pass
    assert row("user/paused")["count"] == 1


def test_all_of_it_is_a_table_too():
    with weir.span("shown"):
        pass
    assert "user/shown" in weir.spans().text
    assert "<pre>" in weir.spans()._repr_html_()


def test_figures_begin_anew_after_a_reset():
    program = ("import weir\nwith weir.span('a'): pass\nassert weir.spans(reset=True)['user/a']['count'] == 1\n"
               "assert sum(r['count'] for r in weir.spans()) == 0")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_import_starts_no_thread_and_loads_no_json_or_logging():
    program = ("import weir, sys, os\nwith weir.span('a'): pass\nassert len(os.listdir('/proc/self/task')) == 1\n"
               "assert not {'json', 'logging', 'asyncio'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_interpreter_may_end_with_open_spans_on_threads():
    program = ("import weir, threading\nopen = threading.Event()\ndef work():\n  with weir.span('a'):\n    open.set(); threading.Event().wait()\n"
               "threading.Thread(target=work, daemon=True).start()\nopen.wait()\nspan = weir.span('b'); span.__enter__()")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
