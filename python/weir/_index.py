"""weir.Index: the clips of a dataset, what is known of each, and the files that cannot be used."""

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from weir import _media, _options

_LISTS = (".csv", ".tsv", ".json", ".jsonl", ".txt", ".lst")
_PART = ("start", "end", "start_frame", "end_frame")


class Broken(NamedTuple):
    """A file that cannot be used: its path, its label, and why. status: the name of the kind of failure, "EDATA"."""

    path: str
    label: str
    reason: str
    status: str


class Index(_options.NoCopy):
    """An index that is open: len(), classes, columns, broken files.

    path: a file that Index.build() or the program `weir index` has made. where: an SQL condition on the columns, yours
    included: "duration > 2 AND score > 0.5". classes: only these labels; class i is the i-th of them. root: the folder of the
    clips, if it was moved. paths: the addresses of clips that are URLs with secrets.

    The labels of a batch are numbers of `classes`. These are in the order of their bytes; if all are whole numbers, in the
    order of these.
    """

    def __init__(self, path, *, where=None, classes=None, root=None, ignore_mtime=False, paths=None):
        options = {"where": where, "classes": _as_classes(classes), "root": None if root is None else os.fsencode(root),
                   "ignore_mtime": ignore_mtime, "paths": paths}
        self._open(path, {name: value for name, value in options.items() if value is not None})
        self.progress = None

    @classmethod
    def build(cls, source, path=None, *, glob=None, tar=None, check="packets", labels=None, concurrency=None, progress=None,
              **options):
        """Reads the files of a dataset, and opens the index of them. With path, it is stored there: later builds read only
        what has changed. Without, it is in memory.

        source: a folder with videos; a list of paths or URLs; rows with columns; or a file of these (.csv, .tsv, .json, .jsonl,
        or a path per line). A row is a dict with "path", and, if you like, "label", "start" and "end" in seconds, or
        "start_frame" and "end_frame"; all else are columns of yours. A folder's labels are its subfolders.
        glob: a pattern of file names; by default those of videos. tar: the files are tar archives, and the clips their members.
        check: "packets" reads, "first" also decodes the first frame, "all" decodes all of each file, to find broken ones.
        progress: called with a dict of numbers several times in a second; True or False; by default a line on a terminal.
        The other options are those of Index().
        """
        if isinstance(source, (str, os.PathLike)):
            source, tar = _read_source(os.fspath(source), tar)
        fields = {"glob": glob, "check": check, "concurrency": concurrency, "tar": bool(tar)}
        if isinstance(source, str):
            if labels is not None:
                raise ValueError("the labels of a folder are the names of its subfolders: labels are for a list")
            fields["root"], rows = os.fsencode(source), {}
        else:
            rows = _read_rows(source, labels)
            if not rows["paths"]:
                raise ValueError("the list has no clips")
        with _Line(progress) as line:
            memory, result = _media.index_build(path, fields, progress=line.call, **rows)
        self = cls.__new__(cls)
        options.setdefault("paths", rows.get("paths"))
        if path is not None:
            self.__init__(path, **options)
        else:
            options["classes"] = _as_classes(options.get("classes"))
            self._open(memory, {name: value for name, value in options.items() if value is not None})
        self.progress = result
        return self

    def _open(self, origin, options):
        self._origin = origin
        self._options = options
        self._dataset = _media.Dataset(origin, options)
        self._facts = self._dataset.facts()
        names = self._facts["classes"]
        if "classes" not in options and len(names) > 1 and all(_is_whole(name) for name in names):
            self._order_classes(sorted(names, key=int))

    # Labels that are numbers: 10 comes after 9. Not if a clip has no label, because `classes` would leave it out.
    def _order_classes(self, names):
        if names != self._facts["classes"]:
            ordered = _media.Dataset(self._origin, {**self._options, "classes": names})
            facts = ordered.facts()
            if facts["count"] == self._facts["count"]:
                self._dataset, self._facts = ordered, facts

    # ---- facts

    def __len__(self):
        """The number of clips that can be used and match."""
        return self._facts["count"]

    @property
    def classes(self):
        """The labels: that of class i is at i."""
        return list(self._facts["classes"])

    @property
    def columns(self):
        """Your columns: a dict of their names and kinds ("integer", "real", "text")."""
        return dict(self._facts["columns"])

    @property
    def fingerprint(self):
        """A number that changes with the contents: clips, sizes, labels, windows, columns, conditions."""
        return self._facts["fingerprint"]

    @property
    def broken(self):
        """The files that cannot be used, in the order of their paths: a list of Broken."""
        found = (self._dataset.read_broken(number) for number in range(self._dataset.count_broken()))
        return [Broken(path, label, reason, status.removeprefix("WEIR_")) for path, label, reason, status in found]

    @property
    def path(self):
        """The file of the index; None = it is in memory."""
        return self._origin if isinstance(self._origin, (str, bytes, os.PathLike)) else None

    def rows(self, where=None):
        """All that the index knows of each file, also of broken ones and of other classes: a list of dicts. where: a further
        condition. The order is not that of batch.ids."""
        conditions = [f"({condition})" for condition in (self._options.get("where"), where) if condition]
        return self._dataset.ask("clips", " AND ".join(conditions) or None)

    def summary(self):
        """Totals of the whole index: a dict."""
        return self._dataset.ask("summary", self._options.get("where"))[0]

    def select(self, where=None, classes=None):
        """The same index with another condition, or other classes. Labels are numbered anew, by the classes that are left: give
        classes=index.classes to keep the numbers."""
        other = type(self).__new__(type(self))
        options = {name: value for name, value in self._options.items() if name not in ("where", "classes")}
        wanted = (("where", where), ("classes", _as_classes(classes)))
        options.update({name: value for name, value in wanted if value is not None})
        other._open(self._origin, options)
        other.progress = self.progress
        return other

    def __repr__(self):
        where = self._options.get("where")
        return f"<weir.Index of {len(self)} clips{f' where {where}' if where else ''}>"


def _as_classes(classes):
    """A list of names; None = all. An empty one would mean all, and one text its letters."""
    if classes is None:
        return None
    names = _options.as_list(classes, "classes")
    if not names:
        raise ValueError("classes is empty: give at least one, or None for all")
    return names


def _is_whole(text):
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


# ---- what a source is ----

def is_index(path):
    """Whether a file is an index, and not a list or a video."""
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def _read_source(path, tar):
    """The folder, or the list that the file has; and whether the files are archives."""
    if os.path.isdir(path):
        return path, tar
    if path.endswith(_LISTS):
        return _read_list(path), tar
    if not os.path.exists(path) and "://" not in path:
        import errno

        raise FileNotFoundError(errno.ENOENT, "there is no such file or folder", path)
    return [path], path.endswith(".tar") if tar is None else tar


def _read_list(path):
    """The rows of a file; relative paths are relative to its folder."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        if path.endswith(".jsonl"):
            import json

            rows = [json.loads(line) for line in file if line.strip()]
        elif path.endswith(".json"):
            import json

            rows = json.load(file)
        elif path.endswith((".csv", ".tsv")):
            rows = _read_table(file, "\t" if path.endswith(".tsv") else ",", path)
        else:
            rows = [line for line in file.read().splitlines() if line]
    folder = os.path.dirname(os.path.abspath(path))
    return [_beside(folder, row) for row in rows]


def _beside(folder, row):
    if isinstance(row, dict) and "path" in row:
        return {**row, "path": _beside(folder, row["path"])}
    return row if not isinstance(row, str) or "://" in row else os.path.join(folder, row)


def _read_table(file, separator, path):
    import csv

    table = csv.DictReader(file, delimiter=separator, strict=True)
    if "path" not in (table.fieldnames or ()):
        raise ValueError(f"{path}: its first line names no column \"path\"")
    rows = []
    for row in table:
        if None in row or None in row.values():
            raise ValueError(f"{path}: line {table.line_num} has another number of columns than the first line")
        rows.append(row)
    columns = [name for name in table.fieldnames if name not in ("path", "label", *_PART)]
    for name in columns:
        _parse_column(rows, name)
    for row in rows:
        for name in ("label", *_PART):
            if row.get(name) == "":
                row[name] = None
    return rows


def _parse_column(rows, name):
    """Numbers, if all values of the column are numbers without leading zeros; "" is no value."""
    values = [row[name] for row in rows if row[name] != ""]
    kinds = [kind for kind in (int, float) if all(_is_number(value, kind) for value in values)]
    for row in rows:
        row[name] = None if row[name] == "" else kinds[0](row[name]) if kinds else row[name]


def _is_number(text, kind):
    import re

    pattern = r"-?(0|[1-9][0-9]*)" if kind is int else r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
    return re.fullmatch(pattern, text) is not None and (kind is float or -(2**63) <= int(text) < 2**63)


# ---- rows ----

def _read_rows(source, labels):
    """The arguments of index_build() for a list: paths, labels, windows, columns."""
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        raise TypeError(f"a table is a list of rows, each a dict with \"path\", not a {type(source).__name__} of columns; "
                        "of a DataFrame of pandas give to_dict(\"records\"), of polars to_dicts()")
    if not hasattr(source, "__iter__"):
        raise TypeError(f"the clips are a folder, a file, or a list of paths or rows, not {source!r}")
    rows = [_as_row(row) for row in source]
    if labels is not None:
        labels = _options.as_list(labels, "labels")
        if len(labels) != len(rows):
            raise ValueError(f"there are {len(labels)} labels for {len(rows)} clips")
        for row, label in zip(rows, labels):
            row["label"] = label
    texts = [None if row.get("label") is None else str(row["label"]) for row in rows]
    arguments = {"paths": [row["path"] for row in rows], "windows": _read_windows(rows)}
    if any(text is not None for text in texts):
        arguments["labels"] = texts
    names = dict.fromkeys(name for row in rows for name in row if name not in ("path", "label", *_PART))
    arguments["columns"] = [(name, *_read_column(name, [row.get(name) for row in rows])) for name in names] or None
    return arguments


def _as_row(row):
    if isinstance(row, dict):
        if not isinstance(row.get("path"), (str, bytes, os.PathLike)):
            raise ValueError(f"a row needs \"path\", which is a str or a path: {row!r}")
        return {**row, "path": os.fspath(row["path"])}
    if isinstance(row, (str, bytes, os.PathLike)):
        return {"path": os.fspath(row)}
    if isinstance(row, tuple) and len(row) == 2:
        return {"path": os.fspath(row[0]), "label": row[1]}
    raise TypeError(f"a clip of a list is a path, (path, label), or a dict with \"path\", not {row!r}")


def _read_windows(rows):
    if not any(row.get(name) is not None for row in rows for name in _PART):
        return None
    return [(_seconds(row, "start"), _seconds(row, "end"), _frame(row, "start_frame"), _frame(row, "end_frame"))
            for row in rows]


def _frame(row, name):
    value = row.get(name)
    return 0 if value is None or value == "" else _options.whole(value, name)


def _seconds(row, name):
    value = row.get(name)
    try:
        return 0 if value is None else _options.ns(value)
    except ValueError:
        raise ValueError(f"{name} is {value!r}, not a number of seconds: {row['path']}") from None


def _read_column(name, values):
    """Its kind, and its values."""
    values = [value.item() if hasattr(value, "item") else value for value in values]
    there = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in there):
        return "integer", values
    if all(isinstance(value, (int, float)) for value in there):
        return "real", values
    if all(isinstance(value, (str, int, float)) for value in there):
        return "text", [None if value is None else str(value) for value in values]
    raise TypeError(f"the column {name} has values that are not numbers or texts")


# ---- progress ----

class _Line:
    """The progress of a build on a line of a terminal, once it has taken a second; or as the caller wants it."""

    def __init__(self, progress):
        wanted = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
        self.call = wanted if callable(wanted) else self._show if wanted else None
        self._start = time.monotonic()
        self._is_shown = False

    def _show(self, numbers):
        if time.monotonic() - self._start < 1:
            return
        total = f" of {numbers['num_total']}" if numbers["num_total"] else ""
        broken = f", {numbers['num_broken']} broken" if numbers["num_broken"] else ""
        sys.stderr.write(f"\rindexing: {numbers['num_found']}{total} files{broken}\x1b[K")
        sys.stderr.flush()
        self._is_shown = True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
