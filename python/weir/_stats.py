"""Recordings: rows as tables, summaries and verdicts. The tables and their columns are those of docs/sql.md."""

import os

from weir import _core

_RUNS = {"all": 0, "last": -1, "previous": -2}


def _filter(run, start=None, end=None, steps=None, rank=None, **texts):
    """A dict with the fields of weir_filter."""
    number = _RUNS.get(run, run) if isinstance(run, (str, int)) else run
    if isinstance(number, bool) or not isinstance(number, int) or (number < 1 and run not in _RUNS):
        raise ValueError(f"run is its number, 'last', 'previous' or 'all', not {run!r}")
    fields = {"run_id": number}
    fields.update((name, text) for name, text in texts.items() if text is not None)
    if start is not None:
        fields["start_unix_ns"] = round(start * 1e9)
    if end is not None:
        fields["end_unix_ns"] = round(end * 1e9)
    if rank is not None:
        fields.update(by_rank=True, rank=rank)
    if steps is not None:
        first, last = steps
        fields.update(by_step=True, first_step=first, last_step=last)
    return fields


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Stats:
    """Rows of a recording, read when they are asked for: see weir.read_stats().

    pandas (DataFrame.from_arrow, or pyarrow.table(stats).to_pandas()), polars.DataFrame(stats) and duckdb take it by Arrow's C stream
    interface, without a copy of each value in Python. Each reading sees what is written then, so a run may still go on.
    """

    def __init__(self, path, sql, filter):
        self._path = os.fspath(path)
        self._filter = filter
        self._sql = sql
        self._columns = self._open().columns()
        self._leave_out_bytes()

    def _open(self):
        return _core.Table(self._path, self._sql, self._filter)

    def _leave_out_bytes(self):
        """Histograms have no form in a table."""
        kept = [name for name, kind in self._columns if kind != "bytes"]
        if len(kept) == len(self._columns):
            return
        names = ", ".join(map(_quoted, kept))
        self._sql = f"SELECT {names} FROM ({self._sql.rstrip().rstrip(';')}\n)" if not self._sql.lstrip().startswith(",") else self._sql
        self._columns = self._open().columns()

    @property
    def columns(self):
        """The names of the columns."""
        return [name for name, _ in self._columns]

    @property
    def types(self):
        """A dict: the type of each column, "int64", "float64" or "text". Each may be None in a row."""
        return dict(self._columns)

    def __iter__(self):
        """Each row as a dict, in constant memory."""
        table, names = self._open(), self.columns
        while (rows := table.next()) is not None:
            for row in rows:
                yield dict(zip(names, row))

    def rows(self):
        """All rows, as a list of dicts. None is a value that is not known."""
        return list(self)

    def __arrow_c_stream__(self, requested_schema=None):
        """A capsule "arrow_array_stream". requested_schema is not followed; the interface allows that."""
        return self._open().stream()

    def __repr__(self):
        return f"<weir.Stats {self._path}: {len(self._columns)} columns>"


def read_stats(path, table="tasks", *, sql=None, run="all", name=None, node=None, rank=None, start=None, end=None, steps=None,
               phase=None, mode=None):
    """A table of a recording, for pandas, polars, DuckDB and others by Arrow, or as dicts: `weir.read_stats("run.db").rows()`.

    table: "tasks" (laps of stages), "flow", "queues", "pools", "process", "machine", "spans", "counters", "events", "failures",
    "items", "runs", "stages", "stacks" or "samples"; or a table or view of the database, such as "stage_laps", "queue_runs" (docs/sql.md).
    sql: instead, a SELECT on these tables, with weir's functions:
    "SELECT name, weir_quantile(weir_merge_histogram(histogram), 0.99) AS p99 FROM tasks GROUP BY name".

    The others select rows of the first kind of tables. run: a number, "last", "previous" or "all". name, node, phase, mode: globs. start,
    end: Unix seconds. steps: (first, last). Times in columns are seconds, points in time Unix seconds; a value that is not known is
    null. Histograms are left out."""
    if sql is None:
        sql = f"SELECT * FROM {_quoted(table)}"
    return Stats(path, sql, _filter(run, start, end, steps, rank, name=name, node_id=node, phase=phase, mode=mode))


def runs(path):
    """The runs of a recording, as a list of dicts; `state` is "running", "killed", "finished", "stopped" or "failed"."""
    rows = read_stats(path, sql="SELECT * FROM runs ORDER BY run_id").rows()
    for row, state in zip(rows, _core.run_states(path, _filter("all"))):
        row.update(has_ended=bool(row["has_ended"]), state=state)
    return rows


def summary(path, *, run="last", **selection):
    """The summary of a recorded run, as `weir summary --full` prints it. selection: as of read_stats()."""
    return _core.summary(path, {**_selected(run, selection), "no_replay": "phase" not in selection})


def explain(path, *, run="last", verbose=False, **selection):
    """What limits a recorded run, why, and what would help: a text, as `weir explain` prints it. selection: as of read_stats()."""
    return (_core.explain_all if verbose else _core.explain)(path, _selected(run, selection))


def limit(path, *, run="last", **selection):
    """What limits a recorded run, as a dict: kind, name, sentence, confidence (0 to 1), certainty, evidence, advice and others. What
    is not known is None. gain is the predicted throughput divided by the present one."""
    return _core.limit(path, _selected(run, selection))


def _selected(run, selection):
    unknown = set(selection) - {"node", "rank", "start", "end", "steps", "phase", "mode"}
    if unknown:
        raise TypeError(f"unknown option: {sorted(unknown)[0]!r}")
    selection = dict(selection)
    return _filter(run, node_id=selection.pop("node", None), **selection)
