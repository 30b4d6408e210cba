"""weir.decode_many(): many videos at once."""

import io
import os
import signal
import subprocess
import sys
import threading

import pytest

import weir


@pytest.fixture(scope="session")
def paths(clips):
    return sorted(str(path) for path in clips.glob("*/*.mp4"))


def test_results_are_in_the_order_of_the_sources_and_those_of_video(paths):
    numpy = pytest.importorskip("numpy")
    results = weir.decode_many(paths * 5, frames=4)
    assert len(results) == 30
    for path, frames in zip(paths * 5, results):
        assert frames.name == path
        with weir.Video(path) as video:
            assert numpy.array_equal(numpy.asarray(frames), numpy.asarray(video.spread(4)))


def test_paths_bytes_buffers_and_file_objects_are_sources(paths):
    data = open(paths[0], "rb").read()
    sources = [paths[0], os.fsencode(paths[0]) and data, bytearray(data), memoryview(data), io.BytesIO(data)]
    with open(paths[0], "rb") as file:
        results = weir.decode_many([*sources, file], frames=2)
    pixels = [bytes(memoryview(frames)) for frames in results]
    assert len(set(pixels)) == 1


def test_failures_are_in_their_places_with_their_numbers(paths, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    sources = [paths[0], b"no video either", paths[1], tmp_path / "missing.mp4", tmp_path / "text.mp4", b""]
    results = weir.decode_many(sources, frames=2)
    assert [isinstance(result, weir.Error) for result in results] == [False, True, False, True, True, True]
    assert [result.number for result in results] == [0, 1, 2, 3, 4, 5]
    assert isinstance(results[3], FileNotFoundError)
    assert "missing.mp4" in str(results[3])
    assert "sources[1]" in str(results[1])


def test_the_first_failure_is_raised_if_that_is_wanted(paths):
    with pytest.raises(weir.Error) as caught:
        weir.decode_many([paths[0], b"no video"] + paths, on_error="raise")
    assert caught.value.number == 1


def test_a_number_or_a_time_of_zero_is_no_default(paths):
    for wrong in ({"concurrency": 0}, {"deadline": 0}, {"deadline": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            weir.decode_many(paths, **wrong)
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            weir.Pipeline().add_source(paths).pipe(len, **wrong)
    for wrong in ({"threads": 0}, {"stats_interval": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            weir.Pipeline().add_source(paths).add_sink(1).build(**wrong)


def test_no_sources_give_no_results():
    assert weir.decode_many([]) == []


@pytest.mark.parametrize("options, shape", [
    ({}, (32, 48, 64, 3)),
    ({"frames": 5, "size": 24}, (5, 24, 32, 3)),
    ({"frames": 3, "size": (20, 30), "layout": "nchw"}, (3, 3, 20, 30)),
    ({"fps": 5}, (10, 48, 64, 3)),
    ({"every": 4}, (5, 48, 64, 3)),
    ({"indices": [-1, 0, 3]}, (3, 48, 64, 3)),
    ({"times": [0, 1.04], "tolerance": 0.05}, (2, 48, 64, 3)),
    ({"keyframes": True}, (4, 48, 64, 3)),
    ({"clips": 2, "frames": 4, "stride": 2, "start": "even"}, (2, 4, 48, 64, 3)),
    ({"clips": 2, "frames": 3, "stride": 0.2, "start": "even"}, (2, 3, 48, 64, 3)),
    ({"fps": 10, "between": (0.5, 1)}, (5, 48, 64, 3)),
    ({"frames": 2, "pixel": "gray8"}, (2, 48, 64)),
])
def test_each_way_to_choose_frames_gives_its_shape(paths, options, shape):
    frames, = weir.decode_many(paths[:1], **options)
    assert frames.shape[: len(shape)] == shape


@pytest.mark.parametrize("options, indices", [
    ({"clips": 1, "frames": 4, "stride": 2, "start": "first"}, [0, 2, 4, 6]),
    ({"clips": 1, "frames": 4, "stride": 0.3, "start": "first"}, [0, 3, 6, 9]),
    ({"every": 5}, [0, 5, 10, 15]),
    ({"fps": 5, "between": (1, 2)}, [10, 12, 14, 16, 18]),
    ({"times": [0.25, 1.9]}, [2, 19]),
    ({"keyframes": True}, [0, 5, 10, 15]),
    ({"frames": 2}, [5, 15]),
])
def test_each_way_to_choose_frames_gives_the_frames_that_it_means(paths, options, indices):
    frames, = weir.decode_many(paths[:1], **options)
    expected, = weir.decode_many(paths[:1], indices=indices)
    assert bytes(memoryview(frames)) == bytes(memoryview(expected))


@pytest.mark.parametrize("options, message", [
    ({"frames": 4, "fps": 2}, "either frames or fps"),
    ({"indices": [1], "times": [1]}, "either indices or times"),
    ({"stride": 2}, "clips"),
    ({"tolerance": 0.1}, "times"),
    ({"clips": 2}, "frames="),
    ({"frames": 0}, "at least 1"),
    ({"frames": 2.5}, "whole number"),
    ({"fps": -1}, "above 0"),
    ({"between": (2, 1)}, "between 2 and 1"),
    ({"indices": [0], "between": (0, 1)}, "between is not for indices"),
    ({"indices": []}, "indices is empty"),
    ({"times": []}, "times is empty"),
    ({"on_error": "ignore"}, "on_error"),
    ({"concurrency": 0}, "concurrency"),
    ({"sizes": 3}, "sizes"),
    ({"pixel": "rgb"}, "pixel"),
])
def test_options_that_do_not_fit_are_named(paths, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        weir.decode_many(paths[:1], **options)


@pytest.mark.parametrize("source", [5, None, io.StringIO("text")])
def test_sources_that_are_none_are_a_TypeError(paths, source):
    with pytest.raises(TypeError):
        weir.decode_many([paths[0], source])


def test_many_threads_may_call_it_at_once(paths):
    results = [None] * 6
    ready = threading.Barrier(len(results))

    def work(number):
        ready.wait()
        results[number] = weir.decode_many(paths, frames=2)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pixels = [[bytes(memoryview(frames)) for frames in result] for result in results]
    assert all(one == pixels[0] for one in pixels)


def test_a_buffer_is_not_copied_and_is_free_again_afterwards(paths):
    data = bytearray(open(paths[0], "rb").read())
    weir.decode_many([data], frames=2)
    data.append(0)  # BufferError while somebody has a view of it


def test_frames_outlive_the_sources_and_the_other_results(paths):
    frames = weir.decode_many([open(path, "rb").read() for path in paths], frames=2)[3]
    view = memoryview(frames[1])
    expected = bytes(view)
    del frames
    weir.decode_many(paths * 3, frames=4)
    assert bytes(view) == expected


LOOP = """
import sys, weir
sources = sys.argv[1:] * 200
print("begun", flush=True)
while True:
    weir.decode_many(sources, frames=4)
"""


def test_ctrl_c_ends_it(paths):
    with subprocess.Popen([sys.executable, "-c", LOOP, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert child.returncode == -signal.SIGINT or child.returncode == 130 or child.returncode == 1


def test_one_video_is_no_list_of_videos(clip):
    with pytest.raises(TypeError, match="a list of videos"):
        weir.decode_many(clip)
    with pytest.raises(ValueError, match="origin"):
        weir.decode_many([clip], origin="stream")
