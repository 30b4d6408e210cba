"""Compares what weir says about settings with runs that have them, on a folder of videos.

    settings.py DIR [--weir build/release/tools/weir] [--slots 1,2,4,8] [--threads 1,2] [--epochs 4] [--rounds 3]

Each setting is run in turn, once in each round. Then, from the recording of the first setting in each round, `weir
whatif` predicts the others. The table shows the median of measured and predicted clips per second, and the error. It
also shows whether the measured gain lies in the predicted range. At last `weir record --tune` runs, and its last
quarter is compared with the best setting. Needs Python only; measure on a machine that does nothing else.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile


def run_weir(weir, *words):
    """Returns the standard output of a weir command."""
    ended = subprocess.run([weir, *words], capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"weir {' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout


def record_setting(args, folder, setting, number):
    """Returns the path of the database of one run."""
    path = os.path.join(folder, f"{setting[0]}-{setting[1]}-{number}.db")
    slots, threads = (str(part) for part in setting)
    run_weir(args.weir, "record", args.folder, "--quiet", "--db-path", path, "--concurrency", slots, "--threads",
             threads, "--epochs", str(args.epochs), "--log-interval", "0.3")
    return path


def predict_setting(args, path, setting):
    """Returns what weir whatif says of the recording with another setting."""
    slots, threads = (str(part) for part in setting)
    words = ["whatif", path, "--json", "--set", f"decode.concurrency={slots}", "--threads", threads]
    return json.loads(run_weir(args.weir, *words))


def compare_predictions(args, paths, settings):
    """Prints the table, and returns the median throughput of each setting."""
    measured = {setting: [predict_setting(args, path, setting)["measured"] for path in paths[setting]]
                for setting in settings}
    print("slots threads   measured  predicted  error   in the range")
    for setting in settings:
        predictions = [predict_setting(args, path, setting) for path in paths[settings[0]]]
        bases = measured[settings[0]]
        gains = [now / base for now, base in zip(measured[setting], bases)]
        said = [one["throughput"] / base for one, base in zip(predictions, bases)]
        inside = sum(one["low"] / base <= gain <= one["high"] / base
                     for one, base, gain in zip(predictions, bases, gains))
        error = statistics.median(said) / statistics.median(gains) - 1
        print(f"{setting[0]:5} {setting[1]:7} {statistics.median(measured[setting]):10.1f} "
              f"{statistics.median(one['throughput'] for one in predictions):10.1f} {error:+6.0%}   "
              f"{inside} of {len(predictions)}")
    return {setting: statistics.median(values) for setting, values in measured.items()}


def compare_tuner(args, folder, best):
    """Runs the tuner, and compares the last quarter of its laps with the best setting."""
    path = os.path.join(folder, "tuned.db")
    run_weir(args.weir, "record", args.folder, "--quiet", "--db-path", path, "--tune", "--epochs", str(8 * args.epochs),
             "--log-interval", "0.3")
    with sqlite3.connect(path) as database:
        laps = database.execute("SELECT num_tasks - num_failures, elapsed FROM task_stats WHERE name LIKE '%:decode%' "
                                "ORDER BY id").fetchall()
    last = laps[-max(1, len(laps) // 4):]
    speed = sum(items for items, _ in last) / sum(seconds for _, seconds in last)
    print(f"weir record --tune: {speed:.1f} clips/s in the last {len(last)} of {len(laps)} laps, "
          f"{speed / best:.0%} of the best setting")


def main():
    """Reads the command line and prints both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--weir", default="build/release/tools/weir")
    parser.add_argument("--slots", default="1,2,4,8")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    settings = [(int(slots), int(threads)) for slots in args.slots.split(",") for threads in args.threads.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        paths = {setting: [] for setting in settings}
        for number in range(args.rounds):
            for setting in settings:
                paths[setting].append(record_setting(args, folder, setting, number))
        measured = compare_predictions(args, paths, settings)
        compare_tuner(args, folder, max(measured.values()))


if __name__ == "__main__":
    main()
