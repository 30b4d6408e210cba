"""weir.watch(): loops over any loader."""

import threading
import time

import pytest

import weir
from weir._watch import nbytes


def spend(seconds):
    """Time that a loader or a step takes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        threading.Event().wait(until - time.monotonic())


def slow(count, seconds):
    for number in range(count):
        spend(seconds)
        yield number


def run(loop, seconds=0.0):
    seen = []
    for batch in loop:
        seen.append(batch)
        spend(seconds)
    return seen


def test_a_loop_that_waits_is_told_how_long_and_what_it_could_gain():
    loop = weir.watch(slow(20, 0.01))
    assert run(loop, 0.005) == list(range(20))
    result = loop.result
    assert result["kind"] == "data" and result["steps"] == 19 and result["starts"] == 1
    assert result["wait"] >= 0.01 and result["step"] >= 0.005
    assert result["share"] == pytest.approx(result["wait"] / (result["wait"] + result["step"]))
    assert result["most"] == pytest.approx(1 / (1 - result["share"]))
    assert result["gain"] is None
    text = loop.explain()
    assert text.startswith("The loop waits for data") and "replay=True" in text


def test_a_loop_whose_data_is_there_does_not_wait():
    loop = weir.watch([1] * 20)
    run(loop, 0.005)
    assert loop.result["kind"] == "steps"
    assert "does not wait" in loop.explain() and "replay" not in loop.explain()


def test_nothing_is_said_before_a_step_has_ended():
    loop = weir.watch([1])
    assert loop.result["steps"] == 0 and loop.result["share"] is None
    assert "no step has ended yet" in loop.explain().lower()
    assert "div" in loop._repr_html_()


def test_nothing_is_replayed_unless_asked_for():
    loop = weir.watch(range(5), keep=8)
    assert run(loop) == [0, 1, 2, 3, 4]
    assert loop.result["replayed"] == 0


def test_replayed_batches_come_at_the_end_once_and_are_measured():
    loop = weir.watch(list(range(12)), replay=20)
    seen = run(loop)
    assert seen[:12] == list(range(12))
    assert seen[12:] == [4 + i % 8 for i in range(30)]  # 10 of them do not count
    assert loop.result["replayed"] == 20 and loop.result["steps"] == 11
    assert run(loop) == list(range(12))
    assert loop.result["replayed"] == 20 and loop.result["starts"] == 2


def test_replays_measure_what_fast_data_brings():
    loop = weir.watch(slow(15, 0.01), replay=10)
    run(loop, 0.003)
    result = loop.result
    assert result["gain_range"][0] <= result["gain"] <= result["gain_range"][1]
    assert result["gain"] > 1.5
    assert "kept data" in loop.explain()


def test_kept_batches_can_be_replayed_apart():
    loop = weir.watch(range(20), keep=2)
    run(loop)
    assert list(loop.replay(steps=3)) == [18, 19] * 6 + [18]
    assert loop.result["replayed"] == 3


def test_a_replay_without_kept_batches_or_within_the_loop_is_refused():
    with pytest.raises(ValueError, match="keep=8"):
        weir.watch([1]).replay()
    loop = weir.watch([1, 2], keep=2)
    for _ in loop:
        with pytest.raises(ValueError, match="goes on"):
            loop.replay()


def test_an_empty_loader_is_not_replayed():
    assert run(weir.watch([], replay=True)) == []


class Sized:
    def __init__(self, size):
        self.nbytes = size


def test_kept_batches_are_bounded_in_bytes_but_one_stays():
    loop = weir.watch([Sized(40), Sized(40), Sized(40)], keep=8, keep_bytes=100)
    run(loop)
    assert len(loop._kept.batches()) == 2
    loop = weir.watch([Sized(400), Sized(400)], keep=8, keep_bytes=100)
    run(loop)
    assert len(loop._kept.batches()) == 1


class Tensor:
    def element_size(self):
        return 2

    def nelement(self):
        return 50


def test_bytes_are_found_in_nested_batches():
    shared = Sized(10)
    assert nbytes(shared) == 10
    assert nbytes(Tensor()) == 100
    assert nbytes({"a": [Sized(1), (Sized(2), b"1234")], "b": {"c": "12345"}}) == 12
    assert nbytes([shared, shared]) == 10
    assert nbytes([None, object(), 1]) == 0
    assert nbytes([1, 2.0]) == 16
    cycle = [Sized(3)]
    cycle.append(cycle)
    assert nbytes(cycle) == 3


def test_bytes_of_arrays_are_found():
    numpy = pytest.importorskip("numpy")
    assert nbytes({"x": numpy.zeros((4, 5), numpy.float32)}) == 80


def test_a_step_that_break_ends_and_an_exception_leave_the_loop_usable():
    loop = weir.watch(range(10))
    for number in loop:
        if number == 3:
            break
    assert loop.result["steps"] == 3
    with pytest.raises(KeyError):
        for number in loop:
            raise KeyError(number)
    assert run(loop) == list(range(10))
    assert loop.result["starts"] == 3


def failing():
    yield 1
    yield 2
    raise OSError("disk")


def test_an_exception_of_the_loader_passes_through():
    loop = weir.watch(failing())
    with pytest.raises(OSError, match="disk"):
        run(loop)
    assert loop.result["steps"] == 1


def test_a_second_iteration_at_the_same_time_goes_on_without_measuring():
    loop = weir.watch([1, 2, 3])
    assert [(a, b) for a in loop for b in loop] == [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
    assert loop.result["steps"] == 2


class Loader:
    dataset = "data"

    def __len__(self):
        return 7

    def __iter__(self):
        return iter(range(7))

    def state_dict(self):
        return {"at": 1}


def test_length_and_attributes_are_those_of_the_loader():
    loop = weir.watch(Loader())
    assert len(loop) == 7 and loop.dataset == "data" and loop.state_dict() == {"at": 1} and bool(loop)
    with pytest.raises(AttributeError):
        loop.nothing
    with pytest.raises(TypeError):
        len(weir.watch(iter([])))


@pytest.mark.parametrize("make", [lambda: weir.watch(3), lambda: weir.watch([], replay="yes"), lambda: weir.watch([], replay=-1),
                                  lambda: weir.watch([], keep=-1), lambda: weir.watch([], replay=True, keep=0)])
def test_wrong_arguments_are_refused(make):
    with pytest.raises((TypeError, ValueError)):
        make()


def test_synchronize_is_called_before_each_end_of_a_step():
    calls = []
    seen = []
    for number in weir.watch([0, 1, 2], synchronize=lambda: calls.append(len(seen))):
        seen.append(number)
    assert calls[:3] == [1, 2, 3]


def test_the_picture_has_the_share_of_waiting():
    loop = weir.watch(slow(5, 0.005))
    run(loop)
    assert "waiting for data" in loop._repr_html_()


def test_times_are_spans_of_the_process():
    before = sum(r["count"] for r in weir.spans() if r["name"] == "loop/step")
    run(weir.watch([1, 2, 3]))
    assert weir.spans()["loop/step"]["count"] == before + 3


def test_keeping_batches_is_not_waiting():
    """Of lists of numbers, whose size costs time."""
    batches = [[[float(i)] * 2048 for i in range(64)] for _ in range(12)]
    loop = weir.watch(batches, keep=4)
    for _ in loop:
        end = time.perf_counter() + 0.005
        while time.perf_counter() < end:
            pass
    assert loop.result["share"] < 0.5


def test_the_start_of_the_loader_is_in_the_first_wait():
    class Slow:
        def __iter__(self):
            time.sleep(0.05)
            return iter(range(5))

    loop = weir.watch(Slow())
    assert list(loop) == list(range(5))
    assert loop.result["start"] >= 0.05


def test_a_replay_that_is_left_ends_its_step():
    weir.spans(reset=True)
    loop = weir.watch(range(3), keep=2)
    list(loop)
    for number, _ in enumerate(loop.replay(100)):
        if number == 30:
            break
    time.sleep(0.2)  # what the program does afterwards is no step
    list(loop)
    assert weir.spans()["loop/replay"]["max"] < 0.2
