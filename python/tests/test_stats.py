"""Recordings as tables, by Arrow and without; summaries and verdicts. The file is one of SPDL's form, which weir reads too."""

import ctypes
import json
import sqlite3
import threading

import pytest

import weir

NUM_LAPS, MANY_LAPS = 50, 9000  # more than a chunk

# A byte that begins nothing, a sequence that is cut, one that is too long, a surrogate, one above the last character; and good ones.
NO_UTF8 = {b"a\xffb": "a\\xffb", b"\xc3b": "\\xc3b", b"\xe2\x82": "\\xe2\\x82", b"\xc0\xaf": "\\xc0\\xaf", b"\xed\xa0\x80": "\\xed\\xa0\\x80",
           b"\xf4\x90\x80\x80": "\\xf4\\x90\\x80\\x80", "aß€😀".encode(): "aß€😀"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return record(tmp_path_factory.mktemp("recordings") / "run.db", NUM_LAPS)


@pytest.fixture(scope="module")
def long_path(tmp_path_factory):
    return record(tmp_path_factory.mktemp("recordings") / "long.db", MANY_LAPS)


def record(file, num_laps):
    db = sqlite3.connect(file)
    db.executescript("""
CREATE TABLE task_stats (id INTEGER PRIMARY KEY, timestamp REAL NOT NULL, name TEXT NOT NULL, num_tasks INTEGER NOT NULL,
  num_failures INTEGER NOT NULL, ave_time REAL NOT NULL, p90_time REAL NOT NULL, p99_time REAL NOT NULL);
CREATE TABLE queue_stats (id INTEGER PRIMARY KEY, timestamp REAL NOT NULL, name TEXT NOT NULL, elapsed REAL NOT NULL,
  num_items INTEGER NOT NULL, ave_put_time REAL NOT NULL, ave_get_time REAL NOT NULL, p90_put_time REAL NOT NULL,
  p99_put_time REAL NOT NULL, p90_get_time REAL NOT NULL, p99_get_time REAL NOT NULL, occupancy_rate REAL NOT NULL);
CREATE TABLE event_stats (id INTEGER PRIMARY KEY, timestamp REAL NOT NULL, event_name TEXT NOT NULL);""")
    db.executemany("INSERT INTO task_stats VALUES (NULL, ?, '0:1:decode[4]', ?, 0, 0.1, 0.2, 0.3)",
                   [(1000.0 + i, i % 100) for i in range(num_laps)])
    for queue, rate in (("0:0:src_queue", 1.0), ("0:1:decode[4]_queue", 0.1), ("0:2:sink_queue", 0.0)):
        db.executemany(f"INSERT INTO queue_stats VALUES (NULL, ?, '{queue}', 1, ?, 0.01, 0.02, 0.01, 0.01, 0.02, 0.02, {rate})",
                       [(1000.0 + i, i % 100) for i in range(20)])
    db.execute("INSERT INTO event_stats VALUES (NULL, 1003.5, 'naïve')")
    for name in NO_UTF8:
        db.execute("INSERT INTO event_stats VALUES (NULL, 1004.5, CAST(? AS TEXT))", [name])
    db.commit()
    db.close()
    return file


def test_rows_are_dicts_with_the_names_of_the_columns(long_path):
    stats = weir.read_stats(long_path, "tasks")
    rows = stats.rows()
    assert len(rows) == MANY_LAPS
    assert list(rows[0]) == stats.columns
    assert [row["num_tasks"] for row in rows] == [i % 100 for i in range(MANY_LAPS)]
    assert rows[3]["name"] == "0:1:decode[4]" and rows[3]["timestamp"] == 1003.0
    assert stats.types["num_tasks"] == "int64" and stats.types["timestamp"] == "float64" and stats.types["name"] == "text"


def test_what_is_not_known_is_none(path):
    assert {row["cpu_time"] for row in weir.read_stats(path, "tasks").rows()} == {None}


def test_rows_can_be_read_twice_and_one_by_one(path):
    stats = weir.read_stats(path, "events")
    assert stats.rows() == stats.rows() == list(stats)
    iterator = iter(stats)
    assert next(iterator)["event_name"] == "naïve"


def test_bytes_that_are_no_utf8_are_escaped(path):
    names = [row["event_name"] for row in weir.read_stats(path, "events")]
    assert names == ["naïve", *NO_UTF8.values()]


def test_every_table_can_be_read(path):
    for table in weir._core.stats_tables():
        stats = weir.read_stats(path, table)
        assert stats.columns and isinstance(stats.rows(), list)


def test_part_of_a_table_is_selected(path):
    stats = weir.read_stats(path, "tasks", start=1000.5, end=1003.5, run="last")
    assert [row["timestamp"] for row in stats] == [1001.0, 1002.0, 1003.0, 1004.0]
    assert weir.read_stats(path, "tasks", name="scale").rows() == []
    assert len(weir.read_stats(path, "queues", name="sink").rows()) == 20


def test_a_statement_is_answered(path):
    stats = weir.read_stats(path, sql="SELECT name, sum(num_items) AS items, 1.5 AS x FROM queues GROUP BY name ORDER BY name")
    assert stats.types == {"name": "text", "items": stats.types["items"], "x": "float64"}
    assert [row["items"] for row in stats] == [190, 190, 190]


def test_columns_of_bytes_are_left_out(path):
    stats = weir.read_stats(path, sql="SELECT x'0001' AS histogram, 1 AS \"the \"\"number\"")
    assert stats.rows() == [{'the "number': 1}]


@pytest.mark.parametrize("wrong", [{"table": "nothing"}, {"sql": "SELECT"}, {"sql": "DELETE FROM task_stats"}, {"run": 99}])
def test_wrong_questions_are_refused_and_change_nothing(path, wrong):
    with pytest.raises(weir.Error):
        weir.read_stats(path, **wrong).rows()
    assert len(weir.read_stats(path).rows()) == NUM_LAPS


def test_files_that_are_not_there_or_no_recordings_are_told_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="no.db"):
        weir.read_stats(tmp_path / "no.db")
    text = tmp_path / "text.db"
    text.write_text("hello " * 100)
    for function in (weir.read_stats, weir.summary, weir.explain, weir.limit, weir.runs):
        with pytest.raises(weir.Error, match="text.db"):
            function(text)


def test_a_run_is_named_by_number_or_word(path):
    with pytest.raises(ValueError, match="previous"):
        weir.read_stats(path, run="newest")
    with pytest.raises(TypeError, match="colour"):
        weir.explain(path, colour=1)


def test_runs_are_listed_with_their_state(path):
    runs = weir.runs(path)
    assert [(run["run_id"], run["has_ended"], run["state"]) for run in runs] == [(1, True, "finished")]


def test_summary_explain_and_limit_answer(path):
    assert "Total tasks processed: " in weir.summary(path) and "0:1:decode[4]" in weir.summary(path)
    assert "\n" in weir.explain(path)
    limit = weir.limit(path)
    assert isinstance(limit["kind"], str) and isinstance(limit["evidence"], list) and 0 <= limit["confidence"] <= 1
    json.dumps(limit)


def test_other_threads_run_while_rows_are_read(long_path):
    done = threading.Event()
    thread = threading.Thread(target=lambda: (weir.read_stats(long_path).rows(), done.set()))
    thread.start()
    while not done.is_set():
        sum(range(100))
    thread.join()


# ---- Arrow without any library: the structs of its specification


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", ctypes.POINTER(Schema)), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
                   ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
                  ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private_data", ctypes.c_void_p)]
Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]


def stream_of(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Stream.from_address(pointer(capsule, b"arrow_array_stream"))


def schema_of(stream):
    schema = Schema()
    assert stream.get_schema(stream, schema) == 0
    assert schema.format == b"+s"
    fields = {}
    for i in range(schema.n_children):
        child = schema.children[i].contents
        assert child.flags == 2 and child.n_children == 0
        fields[child.name.decode()] = child.format.decode()
    schema.release(schema)
    assert not schema.release
    return fields


def values_of(column, kind):
    valid = ctypes.cast(column.buffers[0], ctypes.POINTER(ctypes.c_uint8))
    if kind == "u":
        offsets = ctypes.cast(column.buffers[1], ctypes.POINTER(ctypes.c_int32))
        text = [ctypes.string_at(column.buffers[2] + offsets[i], offsets[i + 1] - offsets[i]) for i in range(column.length)]
        values = [one.decode() for one in text]
    else:
        c_type = ctypes.c_int64 if kind == "l" else ctypes.c_double
        values = ctypes.cast(column.buffers[1], ctypes.POINTER(c_type))[: column.length]
    values = [value if valid[i // 8] >> i % 8 & 1 else None for i, value in enumerate(values)]
    assert column.null_count == values.count(None)
    return values


def chunks_of(stream):
    fields = schema_of(stream)
    while True:
        array = Array()
        assert stream.get_next(stream, array) == 0
        if not array.release:
            return
        assert array.offset == 0 and array.n_buffers == 1 and not array.buffers[0] and array.n_children == len(fields)
        columns = {}
        for i, (name, kind) in enumerate(fields.items()):
            child = array.children[i].contents
            assert child.length == array.length and child.n_buffers == (3 if kind == "u" else 2)
            columns[name] = values_of(child, kind)
        yield columns, array


def test_the_stream_of_arrow_has_the_rows(long_path):
    for table in ("tasks", "events", "failures"):
        stats = weir.read_stats(long_path, table)
        capsule = stats.__arrow_c_stream__()
        stream, rows = stream_of(capsule), []
        for columns, array in chunks_of(stream):
            rows += [dict(zip(columns, row)) for row in zip(*columns.values())]
            array.release(array)
            assert not array.release
        assert rows == stats.rows()


def test_a_child_may_be_moved_out_of_its_chunk(path):
    capsule = weir.read_stats(path, sql="SELECT num_tasks, name FROM tasks").__arrow_c_stream__()
    stream = stream_of(capsule)
    _, array = next(chunks_of(stream))
    moved = Array()
    ctypes.memmove(ctypes.byref(moved), array.children[0], ctypes.sizeof(Array))
    ctypes.memset(array.children[0], 0, ctypes.sizeof(Array))
    array.release(array)
    assert values_of(moved, "l")[:3] == [0, 1, 2]
    moved.release(moved)


def test_a_stream_that_a_consumer_has_taken_is_not_freed_twice(path):
    capsule = weir.read_stats(path, "events").__arrow_c_stream__(None)
    stream, taken = stream_of(capsule), Stream()
    ctypes.memmove(ctypes.byref(taken), ctypes.byref(stream), ctypes.sizeof(Stream))
    ctypes.memset(ctypes.byref(stream), 0, ctypes.sizeof(Stream))
    del capsule
    assert "event_name" in schema_of(taken)
    taken.release(taken)


def test_pyarrow_takes_it(path):
    pyarrow = pytest.importorskip("pyarrow")
    stats = weir.read_stats(path)
    table = pyarrow.table(stats)
    table.validate(full=True)
    assert table.to_pylist() == stats.rows()


def test_polars_takes_it(path):
    polars = pytest.importorskip("polars")
    stats = weir.read_stats(path)
    assert polars.DataFrame(stats).to_dicts() == stats.rows()


def test_pandas_takes_it(path):
    pandas = pytest.importorskip("pandas", minversion="3.0")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame.from_arrow(weir.read_stats(path, "events"))
    assert list(frame["event_name"]) == ["naïve", *NO_UTF8.values()]


def test_duckdb_takes_it(path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    stats = weir.read_stats(path)  # noqa: F841, found by its name
    assert duckdb.sql("SELECT sum(num_tasks) FROM stats").fetchall()[0][0] == sum(i % 100 for i in range(NUM_LAPS))


@pytest.mark.parametrize("run", [-1, -2, 0, -3])
def test_a_number_of_a_run_is_above_0(run, tmp_path):
    path = tmp_path / "run.db"
    with weir.Pipeline().add_source(range(3)).build(record=path) as pipeline:
        list(pipeline)
    with pytest.raises(ValueError, match="run is its number"):
        weir.read_stats(path, run=run)
