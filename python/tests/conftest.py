"""What the tests share: small clips, made by the ffmpeg program."""

import os
import signal
import subprocess

import pytest

# Shells start background jobs with SIGINT ignored, and what these start inherits that: then there is no Ctrl-C to test.
signal.signal(signal.SIGINT, signal.default_int_handler)


def make_clip(path, *, seconds=3, rate=30, size="128x96", gop=30, pattern="testsrc2", codec="libx264", more=()):
    """A clip whose frames all differ."""
    source = f"{pattern}=size={size}:rate={rate}:duration={seconds}"
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-c:v", codec, "-g", str(gop), *more, str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return str(path)


@pytest.fixture
def memory_bytes():
    """A function that measures the process' resident memory."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer keeps what was freed")

    def measure():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    return measure


@pytest.fixture(scope="session")
def clip(tmp_path_factory):
    """90 frames at 30 per second, 128 pixels wide and 96 high, a keyframe every 30 frames."""
    return make_clip(tmp_path_factory.mktemp("clip") / "clip.mp4")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Two classes of four clips each, of different lengths: dance/0.mp4 to sing/3.mp4."""
    root = tmp_path_factory.mktemp("videos")
    for label in ("dance", "sing"):
        (root / label).mkdir()
        for i in range(4):
            make_clip(root / label / f"{i}.mp4", seconds=1 + i * 0.5, rate=20, size="64x48")
    return str(root)


@pytest.fixture(scope="session")
def clips(tmp_path_factory):
    """A folder of two classes of three clips each, all different: 64x48, 20 frames at 10 per second, a keyframe every 5 frames."""
    root = tmp_path_factory.mktemp("clips")
    for hue, label in ((0, "jump"), (30, "walk")):
        (root / label).mkdir()
        for i in range(3):
            make_clip(root / label / f"{i}.mp4", seconds=2, rate=10, size="64x48", gop=5,
                      more=("-vf", f"hue=h={hue + 90 * i}", "-pix_fmt", "yuv420p"))
    return root
