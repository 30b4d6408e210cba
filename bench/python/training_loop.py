"""A training loop: batches of random clips of a folder, by weir.Loader and by other packages in PyTorch's DataLoader with workers.

    training_loop.py FOLDER [--batches 40] [--workers 2] [--rounds 3] [--peers torchcodec,pyav,decord]

Each clip has 16 frames at stride 4 from a random start; the shortest side becomes 224, and the middle 224×224 is kept. A batch has
eight clips. Each run is a process of its own, in turns. For each it prints clips per CPU second (workers' included,
imports not) and the seconds until the first batch. It also prints the memory (PSS of all its processes, at most), and
the lines of code that the job takes. Ratios are to weir's run of the same round, with the lowest and the highest of
the rounds. The loop does nothing with a batch.
"""

import argparse
import glob
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import threading
import time

FRAMES, STRIDE, SIZE, BATCH = 16, 4, 224, 8


def scaled(width, height):
    return (round(width * SIZE / height), SIZE) if height <= width else (SIZE, round(height * SIZE / width))


def places(num_frames):
    start = random.randrange(max(1, num_frames - STRIDE * (FRAMES - 1)))
    return [min(start + STRIDE * i, num_frames - 1) for i in range(FRAMES)]


def middle(frames):
    """Of (frames, height, width, 3)."""
    top, left = (frames.shape[1] - SIZE) // 2, (frames.shape[2] - SIZE) // 2
    return frames[:, top:top + SIZE, left:left + SIZE]


# ---- one clip ----


def torchcodec(path):
    import torch
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(path, num_ffmpeg_threads=1)
    frames = decoder.get_frames_at(places(len(decoder))).data
    width, height = scaled(frames.shape[3], frames.shape[2])
    frames = torch.nn.functional.interpolate(frames, (height, width), mode="bilinear", antialias=True)
    return middle(frames.permute(0, 2, 3, 1)).contiguous()


def pyav(path):
    import av
    import numpy
    import torch

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        wanted = places(stream.frames)
        rate, base = stream.average_rate, stream.time_base
        first = (stream.start_time or 0) + int(wanted[0] / rate / base)
        container.seek(first, stream=stream)
        width, height = scaled(stream.width, stream.height)
        arrays, number = [], None
        for frame in container.decode(stream):
            number = round((frame.pts - (stream.start_time or 0)) * base * rate)
            if number in wanted:
                arrays.append(frame.reformat(width, height, "rgb24", threads=1).to_ndarray())
            if number >= wanted[-1]:
                break
        arrays += [arrays[-1]] * (FRAMES - len(arrays))
    return torch.from_numpy(numpy.ascontiguousarray(middle(numpy.stack(arrays))))


def decord(path):
    import decord
    import numpy
    import torch

    height, width = decord.VideoReader(path, num_threads=1)[0].shape[:2]
    width, height = scaled(width, height)
    reader = decord.VideoReader(path, width=width, height=height, num_threads=1)
    frames = reader.get_batch(places(len(reader))).asnumpy()
    return torch.from_numpy(numpy.ascontiguousarray(middle(frames)))


PEERS = {"torchcodec": ("torchcodec", torchcodec), "pyav": ("av", pyav), "decord": ("decord", decord)}
WITH = {"torchcodec": ["torchcodec.decoders"], "pyav": ["av"], "decord": ["decord"]}


# ---- loops ----


def weir_batches(folder, workers):
    import weir

    loader = weir.Loader(folder, frames=FRAMES, stride=STRIDE, size=SIZE, batch_size=BATCH, drop_last=True, concurrency=workers,
                         threads=workers, progress=False)
    while True:
        for batch in loader:
            yield batch.frames


def peer_batches(decode, folder, workers):
    import torch

    class Clips(torch.utils.data.Dataset):
        paths = sorted(glob.glob(os.path.join(folder, "**", "*.mp4"), recursive=True))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, at):
            torch.set_num_threads(1)
            return decode(self.paths[at])

    loader = torch.utils.data.DataLoader(Clips(), BATCH, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=True)
    while True:
        yield from loader


def lines_of(who):
    functions = [weir_batches] if who == "weir" else [PEERS[who][1], peer_batches, scaled, places, middle]
    return sum(len([line for line in inspect.getsource(function).splitlines() if line.strip()]) for function in functions)


# ---- one run, in a process of its own ----


def run_one(who, folder, num_batches, workers):
    for module in ("weir",) if who == "weir" else ("torch", "numpy", *WITH[who]):
        importlib.import_module(module)  # workers are forked: they have it, too
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    batches = weir_batches(folder, workers) if who == "weir" else peer_batches(PEERS[who][1], folder, workers)
    shape = next(batches).shape
    first = time.perf_counter() - start
    if tuple(shape) != (BATCH, FRAMES, SIZE, SIZE, 3):
        raise ValueError(f"{who}: {shape}")
    for _ in itertools.islice(batches, num_batches - 1):
        pass
    elapsed = time.perf_counter() - start
    batches.close()
    del batches
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used) - before.ru_utime - before.ru_stime
    print(json.dumps({"cpu": cpu, "first": first, "elapsed": elapsed}))


def pss_of(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            own = sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return own + sum(pss_of(child) for child in file.read().split())
    except (OSError, ValueError):
        return 0


def measure(who, options):
    command = [sys.executable, __file__, options.folder, "--one", who, "--batches", str(options.batches), "--workers",
               str(options.workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most, ends = [0], threading.Event()

    def watch():
        while not ends.wait(0.2):
            most[0] = max(most[0], pss_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    lines = process.communicate()[0].strip().splitlines()
    ends.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{who} failed")
    return {**json.loads(lines[-1]), "memory": most[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.folder, options.batches, options.workers)
        return
    names = ["weir"] + [name for name in options.peers.split(",") if name and importlib.util.find_spec(PEERS[name][0])]
    rounds = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            rounds[name].append(measure(name, options))
    clips = options.batches * BATCH
    for name, runs in rounds.items():
        ratios = sorted(run["cpu"] / own["cpu"] for run, own in zip(runs, rounds["weir"]))
        print(f"{name:<11} {statistics.median(clips / run['cpu'] for run in runs):6.2f} clips/CPU-s, "
              f"CPU x {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
              f"first batch {statistics.median(run['first'] for run in runs):.2f} s, "
              f"{max(run['memory'] for run in runs) >> 20} MiB, {lines_of(name)} lines, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
