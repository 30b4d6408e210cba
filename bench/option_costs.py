"""Measures what the options of decoding save and lose, on a folder of videos.

    option_costs.py DIR [--weir build/release/tools/weir] [--runs 5] [--concurrency 2] [--clips 8]

Each row is one change to the same job: all frames, 128x128 rgb24, stretched, scaler "exact". CPU time is that of whole
processes (weir record), in runs that take turns; "cpu" is divided by that of the unchanged job in the same round: median
(least..most). PSNR is what FFmpeg's psnr filter says of the pictures of up to --clips clips (weir frames), relative
to FFmpeg's most accurate bicubic scaling. For options of the decoder it is relative to the same scaler without the
option. "-": other frames, or none.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile

SIDE = 128
BASE = ["--width", str(SIDE), "--height", str(SIDE), "--resize", "stretch"]
EXACT = ["--scaler", "exact"]
REFERENCE = f"scale={SIDE}:{SIDE}:flags=bicubic+accurate_rnd+full_chroma_inp+full_chroma_int+bitexact,format=rgb24"

# group, options instead of those of the unchanged job, whether the pictures can be compared
ROWS = [
    ("unchanged", EXACT, True),
    ("scaler", ["--scaler", "default"], True),
    ("scaler", ["--scaler", "fast"], True),
    ("pixels", [*EXACT, "--pixel", "gray8"], False),
    ("pixels", [*EXACT, "--pixel", "yuv420p"], False),
    ("decoder", ["--scaler", "default", "--loop-filter", "references"], True),
    ("decoder", ["--scaler", "default", "--loop-filter", "keyframes"], True),
    ("decoder", ["--scaler", "default", "--loop-filter", "none"], True),
    ("decoder", ["--scaler", "default", "--fast-decode"], True),
    ("decoder", ["--scaler", "default", "--lowres", "1"], True),
    ("frames", [*EXACT, "--every", "4"], False),
    ("frames", [*EXACT, "--keyframes"], False),
    ("frames", [*EXACT, "--count", "16"], False),
    ("process", [*EXACT, "--isolate"], False),
]


def measure_cpu(weir, folder, options, concurrency):
    """Returns the CPU seconds of one run, with its child processes."""
    with tempfile.TemporaryDirectory() as work:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [weir, "record", folder, *BASE, *options, "--quiet", "--concurrency", str(concurrency), "--db-path",
                 os.path.join(work, "run.db")]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {ended.stderr.strip()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_pictures(weir, clip, options, path):
    """Writes the pictures of weir, raw. Returns whether there are any."""
    words = [weir, "frames", clip, *BASE, *options, "-o", path]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def write_reference(clip, path):
    """Writes the pictures of FFmpeg's own scaler."""
    words = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-i", clip, "-map", "0:v:0", "-vf", REFERENCE,
             "-fps_mode", "passthrough", "-f", "rawvideo", path]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def compare_pictures(one, other):
    """Returns the PSNR in dB that FFmpeg's filter says of two raw files; None if they are of different length."""
    if os.path.getsize(one) != os.path.getsize(other):
        return None
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}"]
    words = ["ffmpeg", "-nostdin", *raw, "-i", one, *raw, "-i", other, "-lavfi", "psnr", "-f", "null", "-"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    found = re.search(r"average:(\S+)", said)
    return float(found.group(1)) if found else None


def measure_psnr(weir, clips, group, options):
    """Returns the median PSNR over the clips that can be compared; None if there are none."""
    values = []
    with tempfile.TemporaryDirectory() as work:
        mine, reference = os.path.join(work, "mine.rgb"), os.path.join(work, "reference.rgb")
        for clip in clips:
            if group == "decoder":
                made = write_pictures(weir, clip, ["--scaler", "default"], reference)
            else:
                made = write_reference(clip, reference)
            if made and write_pictures(weir, clip, options, mine):
                value = compare_pictures(mine, reference)
                if value is not None:
                    values.append(value)
    return statistics.median(values) if values else None


def find_clips(folder, most):
    """Returns up to so many files of the folder, spread over it."""
    paths = sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                   if name.lower().endswith((".mp4", ".mkv", ".mov", ".webm", ".avi")))
    return paths[:: max(1, len(paths) // most)][:most]


def main():
    """Reads the command line and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--weir", default="build/release/tools/weir")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--clips", type=int, default=8)
    args = parser.parse_args()
    rounds = [[measure_cpu(args.weir, args.folder, options, args.concurrency) for _, options, _ in ROWS]
              for _ in range(args.runs)]
    clips = find_clips(args.folder, args.clips)
    print(f"{'':10} {'options':42} {'CPU s':>7}  {'cpu':22} {'PSNR dB':>8}")
    for index, (group, options, comparable) in enumerate(ROWS):
        ratios = [times[index] / times[0] for times in rounds]
        psnr = measure_psnr(args.weir, clips, group, options) if comparable else None
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})"
        print(f"{group:10} {' '.join(options):42} {statistics.median(times[index] for times in rounds):7.2f}  "
              f"{spread:22} {'-' if psnr is None else format(psnr, '.1f'):>8}")


if __name__ == "__main__":
    main()
