"""What a batch costs the thread of the loop: an upper bound for how long it holds the GIL.

    batch_cost.py FOLDER [--frames 1,16,64] [--batches 300] [--size 112]

Decoding, waiting and freeing happen without the GIL, and mostly on other threads. So the thread that iterates over a weir.Loader uses
CPU time for little else than what it does with the GIL. Of each number of frames: the median, the 95th percentile and the most of
the CPU time of `next()`, in microseconds. System calls that wake other threads are in it, and need no GIL.
"""

import argparse
import os
import time

import weir


def batches_of(loader):
    while True:
        yield from loader


def measure(folder, frames, num_batches, size):
    times = []
    with weir.Loader(folder, frames=frames, size=size, batch_size=4, progress=False) as loader:
        batches = batches_of(loader)
        batch = next(batches)
        for _ in range(num_batches):
            before = time.thread_time_ns()
            after = next(batches)
            times.append((time.thread_time_ns() - before) / 1e3)
            batch = after  # the batch before is freed here, without the GIL
        del batch, after, batches
    return sorted(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--frames", default="1,16,64")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--size", type=int, default=112)
    options = parser.parse_args()
    for frames in map(int, options.frames.split(",")):
        times = measure(options.folder, frames, options.batches, options.size)
        print(f"{frames:3} frames: median {times[len(times) // 2]:.0f} µs, p95 {times[int(0.95 * len(times))]:.0f} µs, "
              f"most {times[-1]:.0f} µs of CPU time per batch, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
