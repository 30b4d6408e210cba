"""What a batch costs the thread of the loop, and how long it holds the GIL.

    batch_cost.py FOLDER [--frames 1,16,64] [--batches 300] [--size 112]

Decoding, waiting and freeing happen without the GIL, and mostly on other threads. Of each number of frames, in microseconds:

* The CPU time of `next()`: the median, the 95th percentile and the most. System calls that wake other threads are in it, and need
  no GIL.
* How long a second Python thread, which only looks at the clock, stands still while the loop takes a batch: the sum over all times
  in which the loop has the GIL. The same of a loop that takes nothing is shown beside it: that is what handing over the GIL costs.
"""

import argparse
import os
import sys
import threading
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


class Watcher(threading.Thread):
    """Sums the times in which it did not get the GIL. A look at the clock takes less than a microsecond."""

    def __init__(self):
        super().__init__(daemon=True)
        self.still_ns = 0
        self.is_done = False

    def run(self):
        last = time.perf_counter_ns()
        while not self.is_done:
            now = time.perf_counter_ns()
            if now - last > 2000:
                self.still_ns += now - last
            last = now


def still_times(take, count):
    """How long the watcher stood still in each of `count` turns, in microseconds."""
    watcher, times = Watcher(), []
    watcher.start()
    for _ in range(count):
        time.sleep(0.005)  # without the GIL: the watcher runs, and the pipeline fills its queues
        before = watcher.still_ns
        take()
        time.sleep(0)  # gives the GIL back, so that the watcher counts
        time.sleep(0.001)
        times.append((watcher.still_ns - before) / 1e3)
    watcher.is_done = True
    watcher.join()
    return sorted(times)


def measure_holds(folder, frames, num_batches, size):
    with weir.Loader(folder, frames=frames, size=size, batch_size=4, progress=False) as loader:
        batches = batches_of(loader)
        next(batches)
        kept = []

        def take():
            kept[:] = [next(batches)]

        nothing, batch = still_times(lambda: None, num_batches), still_times(take, num_batches)
        kept.clear()
        del batches
    return nothing, batch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--frames", default="1,16,64")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--size", type=int, default=112)
    options = parser.parse_args()
    sys.setswitchinterval(1e-5)
    for frames in map(int, options.frames.split(",")):
        times = measure(options.folder, frames, options.batches, options.size)
        print(f"{frames:3} frames: median {times[len(times) // 2]:.0f} µs, p95 {times[int(0.95 * len(times))]:.0f} µs, "
              f"most {times[-1]:.0f} µs of CPU time per batch, load {os.getloadavg()[0]:.1f}")
        nothing, batch = measure_holds(options.folder, frames, options.batches, options.size)
        middle = len(batch) // 2
        print(f"            another Python thread stands still for {batch[middle]:.0f} µs per batch (median), and for "
              f"{nothing[middle]:.0f} µs if nothing is taken")


if __name__ == "__main__":
    main()
