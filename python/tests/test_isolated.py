"""Videos that a child process decodes."""

import os
import signal
import threading
from pathlib import Path

import pytest

import weir


def children():
    """The processes that this one has started and that have not ended."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


@pytest.fixture(autouse=True)
def no_child_is_left():
    before = children()
    yield
    assert children() == before


def test_isolated_frames_are_those_of_the_video(clip):
    with weir.Video(clip) as video, weir.Video(clip, isolated=True) as isolated:
        assert (len(isolated), isolated.times, isolated.info) == (len(video), video.times, video.info)
        assert bytes(isolated[10:20:3]) == bytes(video[10:20:3])
        assert bytes(isolated.at([1.5])) == bytes(video.at([1.5]))
        assert [bytes(frame) for frame in isolated] == [bytes(frame) for frame in video]


@pytest.mark.parametrize("form", ["bytes", "file"])
def test_isolated_videos_are_read_from_memory(clip, form):
    with open(clip, "rb") as file, weir.Video(clip) as video:
        source = file.read() if form == "bytes" else file
        with weir.Video(source, isolated=True, size=32) as isolated:
            assert bytes(isolated[7]) == bytes(weir.Video(clip, size=32)[7])


def test_a_frame_that_is_not_there_is_an_index_error(clip):
    with weir.Video(clip, isolated=True) as video, pytest.raises(IndexError):
        video[1000]


def test_a_child_that_was_killed_fails_one_request(clip):
    before = children()
    with weir.Video(clip, isolated=True) as video:
        expected = bytes(video[5])
        frames = iter(video)
        next(frames)
        (child,) = children() - before
        os.kill(child, signal.SIGSEGV)
        with pytest.raises(weir.Error, match="SIGSEGV|has ended"):
            for _ in frames:
                pass
        assert bytes(video[5]) == expected  # a new child


def test_what_is_no_video_fails_in_the_child(tmp_path):
    with pytest.raises(weir.Error) as caught:
        weir.Video(b"no video" * 100, isolated=True, name="text")
    assert caught.value.status == "EDATA" and caught.value.file == "text"
    with pytest.raises(FileNotFoundError):
        weir.Video(tmp_path / "none.mp4", isolated=True)


def test_a_child_keeps_its_limit_of_memory(clip):
    with pytest.raises(weir.Error):
        weir.Video(clip, isolated=True, max_memory=1 << 20, size=(4000, 4000))[:]
    with pytest.raises(ValueError, match="isolated=True"):
        weir.Video(clip, max_memory=1 << 20)
    with pytest.raises(ValueError, match="max_memory"):
        weir.Video(clip, isolated=True, max_memory=0)


def test_many_isolated_videos_fail_one_by_one(clip):
    data = Path(clip).read_bytes()
    results = weir.decode_many([data, b"x" * 1000, clip, data[: len(data) // 3]], frames=4, size=32, isolated=True)
    expected = weir.decode_many([data], frames=4, size=32)[0]
    assert bytes(results[0]) == bytes(results[2]) == bytes(expected)
    assert isinstance(results[1], weir.Error) and results[1].file == "sources[1]"


def test_the_child_is_killed_at_the_deadline(clip):
    results = weir.decode_many([clip], frames=80, size=(1500, 2000), isolated=True, deadline=0.001)
    assert isinstance(results[0], weir.Error) and results[0].status == "ETIMEDOUT"


def test_pipelines_and_loaders_decode_in_children(clip, clips):
    described = weir.Pipeline().add_source([clip]).pipe(weir.decode(4, size=32, isolated=True)).add_sink()
    with described.build() as pipeline:
        (frames,) = pipeline
    assert bytes(frames) == bytes(weir.decode_many([clip], frames=4, size=32)[0])
    batches = []
    for isolated in (False, True):
        with weir.Loader(str(clips), frames=2, size=16, batch_size=6, seed=4, isolated=isolated) as loader:
            batches.append([bytes(batch) for batch in loader])
    assert batches[0] == batches[1]


def test_threads_use_one_isolated_video(clip):
    with weir.Video(clip, isolated=True, size=16) as video:
        expected = [bytes(video[i]) for i in range(8)]
        found = [None] * 8

        def read(i):
            found[i] = bytes(video[i])

        threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == expected
