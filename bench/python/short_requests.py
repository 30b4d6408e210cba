"""Many short requests: 32 frames, evenly spread, of videos that are bytes in memory, as a server of a vision model gets them.

    short_requests.py [--clips DIR] [--requests 64] [--frames 32] [--rounds 5] [--size 224] [--peers pyav,torchcodec,…]

weir.decode_many beside other packages of this Python, each in a process of its own, in turns, one after the other.
For each clip it prints CPU seconds, and the 99th percentile of the time from the first request to each answer. It
also prints the ratio to weir, with the lowest and the highest of the rounds. Clips are made with the ffmpeg program
(x264, x265, SVT-AV1 where it has them), ten seconds each, or are those of a folder. Each library decodes on as many
threads as there are CPUs, one file per thread, in the fastest way that was found for it.
"""

import argparse
import importlib.util
import io
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

SIZES = {"240p": "426x240", "720p": "1280x720", "1080p": "1920x1080"}
CODECS = {"h264": ["libx264"], "hevc": ["libx265", "-x265-params", "log-level=none"], "av1": ["libsvtav1", "-preset", "8"]}


def positions(num_frames, count):
    return [(2 * i + 1) * num_frames // (2 * count) for i in range(count)]


def pyav(data, count, size):
    import av

    arrays = []
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        packets = [packet for packet in container.demux(stream) if packet.size]
        times = sorted(packet.pts for packet in packets)
        keys = sorted(packet.pts for packet in packets if packet.is_keyframe)
        frames, shown, group = None, None, None
        for at in (times[i] for i in positions(len(times), count)):
            key = max((time for time in keys if time <= at), default=None)
            if frames is None or key != group:  # else the frames of this group are decoded on
                container.seek(at, stream=stream)
                frames, shown, group = container.decode(stream), None, key
            while shown is None or shown.pts < at:
                shown = next(frames, None)
                if shown is None:
                    raise ValueError("PyAV gave no frame at a time that it has listed")
            width, height = scaled(shown.width, shown.height, size)
            arrays.append(shown.reformat(width, height, "rgb24", interpolation="BICUBIC", threads=1).to_ndarray())
    return arrays


def scaled(width, height, size):
    """Width and height with that shortest side."""
    return (round(width * size / height), size) if height <= width else (size, round(height * size / width))


def torchcodec(data, count, size):
    import torch
    from torchcodec.decoders import VideoDecoder

    torch.set_num_threads(1)
    decoder = VideoDecoder(data, seek_mode="exact", num_ffmpeg_threads=1)
    frames = decoder.get_frames_at(positions(len(decoder), count)).data
    width, height = scaled(frames.shape[3], frames.shape[2], size)
    return torch.nn.functional.interpolate(frames, (height, width), mode="bilinear", antialias=True)


def decord(data, count, size):
    import decord

    probe = decord.VideoReader(io.BytesIO(data), ctx=decord.cpu(0), num_threads=1)
    height, width = probe[0].shape[:2]
    width, height = scaled(width, height, size)
    reader = decord.VideoReader(io.BytesIO(data), ctx=decord.cpu(0), width=width, height=height, num_threads=1)
    return reader.get_batch(positions(len(reader), count)).asnumpy()


def opencv(data, count, size):
    import cv2

    capture = cv2.VideoCapture(io.BytesIO(data), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    number, arrays = 0, []
    for wanted in positions(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)), count):
        while number <= wanted:
            capture.grab()
            number += 1
        frame = capture.retrieve()[1]
        shape = scaled(frame.shape[1], frame.shape[0], size)
        arrays.append(cv2.cvtColor(cv2.resize(frame, shape, interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2RGB))
    return arrays


def spdl(data, count, size):
    import spdl.io

    packets = spdl.io.demux_video(data)
    width, height = scaled(*spdl_shape(packets), size)
    scale = spdl.io.get_video_filter_desc(scale_width=width, scale_height=height, scale_mode=None)
    frames = spdl.io.sample_decode_video(packets, positions(len(packets), count), filter_desc=scale)
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def spdl_shape(packets):
    """Width and height: it has them only in the text that describes the packets."""
    found = re.search(r"width=(\d+), height=(\d+)", repr(packets))
    return int(found[1]), int(found[2])


def video_reader(data, count, size):
    """It reads files only: the bytes are put into one in memory, whose time counts."""
    from video_reader import PyVideoReader

    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".mp4") as file:
        file.write(data)
        file.flush()
        reader = PyVideoReader(file.name, threads=1, resize_shorter_side=size)
        return reader.get_batch(positions(int(reader.get_info()["frame_count"]), count))


PEERS = {"spdl": ("spdl.io", spdl), "video_reader": ("video_reader", video_reader), "pyav": ("av", pyav),
         "torchcodec": ("torchcodec", torchcodec), "decord": ("decord", decord), "opencv": ("cv2", opencv)}


def with_weir(datas, frames, size):
    import weir

    results = weir.decode_many(datas, frames=frames, size=size)
    failed = [result for result in results if isinstance(result, Exception)]
    if failed:
        raise failed[0]
    return results


def answer_all(who, datas, frames, size):
    """Seconds until each answer. weir's come together: each has the time of all."""
    start = time.perf_counter()
    if who == "weir":
        with_weir(datas, frames, size)
        return [time.perf_counter() - start] * len(datas)
    decode = PEERS[who][1]

    def answer(data):
        if len(decode(data, frames, size)) != frames:
            raise ValueError(f"{who} gave another number of frames")
        return time.perf_counter() - start

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(answer, datas))


def run_one(who, path, num_requests, frames, size):
    """One measurement, printed as JSON: in a process of its own."""
    data = pathlib.Path(path).read_bytes()
    answer_all(who, [data], frames, size)  # imports, tables of decoders
    before = resource.getrusage(resource.RUSAGE_SELF)
    times = sorted(answer_all(who, [bytes(bytearray(data)) for _ in range(num_requests)], frames, size))
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    p99 = times[max(0, round(len(times) * 0.99) - 1)]
    print(json.dumps({"cpu": cpu, "p99": p99, "wall": times[-1], "memory": after.ru_maxrss * 1024}))


def make_clips(folder):
    encoders = subprocess.run(["ffmpeg", "-v", "error", "-encoders"], capture_output=True, text=True).stdout
    for codec, options in CODECS.items():
        for name, size in SIZES.items():
            path = pathlib.Path(folder, f"{codec}-{name}.mp4")
            if options[0] in encoders and not path.exists():
                source = f"testsrc2=size={size}:rate=30:duration=10,noise=alls=8:allf=t"
                subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-c:v", *options, "-g", "60",
                                "-pix_fmt", "yuv420p", str(path)], check=True, stdin=subprocess.DEVNULL)


def measure(who, path, options):
    command = [sys.executable, __file__, "--one", who, "--clips", str(path), "--requests", str(options.requests), "--frames",
               str(options.frames), "--size", str(options.size)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{who}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def compare(path, names, options):
    rounds = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            found = measure(name, path, options)
            if found:
                rounds[name].append(found)
    own = rounds.pop("weir")
    if not own:
        return
    load = os.getloadavg()[0]
    print(f"{path.name}  weir {statistics.median(run['cpu'] for run in own):.2f} CPU-s, p99 "
          f"{statistics.median(run['p99'] for run in own):.2f} s, {max(run['memory'] for run in own) >> 20} MiB, load {load:.1f}")
    for name, runs in rounds.items():
        ratios = sorted(run["cpu"] / mine["cpu"] for run, mine in zip(runs, own))
        waits = sorted(run["p99"] / mine["p99"] for run, mine in zip(runs, own))
        if ratios:
            print(f"  {name:<11} CPU x {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
                  f"p99 x {statistics.median(waits):.2f} ({waits[0]:.2f} to {waits[-1]:.2f}), "
                  f"{max(run['memory'] for run in runs) >> 20} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.clips, options.requests, options.frames, options.size)
        return
    names = ["weir"] + [name for name in options.peers.split(",") if name and importlib.util.find_spec(PEERS[name][0])]
    with tempfile.TemporaryDirectory() as folder:
        if not options.clips:
            make_clips(folder)
        for path in sorted(pathlib.Path(options.clips or folder).iterdir()):
            compare(path, names, options)


if __name__ == "__main__":
    main()
