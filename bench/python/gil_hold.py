"""How long next() of a weir.Loader holds the GIL.

    gil_hold.py FOLDER [--frames 1,16,64] [--batches 300] [--size 112]

The calls by which the extensions give and take the GIL are counted and timed (gil_hold.c, compiled with cc). For each number of
frames: the median and the 95th percentile over all batches, in microseconds. The CPU time is what the thread computed with the GIL.
The wall time also has what it waited for a CPU meanwhile, because decoding takes them. The interpreter's own work for a loop of
this script is in both.
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import tempfile

import weir
import weir._media  # its calls are to be watched, too


class Held(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("wall_ns", "cpu_ns", "longest_ns", "releases")]


def load():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gil_hold.so")
        source = pathlib.Path(__file__).with_suffix(".c")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", path, str(source)], check=True)
        library = ctypes.PyDLL(path)
    resolver = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)

    @resolver
    def resolve(name):
        return ctypes.cast(getattr(ctypes.pythonapi, name.decode()), ctypes.c_void_p).value

    if not library.weir_gil_watch(resolve):
        raise SystemExit("gil_hold: the extensions call no function of the GIL")
    return library


def measure(library, folder, frames, num_batches, size):
    begin, end, found, held = library.weir_gil_begin, library.weir_gil_end, [], Held()
    at = ctypes.byref(held)
    with weir.Loader(folder, frames=frames, size=size, batch_size=4, progress=False) as loader:
        next(iter(loader))  # what happens once
        while len(found) < num_batches:
            batches = iter(loader)
            for _ in range(len(loader)):
                begin()
                batch = next(batches)  # the batch before is freed, too
                end(at)
                found.append((held.cpu_ns, held.wall_ns, held.longest_ns, held.releases))
        del batch, batches
    return found


def describe(values):
    values = sorted(values)
    return f"{values[len(values) // 2] / 1e3:.0f} (p95 {values[int(0.95 * len(values))] / 1e3:.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--frames", default="1,16,64")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--size", type=int, default=112)
    options = parser.parse_args()
    library = load()
    for frames in map(int, options.frames.split(",")):
        found = measure(library, options.folder, frames, options.batches, options.size)
        cpu, wall, longest, releases = zip(*found)
        print(f"{frames:3} frames: with the GIL {describe(cpu)} µs of CPU, {describe(wall)} µs of wall time, {describe(longest)} µs "
              f"without a break; given back {sum(releases) / len(found):.1f} times; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
