"""Forks while threads of pipelines begin, end and record: the child must not wait for a thread that it has not."""

import os
import signal
import threading
import time
import traceback

import weir

_PATIENCE = 20  # seconds: a child that takes longer hangs


def _await_child(child):
    """The exit status of the child; it is killed if it hangs."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        os.sched_yield()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "it hangs"


def _fork(function):
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return _await_child(child)


class _Pipelines:
    """Threads that build and close pipelines, one after the other."""

    def __init__(self, *, threads, record=None):
        self._has_ended = False
        self._threads = [threading.Thread(target=self._run, args=(threads, record)) for _ in range(2)]

    def _run(self, threads, record):
        while not self._has_ended:
            described = weir.Pipeline().add_source(range(3)).pipe(abs, concurrency=threads).add_sink()
            with described.build(threads=threads, record=record) as pipeline:
                list(pipeline)

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *exception):
        self._has_ended = True
        for thread in self._threads:
            thread.join()


def test_forked_children_begin_while_threads_of_pipelines_begin_and_end():
    with _Pipelines(threads=8, record=False):
        assert {_fork(lambda: None) for _ in range(200)} == {0}


def _record_in_memory():
    with weir.Pipeline().add_source(range(5)).pipe(abs, name="abs").add_sink().build() as pipeline:
        assert list(pipeline) == [0, 1, 2, 3, 4]
        assert pipeline.stats()["tasks"]["0:1:abs"]["num_tasks"] == 5


def test_forked_children_record_while_threads_of_the_parent_record():
    with _Pipelines(threads=2):
        assert {_fork(_record_in_memory) for _ in range(40)} == {0}


def test_a_forked_child_records_into_a_file_of_its_own(tmp_path):
    described = weir.Pipeline().add_source(range(5)).pipe(abs, name="abs").add_sink()

    def record(path):
        with described.build(record=path) as pipeline:
            list(pipeline)
            assert pipeline.stats()["tasks"]["0:1:abs"]["num_tasks"] == 5

    def record_in_child():
        try:
            described.build(record=tmp_path / "parent.db")
        except weir.Error as error:
            assert error.status == "EFORKED" and "another file" in str(error)
        else:
            raise AssertionError("the file of the parent")
        record(tmp_path / "child.db")

    with described.build(record=tmp_path / "parent.db") as pipeline:
        assert _fork(record_in_child) == 0
        list(pipeline)
    assert (tmp_path / "child.db").exists()
