"""weir.Video: which frame, from where, in which memory, and what is said when it fails."""

import copy
import errno
import gc
import io
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import weakref

import pytest

import weir
from conftest import make_clip

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def all_frames(clip):
    """All frames as ffmpeg decodes them."""
    command = ["ffmpeg", "-v", "error", "-i", clip, "-f", "rawvideo", "-pix_fmt", "rgb24", "-sws_flags", "bicubic", "-"]
    raw = subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 96, 128, 3)


@pytest.fixture
def video(clip):
    with weir.Video(clip, scaler="exact") as opened:
        yield opened


def test_facts_are_those_of_the_file(video):
    assert (len(video), video.fps, video.duration, video.codec, video.size) == (90, 30.0, 3.0, "h264", (96, 128))
    assert video.keyframes == [0, 30, 60]
    assert video.rotation == 0
    assert "mp4" in video.container
    assert video.times == pytest.approx([i / 30 for i in range(90)], abs=1e-9)


def test_every_way_of_indexing_gives_the_frames_that_ffmpeg_decodes(video, all_frames):
    assert (np.asarray(video[:]) == all_frames).all()
    numbers = list(range(-90, 90))
    random.Random(1).shuffle(numbers)
    for i in numbers[:40]:
        assert (np.asarray(video[i]) == all_frames[i]).all(), i
    for chosen in (slice(2, 10, 3), slice(None, None, -7), slice(-5, None), slice(80, 1000)):
        assert (np.asarray(video[chosen]) == all_frames[chosen]).all(), chosen
    for chosen in ([3, 1, 1, -1], np.array([7, 2]), range(4, 8)):
        assert (np.asarray(video[chosen]) == all_frames[list(chosen)]).all(), chosen
    assert (np.asarray(video[np.int64(4)]) == all_frames[4]).all()


def test_iteration_gives_each_frame_also_when_other_requests_come_between(video, all_frames):
    number = 0
    for frame in video:
        assert (np.asarray(frame) == all_frames[number]).all()
        assert frame.time == pytest.approx(number / 30)
        if number % 7 == 0:
            video[random.randrange(90)]
        number += 1
    assert number == 90


def test_two_iterations_at_once_do_not_disturb_each_other(video):
    assert sum(1 for _ in zip(video, video)) == 90


def test_times_are_those_of_a_player(video, all_frames):
    assert (np.asarray(video.at(0.5)) == all_frames[15]).all()
    assert (np.asarray(video.at([0, 1.01, 2.99])) == all_frames[[0, 30, 89]]).all()
    assert (np.asarray(video.at(1.02, match="nearest")) == all_frames[31]).all()
    assert (np.asarray(video.at(99, outside="clamp")) == all_frames[89]).all()
    assert (np.asarray(video.between(1, 2)) == all_frames[30:60]).all()
    assert video.between(1, 2, fps=8).shape == (8, 96, 128, 3)
    with pytest.raises(weir.Error, match="1.02"):
        video.at(1.02, tolerance=0.001)
    with pytest.raises(IndexError, match="after the end"):
        video.at(99)


def test_a_frame_that_does_not_exist_is_an_index_error_and_the_next_request_is_right(video, all_frames):
    for wrong in (90, -91, [3, 90]):
        with pytest.raises(IndexError, match="the video has 90 frame"):
            video[wrong]
    assert (np.asarray(video[89]) == all_frames[89]).all()


def test_an_empty_slice_is_an_empty_array(video):
    for empty in (video[90:95], video[5:5], video[5:2], video[[]], video.at([])):
        assert (empty.shape, empty.dtype, len(empty)) == ((0, 96, 128, 3), "uint8", 0)
        assert np.asarray(empty).shape == (0, 96, 128, 3)
        assert empty.times_ns.tolist() == []
        with pytest.raises(IndexError):
            empty[0]
    assert video[0:1].shape == (1, 96, 128, 3)


def test_bytes_and_file_objects_give_the_same_frames(clip, all_frames):
    with open(clip, "rb") as file:
        data = file.read()
        file.seek(0)
        sources = [data, bytearray(data), memoryview(data), io.BytesIO(data), file, OneWay(data)]
        for source in sources:
            opened = weir.Video(source, scaler="exact")
            assert (np.asarray(opened[[5, 80]]) == all_frames[[5, 80]]).all(), source


class OneWay(io.RawIOBase):
    """A stream that cannot seek and gives little at a time."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def read(self, size=-1):
        return self.data.read(min(size, 1000) if size > 0 else size)


def test_an_exception_of_a_file_object_is_the_one_that_is_raised(clip):
    class Broken(io.BytesIO):
        is_broken = False

        def read(self, size=-1):
            if self.is_broken:
                raise RuntimeError("the store is gone")
            return super().read(size)

    with open(clip, "rb") as file:
        source = Broken(file.read())
    opened = weir.Video(source)
    source.is_broken = True
    with pytest.raises(RuntimeError, match="the store is gone"):
        opened[50]
    source.is_broken = False
    assert opened[50].shape == (96, 128, 3)


def test_what_is_not_in_a_file_that_exists_is_no_missing_file(clip):
    with weir.Video(clip) as video:
        for ask in (lambda: video.at([0.001], tolerance=0), lambda: weir.Video(clip, stream=7)):
            with pytest.raises(LookupError) as raised:
                ask()
            assert isinstance(raised.value, weir.Error) and raised.value.status == "ENOTFOUND"
            assert not isinstance(raised.value, OSError)


def test_errors_name_the_file_and_are_also_pythons_own(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.mp4") as raised:
        weir.Video(tmp_path / "nothing.mp4")
    assert isinstance(raised.value, weir.Error)
    assert (raised.value.status, raised.value.code) == ("ENOTFOUND", -2)
    assert raised.value.file.endswith("nothing.mp4")
    assert raised.value.errno == errno.ENOENT and raised.value.filename == raised.value.file
    text = tmp_path / "text.mp4"
    text.write_text("this is no video")
    with pytest.raises(weir.Error, match="text.mp4") as raised:
        weir.Video(text)
    assert raised.value.status == "EDATA"
    with pytest.raises(TypeError, match="a path, a URL, bytes or a file object"):
        weir.Video(5)
    with pytest.raises(ValueError, match="'nhwc', 'nchw'"):
        weir.Video(text, layout="hwc")
    with pytest.raises(TypeError, match="unknown option: 'sise'"):
        weir.Video(text, sise=3)


def test_secrets_of_a_url_are_in_no_message():
    with pytest.raises(weir.Error) as raised:
        weir.Video("http://someone:secret@localhost:9/clip.mp4?X-Amz-Signature=secret")
    assert "secret" not in f"{raised.value} {raised.value.file}"


def test_sizes_pixels_and_layouts(clip):
    shapes = {
        (("size", 48),): (48, 64, 3),
        (("size", (32, 40)),): (32, 40, 3),
        (("longest", 64), ("layout", "nchw")): (3, 48, 64),
        (("pixel", "gray8"),): (96, 128, 1),
        (("width", 64), ("height", 64), ("resize", "crop")): (64, 64, 3),
    }
    for options, shape in shapes.items():
        assert weir.Video(clip, **dict(options))[0].shape == shape
    deep = weir.Video(clip, pixel="rgb48")[0]
    assert deep.dtype == "uint16"
    assert np.asarray(deep).dtype == np.uint16


def test_arrays_share_memory_are_writable_and_outlive_everything(clip):
    opened = weir.Video(clip)
    frames = opened[:3]
    views = [np.asarray(frames), np.asarray(frames[0])[None], np.asarray(memoryview(frames))]
    if hasattr(np, "from_dlpack") and np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        views.append(np.from_dlpack(frames))
    assert len({view.__array_interface__["data"][0] for view in views}) == 1
    views[0][0, 0, 0] = 77
    assert all((view[0, 0, 0] == 77).all() for view in views)
    single = np.asarray(frames[2])
    expected = views[0][2].copy()
    opened.close()
    del opened, frames, views
    gc.collect()
    assert (single == expected).all()


def test_the_other_parts_of_frames_are_arrays(video):
    frames = video[[0, 30, 30]]
    assert frames.times_ns.tolist() == [0, 10**9, 10**9]
    assert list(frames.mask) == [1, 1, 1]
    assert len(frames.pts) == 3
    assert frames.damage == {"errors": 0, "corrupt": 0, "missing": 0}
    assert (frames.codec, frames.source_size) == ("h264", (96, 128))
    assert video.clips(2, frames=4, stride=2).shape == (2, 4, 96, 128, 3)
    assert video.spread(4).times_ns.tolist() == [round(i * 1e9 / 30) for i in (11, 33, 56, 78)]


def test_a_closed_video_says_so(clip):
    opened = weir.Video(clip)
    frame = opened[0]
    opened.close()
    opened.close()
    with pytest.raises(ValueError, match="closed"):
        opened[0]
    assert frame.shape == (96, 128, 3)


def test_threads_may_share_a_video(video, all_frames):
    wrong = []

    def ask(seed):
        draw = random.Random(seed)
        for _ in range(30):
            i = draw.randrange(90)
            if not (np.asarray(video[i]) == all_frames[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_other_threads_run_while_frames_are_decoded(tmp_path):
    long = make_clip(tmp_path / "long.mp4", seconds=10, size="320x240")
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    weir.Video(long)[:]
    after = counted[0]
    ended.set()
    thread.join()
    assert after > before


def test_importing_weir_loads_no_ffmpeg_and_starts_no_thread():
    script = (
        "import weir, sys; maps = open('/proc/self/maps').read(); status = open('/proc/self/status').read();"
        "print('libav' in maps, status.split('Threads:')[1].split()[0], 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "False"]


def test_ctrl_c_ends_a_long_request(tmp_path):
    long = make_clip(tmp_path / "long.mp4", seconds=20, size="320x240")
    script = f"""
import weir, sys
video = weir.Video({long!r})
try:
    print("ready", flush=True)
    while True:
        video[:].shape
except KeyboardInterrupt:
    print("interrupted", video[3].shape)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted (240, 320, 3)\n"


def test_what_is_not_used_any_more_is_freed(clip):
    data = bytearray(open(clip, "rb").read())
    opened = weir.Video(data)
    frames = opened[:5]
    with pytest.raises(BufferError):
        data.extend(b"x")  # it is borrowed
    gone = weakref.ref(opened)
    del opened
    gc.collect()
    assert gone() is None
    data.extend(b"x")
    assert frames.shape[0] == 5


def test_videos_that_are_opened_again_and_again_take_no_more_memory(clip, memory_bytes):
    def use(times):
        for _ in range(times):
            weir.Video(clip)[[1, 40]]
            with pytest.raises(IndexError):
                weir.Video(clip)[1000]

    use(30)
    before = memory_bytes()
    use(100)
    # one leaked video would be 200 pictures of 36 kB
    assert memory_bytes() - before < 4 << 20


def test_a_handler_cannot_use_the_video_inside_its_own_call(tmp_path):
    """It would wait for itself; it is told."""
    long = make_clip(tmp_path / "long.mp4", seconds=20, size="320x240")
    script = f"""
import signal, weir
video = weir.Video({long!r})
def handle(*_):
    try:
        video.close()
    except RuntimeError as error:
        print(error, flush=True)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(video[:].shape[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "this thread is inside a call of this video already\n600\n", done.stderr


STORE_THAT_DOES_NOT_ANSWER = """
import io, os, sys, threading, weir
class Store(io.BytesIO):
    answers, is_asked = threading.Event(), threading.Event()
    def read(self, size=-1):
        if not self.answers.is_set():
            self.is_asked.set()
            self.answers.wait()
        return super().read(size)
store = Store(open(sys.argv[1], "rb").read())
store.answers.set()
video = weir.Video(store)
store.answers.clear()
threading.Thread(target=lambda: video[80], daemon=True).start()
store.is_asked.wait()
"""


def test_ctrl_c_ends_waiting_for_another_thread(clip):
    script = STORE_THAT_DOES_NOT_ANSWER + """
try:
    print("ready", flush=True)
    video[5]
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""
    child = subprocess.Popen([sys.executable, "-c", script, clip], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        child.kill()


def test_a_thread_that_reads_at_the_end_holds_nothing_up(clip):
    """It ends with the lock of the video, which a finalizer closes."""
    script = STORE_THAT_DOES_NOT_ANSWER + """
class Last:
    def __init__(self, video):
        self.video = video
    def __del__(self):
        try:
            self.video.close()
        except RuntimeError:
            pass
sys.keep = Last(video)
"""
    assert subprocess.run([sys.executable, "-c", script, clip], timeout=30).returncode == 0


def test_iterations_of_several_threads_do_not_disturb_each_other(video, all_frames):
    wrong, ended = [], []

    def check(frames):
        try:
            for number, frame in frames:
                if not (np.asarray(frame) == all_frames[number]).all():
                    wrong.append(number)
            ended.append(number)
        except Exception as error:
            wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        work = [enumerate(video), enumerate(video), ((number, video[number]) for number in range(60))]
        threads = [threading.Thread(target=check, args=(frames,)) for frames in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert (wrong, sorted(ended)) == ([], [59, 89, 89])


def test_numbers_of_numpy_are_numbers(video, all_frames, clip):
    assert (np.asarray(video.at(np.float32(0.5))) == all_frames[15]).all()
    assert (np.asarray(video.at(np.int64(1))) == all_frames[30]).all()
    assert video.at(np.array([0.5, 1])).shape[0] == 2
    assert weir.Video(clip, size=np.int64(48))[0].shape == (48, 64, 3)
    with pytest.raises(TypeError, match="mask"):
        video[np.array([False, True])]


def test_windows_are_not_taken_for_the_whole(video):
    assert len(video.between(2.5, float("inf"))) == 15
    for start, stop in ((0, 1e-10), (1, 1), (2, 1), (-1, 1)):
        with pytest.raises(ValueError):
            video.between(start, stop)


def test_elements_of_arrays(video, clip):
    frames = video[0:8]
    assert frames.times_ns[-1] == frames.times_ns[7]
    for at in (-9, 8):
        with pytest.raises(IndexError):
            frames.times_ns[at]
    assert video.clips(2, frames=4)[1].shape == (4, 96, 128, 3)
    assert frames.name == clip


# ---- what others write


def damaged(clip, tmp_path):
    """The clip with one frame that cannot be decoded; nothing else depends on it."""
    data = bytearray(open(clip, "rb").read())
    lost = 41
    packets = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time,pos,size", "-of", "csv=p=0", clip],
        check=True, capture_output=True, text=True).stdout.split()
    for packet in packets:
        time, size, position = packet.split(",")[:3]
        if round(float(time) * 30) == lost:
            data[int(position):int(position) + int(size)] = b"\xff" * int(size)
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    return str(path), lost


def test_requests_during_an_iteration_change_nothing_of_a_damaged_file(tmp_path):
    clip = make_clip(tmp_path / "intra.mp4", gop=1)
    path, lost = damaged(clip, tmp_path)
    video = weir.Video(path)
    whole = [frame.time for frame in video]
    assert len(whole) == 89 and len(video) == 90
    disturbed = []
    for number, frame in enumerate(video):
        disturbed.append(frame.time)
        if number % 5 == 0 or number == lost - 1:
            video[3]
    assert disturbed == whole


def test_a_number_that_is_too_large_for_c_is_outside_of_the_video(video):
    for number in (10**30, -10**30, 2**63, [0, 10**30]):
        with pytest.raises(IndexError, match="no video has the frame"):
            video[number]
    for time in (float("inf"), float("-inf"), 1e10, [0, 1e300]):
        with pytest.raises(IndexError, match="no video has a frame at"):
            video.at(time)
    assert (np.asarray(video.at(float("inf"), outside="clamp")) == np.asarray(video[-1])).all()
    assert (np.asarray(video.at(-1e12, outside="clamp")) == np.asarray(video[0])).all()


@pytest.mark.parametrize("call, message", [
    (lambda video: video.at(float("nan")), "a time is nan"),
    (lambda video: video.at(0, tolerance=float("nan")), "tolerance is nan"),
    (lambda video: video.at(0, tolerance=-1), "tolerance is -1"),
    (lambda video: video.at(0, tolerance=1, match="shown"), "tolerance is for match"),
    (lambda video: video.at(0, match=""), "match"),
    (lambda video: video.between(float("nan"), 1), "start is nan"),
    (lambda video: video.between(0, float("nan")), "stop is nan"),
    (lambda video: video.between(0, 1, fps=float("nan")), "a rate is .* not nan"),
    (lambda video: video.between(0, 1, fps=1e-12), "too small"),
    (lambda video: video.between(0, 1, fps=10**12), "too large"),
    (lambda video: video.spread(0), "count is 0"),
    (lambda video: video.spread(-1), "count is -1"),
    (lambda video: video.clips(1, frames=2, stride=1e-12), "a stride is above 0"),
    (lambda video: video.clips(1, frames=2, stride=float("inf")), "stride is inf"),
    (lambda video: video.clips(1, frames=2, epoch=-1), "epoch is -1"),
])
def test_a_value_that_has_no_meaning_is_a_value_error_that_names_it(video, call, message):
    with pytest.raises(ValueError, match=message):
        call(video)


def test_a_number_of_a_clip_is_never_wrapped(video):
    with pytest.raises(OverflowError):
        video.clips(1, frames=2, number=2**64)
    with pytest.raises(OverflowError):
        video.clips(1, frames=2, epoch=2**64)


def test_a_text_is_not_a_list(video, clip):
    for call in (lambda: video["3"], lambda: video[b"\3"], lambda: video.at("0"), lambda: video.at(b"\0"),
                 lambda: weir.decode_many([clip], times="0"), lambda: weir.decode_many([clip], indices=3)):
        with pytest.raises(TypeError, match="must be a list"):
            call()


def test_floats_of_numpy_are_rates_and_strides(video):
    assert video.between(0, 1, fps=np.float32(8)).shape[0] == 8
    wanted = video.clips(1, frames=4, stride=0.5, start="center").times_ns.tolist()
    assert video.clips(1, frames=4, stride=np.float32(0.5), start="center").times_ns.tolist() == wanted


def test_a_size_has_one_or_two_whole_numbers_from_1_on(clip):
    assert weir.Video(clip, size=np.array([20, 30]))[0].shape == (20, 30, 3)
    for size in ((0, 5), (5, 0), (-5, 5), (20,), (1, 2, 3)):
        with pytest.raises(ValueError, match="size"):
            weir.Video(clip, size=size)
    for size in (1.5, "ab", (20.0, 30)):
        with pytest.raises(TypeError, match="size"):
            weir.Video(clip, size=size)


def test_between_of_many_has_two_times(clip):
    for between in ((1,), (0, 1, 2), 3):
        with pytest.raises(ValueError, match="between is"):
            weir.decode_many([clip], 4, between=between)


def test_what_is_open_is_neither_copied_nor_pickled(video):
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a weir.Video cannot be copied or pickled"):
            make(video)


def test_an_array_has_elements_of_each_dimension(video):
    frame = video[3]
    values = np.asarray(frame)
    assert frame[7].shape == (128, 3) and (np.asarray(frame[7]) == values[7]).all()
    assert (np.from_dlpack(frame[7][9]) == values[7, 9]).all()
    assert frame[7][9][1] == values[7, 9, 1]
    assert frame[-1][-1].tolist() == values[-1, -1].tolist()
    assert [row.shape for row in frame] == [(128, 3)] * 96
    assert frame[7].time is None
    with pytest.raises(IndexError):
        frame[7][128]


def test_only_single_frames_have_a_time(video):
    clips = video.clips(2, frames=3, start="even")
    times = clips.times_ns.tolist()
    assert [one.time for one in clips] == [None, None]
    assert [[frame.time for frame in one] for one in clips] == [[time / 1e9 for time in one] for one in times]
    assert clips[1][2].time > clips[0][2].time


def test_arrays_show_their_type_and_shape(video):
    assert repr(video[3]) == "<weir.Array uint8 (96, 128, 3)>"
    assert repr(video[:2]) == "<weir.Frames uint8 (2, 96, 128, 3)>"
    assert repr(video[:0]) == "<weir.Frames uint8 (0, 96, 128, 3)>"


def test_dlpack_refuses_another_device_with_a_buffer_error(video):
    for device in ((2, 0), (1, 3)):
        with pytest.raises(BufferError, match="host memory"):
            video[3].__dlpack__(dl_device=device)
    for wrong in ({"dl_device": "x"}, {"dl_device": (1,)}, {"max_version": 1}, {"max_version": [1, 0]}):
        with pytest.raises(TypeError, match="tuple of two numbers"):
            video[3].__dlpack__(**wrong)


def test_a_file_in_text_mode_is_refused_as_such(clip):
    for encoding in ("utf-8", "latin1"):
        with open(clip, encoding=encoding) as file, pytest.raises(TypeError, match="not opened as binary: read\\(\\) gave str"):
            weir.Video(file)
        with open(clip, encoding=encoding) as file, pytest.raises(TypeError, match="not opened as binary"):
            weir.decode_many([file])


@pytest.mark.parametrize("end", [-1, "a", 10**30])
def test_a_file_whose_seek_tells_nonsense_is_read_like_a_pipe(clip, end):
    class File(io.BytesIO):
        def seek(self, position, whence=0):
            super().seek(position, whence)
            return end

    assert len(weir.Video(File(open(clip, "rb").read()))) == 90


def test_an_exit_during_seek_is_not_swallowed(clip):
    class File(io.BytesIO):
        def seek(self, position, whence=0):
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        weir.Video(File(open(clip, "rb").read()))


def test_messages_name_the_options_of_python(clip):
    with pytest.raises(weir.Error, match="unless allow_pipes=True is set"):
        weir.Video("/dev/zero")
    with pytest.raises(ValueError, match='several clips need start="random" or start="even"'):
        weir.Video(clip).clips(2, frames=2, start="first")
    with pytest.raises(ValueError, match='checkpoints is "off"'):
        weir.Pipeline().add_source([1]).build(resume=["text"])
