#!/usr/bin/env python3
"""Reads what weir exported of real runs with the programs and libraries that it is for, and compares it with what the runs'
consumers saw.

    check.py FOLDER      filled by tests/readers/run

Each reader is a function; what is not installed is skipped by name. Exit status 1: a reader refuses a file, or finds
something else in it than the runs had.
"""
import csv
import io
import json
import math
import pathlib
import shutil
import sqlite3
import subprocess
import sys

FOLDER = pathlib.Path(sys.argv[1])
RUNS = [json.loads(line) for line in (FOLDER / "seen.jsonl").read_text().splitlines()]
ODD = "odd/it's \"odd\", a\\b; 100 %\n{x}=<y>&\t损失 e\u0301"
FRAMES = "weir/frames"
TABLES = FOLDER / "csv"
SINK = "0:2:sink_queue"


def same(what, found, wanted):
    if isinstance(wanted, float):
        is_same = math.isclose(found, wanted, rel_tol=1e-9)
    else:
        is_same = found == wanted
    assert is_same, f"{what}: {found!r}, not {wanted!r}"


# -- Prometheus

def promtool():
    """Names, types and labels follow its rules: exported and live, of the runs and of weir record."""
    if not shutil.which("promtool"):
        raise ImportError("promtool (Debian: prometheus)")
    for path in sorted(FOLDER.glob("*.prom")):
        done = subprocess.run(["promtool", "check", "metrics"], stdin=open(path, "rb"), capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout + done.stderr, f"{path.name}: {done.stdout}{done.stderr}"
    times = {}
    for line in (FOLDER / "laps.om").read_text("utf-8").splitlines():
        if not line.startswith("#"):  # promtool keeps the first of two samples at one time without a word
            series, _, time = line.rsplit(" ", 2)
            assert series not in times or times[series] < float(time), f"laps.om: two samples at {time}: {series}"
            times[series] = float(time)
    data = FOLDER / "tsdb"
    done = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", FOLDER / "laps.om", data],
                          capture_output=True, text=True)
    assert done.returncode == 0, f"laps.om: {done.stderr}"
    (data / "wal").mkdir(exist_ok=True)  # as a server would have made it
    done = subprocess.run(["promtool", "tsdb", "dump", data], capture_output=True, text=True)
    assert done.returncode == 0 and "weir_amount_total" in done.stdout, f"tsdb dump: {done.stderr}"


def check_samples(path, families, wanted):
    samples = {}
    for family in families:
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in samples, f"{path.name}: {key} comes twice"
            samples[key] = sample.value
    for run in wanted:
        def value(name, **labels):
            found = [v for (n, l), v in samples.items()
                     if n == name and int(dict(l)["rank"]) == run["rank"] and labels.items() <= dict(l).items()]
            assert len(found) == 1, f"{path.name}: {name} {labels}: {len(found)} samples"
            return found[0]
        same("tasks", value("weir_stage_tasks_total", stage="0:1:decode[2]"), float(run["delivered"] + run["failed"]))
        same("failures", value("weir_stage_failures_total", stage="0:1:decode[2]"), float(run["failed"]))
        same("frames", value("weir_amount_total", counter=FRAMES), float(run["frames"]))
        same("bytes/ms", value("weir_amount_total", counter="io/bytes/ms"), run["bytes_ms"])
        same("bytes.ms", value("weir_amount_total", counter="io/bytes.ms"), run["dotted"])
        same("odd", value("weir_amount_total", counter=ODD), run["odd"])
        same("loss", value("weir_level_last_value", counter="train/loss/train"), run["loss"])
        same("bytes", value("weir_level_last_value", counter="memory/cache (bytes)"), run["bytes"])
        same("events", value("weir_events_total", category="user"), 3.0)
        same("latency", value("weir_queue_latency_seconds_count", queue=SINK), float(run["delivered"]))


def prometheus_client():
    """Its parsers of both formats find every value once."""
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as strict
    for path, wanted in [(FOLDER / "run.prom", RUNS)] + [(FOLDER / f"live-{r['rank']}.prom", [r]) for r in RUNS]:
        text = path.read_text("utf-8")
        for name, parse in ("Prometheus", parser.text_string_to_metric_families), (
                "OpenMetrics", strict.text_string_to_metric_families):
            try:
                families = list(parse(text))
            except ValueError as refusal:
                raise AssertionError(f"{path.name} as {name}: {refusal}") from refusal
            check_samples(path, families, wanted)
    # laps.om is not for it: of a histogram at several times it keeps the first time only (0.26)


# -- TensorBoard

def tensorboard():
    """Its own event reader finds all laps, in order, exported and live."""
    from tensorboard.backend.event_processing import event_accumulator as reading
    for run in RUNS:
        for folder in FOLDER / "logs" / ("run-1", "run-2-rank-1")[run["rank"]], FOLDER / f"live-{run['rank']}":
            found = reading.EventAccumulator(str(folder), size_guidance={reading.SCALARS: 0, reading.HISTOGRAMS: 0})
            found.Reload()
            tags = found.Tags()
            for tag in f"{FRAMES}/increase_per_s", "train/loss/train/ave_value", f"{SINK}/items_per_s", "consumer/step":
                assert tag in tags["scalars"], f"{folder.name}: no {tag}"
            for tag in f"{FRAMES}/ave_value", "train/loss/train/increase_per_s":
                assert tag not in tags["scalars"], f"{folder.name}: {tag}"
            assert "0:1:decode[2]/time_histogram" in tags["histograms"], tags["histograms"]
            same("tasks", sum(e.value for e in found.Scalars("0:1:decode[2]/num_tasks")),
                 float(run["delivered"] + run["failed"]))
            assert math.isclose(sum(e.value for e in found.Scalars(f"{FRAMES}/increase")), run["frames"], rel_tol=1e-6)
            same("last step", found.Scalars("consumer/step")[-1].value, float(run["steps"] - 1))
            for tag in tags["scalars"]:
                events = found.Scalars(tag)
                assert all(a.step < b.step and a.wall_time <= b.wall_time for a, b in zip(events, events[1:])), tag
                assert all(math.isfinite(e.value) for e in events), f"{tag}: not a number"
                assert all(run["started"] <= e.wall_time <= run["ended"] for e in events), f"{tag}: its time"


# -- tables

def check_rows(what, rows_of):
    """rows_of(table): a list of rows with the cells' texts, by name."""
    for number, run in enumerate(RUNS, 1):
        def of_run(table):
            return [row for row in rows_of(table) if int(row["run_id"]) == number]
        counters = of_run("counters")
        same(f"{what}: frames", sum(float(r["increase"]) for r in counters if r["name"] == FRAMES), float(run["frames"]))
        same(f"{what}: odd", sum(float(r["increase"]) for r in counters if r["name"] == ODD), run["odd"])
        assert {r["kind"] for r in counters if r["name"] == ODD} == {"total"}
        assert {r["kind"] for r in counters if r["name"].startswith("train/loss/")} == {"level"}
        same(f"{what}: items", sum(int(float(r["num_items"])) for r in of_run("queues") if r["name"] == SINK),
             run["delivered"])
        same(f"{what}: failures", len(of_run("failures")), run["failed"])
        same(f"{what}: recorded items", len(of_run("items")), run["delivered"])
        events = [r for r in of_run("events") if r["category"] == "user"]
        same(f"{what}: details", [r["detail"] for r in events], ["an epoch, \"ended\""] * 3)
        assert {r["phase"] for r in of_run("phases")} >= {"warm \"up\"", "训练, 2"}, of_run("phases")
        same(f"{what}: node", [r["node_id"] for r in of_run("runs")], ["node\\"])
    labels = {r["label"].rsplit("/", 1)[-1] for r in rows_of("items")} | {
        r["label"].rsplit("/", 1)[-1] for r in rows_of("failures")}
    same(f"{what}: names of clips", labels, set(json.loads((FOLDER / "clips.json").read_text())))


def csv_module():
    """Python's csv module, strict (RFC 4180)."""
    def rows_of(table):
        data = (TABLES / f"{table}.csv").read_bytes()
        assert data.endswith(b"\r\n")
        return list(csv.DictReader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""), strict=True))
    for path in sorted(TABLES.glob("*.csv")):
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8", "surrogateescape"), newline=""), strict=True))
        assert len({len(row) for row in rows}) == 1, f"{path.name}: rows of different lengths"
        assert len(set(rows[0])) == len(rows[0]), f"{path.name}: two columns with one name"
    check_rows("csv", rows_of)


def pandas():
    """CSV and the database, with the types that pandas finds."""
    import pandas as pd
    assert {p.stem for p in TABLES.glob("*.csv")} >= {"runs", "tasks", "queues", "counters", "spans", "events", "failures"}
    for path in sorted(TABLES.glob("*.csv")):
        table = pd.read_csv(path, encoding="utf-8", encoding_errors="surrogateescape")
        for column in table.columns:
            if column.startswith(("num_", "ave_")) or column.endswith(("_time", "_bytes", "_rate")) and len(table):
                assert table[column].dtype.kind in "fiu" or table[column].isna().all(), f"{path.name}: {column} is text"
    counters = pd.read_csv(TABLES / "counters.csv")
    same("frames", float(counters[counters["name"] == FRAMES]["increase"].sum()), float(sum(r["frames"] for r in RUNS)))
    with sqlite3.connect(f"file:{FOLDER / 'run.db'}?mode=ro", uri=True) as database:
        runs = pd.read_sql("SELECT * FROM queue_runs WHERE name = ?", database, params=[SINK])
        same("items", list(runs["num_items"]), [r["delivered"] for r in RUNS])


def strict_json():
    """No NaN, no key twice, UTF-8."""
    def no_doubles(pairs):
        assert len({k for k, _ in pairs}) == len(pairs), "a key comes twice"
        return dict(pairs)
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")
    for path in [FOLDER / "run.json", *sorted(FOLDER.glob("trace-*.json"))]:
        data = json.loads(path.read_bytes().decode("utf-8"), parse_constant=refuse, object_pairs_hook=no_doubles)
        if path.name == "run.json":
            check_rows("json", lambda table: [{k: "" if v is None else str(v) for k, v in r.items()} for r in data[table]])
        else:
            run = next(r for r in RUNS if path.name == f"trace-{r['rank']}.json")
            values = [e["args"]["value"] for e in data if e.get("ph") == "C" and e["name"] == FRAMES]
            assert values == sorted(values), f"{path.name}: a total falls"
            same("frames in the trace", float(values[-1]), float(run["frames"]))


def trace_format():
    """What viewers of traces need: spans nested, pairs complete (the check of scripts/view-trace)."""
    path = pathlib.Path(__file__).parents[2] / "scripts" / "view-trace"
    viewer = {"__name__": "view_trace"}
    exec(compile(path.read_text(), str(path), "exec"), viewer)
    for trace in sorted(FOLDER.glob("trace-*.json")):
        same(trace.name, list(viewer["check"](trace)), [])


def sqlite_module():
    """Python's own SQLite: all views can be read, and nothing is damaged."""
    with sqlite3.connect(f"file:{FOLDER / 'run.db'}?mode=ro", uri=True) as database:
        same("integrity", database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        names = [n for n, in database.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')")]
        for name in names:
            database.execute(f'SELECT * FROM "{name}"').fetchall()
        same("failures", database.execute("SELECT num_failures FROM stage_runs ORDER BY rank").fetchall(),
             [(r["failed"],) for r in RUNS])


def duckdb():
    """CSV, strict, with the types that DuckDB finds."""
    import duckdb as duck
    con = duck.connect()
    for path in sorted(TABLES.glob("*.csv")):
        con.execute("SELECT * FROM read_csv(?, strict_mode = true)", [str(path)]).fetchall()
    total = con.execute("SELECT sum(increase) FROM read_csv(?) WHERE name = ?", [str(TABLES / "counters.csv"), FRAMES])
    same("frames", float(total.fetchone()[0]), float(sum(r["frames"] for r in RUNS)))


def duckdb_sqlite():
    """The database and its views through DuckDB's own SQLite reader."""
    import duckdb as duck
    con = duck.connect()
    try:
        con.execute("INSTALL sqlite; LOAD sqlite")
    except duck.Error as failure:
        raise ImportError(f"DuckDB's extension sqlite, {str(failure).splitlines()[0]},") from failure
    con.execute(f"ATTACH '{FOLDER / 'run.db'}' AS run (TYPE sqlite, READ_ONLY)")
    for name, in con.execute("SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() "
                             "WHERE NOT internal").fetchall():
        con.execute(f'SELECT * FROM run."{name}"').fetchall()
    same("items", con.execute("SELECT num_items FROM run.queue_runs WHERE name = ? ORDER BY rank", [SINK]).fetchall(),
         [(r["delivered"],) for r in RUNS])


# -- frames

def numpy():
    """weir frames: the array has the frames of the clip."""
    import numpy as np
    frames = np.load(FOLDER / "frames.npy", allow_pickle=False)
    same("shape", frames.shape, (4, 48, 64, 3))
    same("type", frames.dtype.str, "|u1")
    raw = (FOLDER / "frames.raw").read_bytes()
    assert frames.tobytes() == raw, "the array is not what ffmpeg decodes"


def pillow():
    """weir frames: the pictures are whole, and the frames are those of the array."""
    import numpy as np
    from PIL import Image
    frames = np.load(FOLDER / "frames.npy", allow_pickle=False)
    for number in range(4):
        with Image.open(FOLDER / f"frame-{number}.png") as picture:
            same("mode", picture.mode, "RGB")
            assert (np.asarray(picture) == frames[number]).all(), f"frame-{number}.png"


def xml_parser():
    """weir plot: the picture is well-formed XML, of SVG's namespace, with sizes and titles."""
    import xml.etree.ElementTree as tree
    root = tree.parse(FOLDER / "plot.svg").getroot()
    same("root", root.tag, "{http://www.w3.org/2000/svg}svg")
    same("x and y", root.get("viewBox").split()[:2], ["0", "0"])
    assert any(title.text.startswith("0:") for title in root.iter("{http://www.w3.org/2000/svg}title")), "no curve has a title"


READERS = [promtool, prometheus_client, tensorboard, csv_module, strict_json, trace_format, sqlite_module, pandas, duckdb, duckdb_sqlite, numpy,
           pillow, xml_parser]


def main():
    failed = []
    for reader in READERS:
        try:
            reader()
        except ImportError as missing:
            print(f"readers: skipped: {missing.name or missing} is missing ({reader.__name__})")
        except Exception as fault:  # the others still have a say
            failed.append(reader.__name__)
            print(f"readers: FAILED: {reader.__name__}: {type(fault).__name__}: {fault}")
        else:
            print(f"readers: ok: {reader.__name__}: {reader.__doc__}")
    return 1 if failed else 0


sys.exit(main())
