"""The CPU time of a Python program beside that of the C program for the same work.

    beside_c.py FOLDER --weir PATH [--epochs 5] [--rounds 5]

All videos of the folder, several times: 16 frames of each, evenly spread, shortest side 224, one file per CPU at a time. Python:
weir.Pipeline with weir.decode(), whose results the loop takes. C: `weir record`, which also writes its statistics to a database. They
run in turns, each in a process of its own. What starts the interpreter and imports does not count. The ratio is Python's CPU time
divided by C's, with the lowest and the highest of the rounds.
"""

import argparse
import glob
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

FRAMES, SIZE = 16, 224


def cpu_of(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def run_python(folder, epochs):
    import weir
    import weir._media  # FFmpeg is loaded before the clock starts

    paths = sorted(glob.glob(os.path.join(folder, "*"))) * epochs
    before = cpu_of(resource.RUSAGE_SELF)
    slots = len(os.sched_getaffinity(0))
    pipeline = weir.Pipeline().add_source(paths).pipe(weir.decode(FRAMES, size=SIZE), concurrency=slots).add_sink(3)
    with pipeline.build(threads=slots) as run:
        count = sum(1 for _ in run)
        failed = len(run.failures)
    print(json.dumps({"cpu": cpu_of(resource.RUSAGE_SELF) - before, "items": count, "failed": failed}))


def measure_python(options):
    done = subprocess.run([sys.executable, __file__, options.folder, "--one", "--epochs", str(options.epochs)], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def measure_c(options):
    with tempfile.TemporaryDirectory() as folder:
        before = cpu_of(resource.RUSAGE_CHILDREN)
        subprocess.run([options.weir, "record", options.folder, "--count", str(FRAMES), "--shortest", str(SIZE), "--epochs",
                        str(options.epochs), "--db-path", str(pathlib.Path(folder, "run.db")), "--quiet"], check=True)
        return cpu_of(resource.RUSAGE_CHILDREN) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--weir", default="weir")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_python(options.folder, options.epochs)
        return
    ratios = []
    for _ in range(options.rounds):
        c, python = measure_c(options), measure_python(options)
        ratios.append(python["cpu"] / c)
        print(f"C {c:.2f} CPU-s, Python {python['cpu']:.2f} CPU-s for {python['items']} items, {python['failed']} failed; "
              f"ratio {ratios[-1]:.3f}; load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"Python / C: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
