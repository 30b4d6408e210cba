"""Lines of weir's log come as those of Python's logger "weir"."""

import logging
import os
import subprocess
import sys
import threading

import pytest

import weir
from weir import _core

ERROR, WARNING, INFO, DEBUG = range(4)


def python(program, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options)


@pytest.fixture(autouse=True)
def empty_queue():
    _core.drain_log()


def test_lines_are_logged_with_their_level_when_python_calls(caplog):
    with caplog.at_level(logging.DEBUG, "weir"):
        _core._write_line(ERROR, b"the disk is full")
        _core._write_line(WARNING, b"slow 100 %d")
        assert caplog.records == []
        _core.drain_log()
    assert caplog.record_tuples == [("weir", logging.ERROR, "the disk is full"), ("weir", logging.WARNING, "slow 100 %d")]


def test_control_characters_and_bytes_that_are_no_text_are_escaped(caplog):
    _core._write_line(WARNING, b"a\nb\x1b[31m\xff \xc3\xbc.mp4")
    _core.drain_log()
    assert caplog.messages == ["a\\nb\\x1b[31m\\udcff ü.mp4"]


def test_lines_of_other_threads_wait_for_a_call(caplog):
    thread = threading.Thread(target=_core._write_line, args=(WARNING, b"from a thread"))
    thread.start()
    thread.join()
    assert caplog.messages == []
    _core.drain_log()
    assert caplog.messages == ["from a thread"]


def test_reading_a_recording_takes_what_waits(caplog, tmp_path):
    _core._write_line(WARNING, b"waits")
    with pytest.raises(FileNotFoundError):
        weir.read_stats(tmp_path / "no.db")
    assert caplog.messages == ["waits"]


def test_lines_that_were_lost_are_counted(caplog):
    for _ in range(1030):
        _core._write_line(WARNING, b"x")
    _core.drain_log()
    assert caplog.messages.count("x") == 1024
    assert caplog.messages[1] == "6 lines of the log were lost: too many came at once"


def test_the_level_of_the_logger_decides_what_is_made():
    program = """
import logging, sys, time
logging.basicConfig(level=LEVEL, format="%(levelname)s %(message)s", stream=sys.stdout)
from weir import _core
_core.drain_log()
for level in range(4):
    _core._write_line(level, b"line")
_core.drain_log()"""
    assert python(program.replace("LEVEL", "'DEBUG'")).stdout.split() == "ERROR line WARNING line INFO line DEBUG line".split()
    assert python(program.replace("LEVEL", "'ERROR'")).stdout.split() == ["ERROR", "line"]


def test_what_waits_at_the_end_of_the_interpreter_is_logged_and_nothing_goes_to_stderr_before():
    done = python("import os\nfrom weir import _core\n_core._write_line(1, b'at the end')\nos.write(2, b'first\\n')")
    assert done.returncode == 0 and done.stderr.splitlines() == ["first", "at the end"]


def test_lines_after_the_end_go_to_stderr_without_python():
    done = python("import atexit, os\nfrom weir import _core\n_core._end_log()\n_core._write_line(1, b'late')")
    assert done.stderr == "weir: warning: late\n"


def test_a_handler_that_fails_and_one_that_calls_weir_do_no_harm(caplog):
    class Failing(logging.Handler):
        def emit(self, record):
            _core.drain_log()
            raise RuntimeError(record.getMessage())

    logger, handler = logging.getLogger("weir"), Failing()
    logger.addHandler(handler)
    try:
        _core._write_line(WARNING, b"one")
        _core._write_line(WARNING, b"two")
        with _unraisable() as seen:
            _core.drain_log()
            _core.drain_log()
    finally:
        logger.removeHandler(handler)
    assert [str(value) for value in seen] == ["one", "two"]


class _unraisable:
    def __enter__(self):
        self.old, seen = sys.unraisablehook, []
        sys.unraisablehook = lambda info: seen.append(info.exc_value)
        return seen

    def __exit__(self, *exception):
        sys.unraisablehook = self.old


def test_ctrl_c_in_a_handler_is_not_lost():
    program = """
import logging, signal, sys, threading
from weir import _core
class Handler(logging.Handler):
    def emit(self, record):
        raise KeyboardInterrupt
logging.getLogger("weir").addHandler(Handler())
_core._write_line(1, b"x")
try:
    _core.drain_log()
    threading.Event().wait(30)
except KeyboardInterrupt:
    print("interrupted")"""
    assert python(program).stdout == "interrupted\n"


def test_a_forked_child_does_not_repeat_the_lines_of_its_parent(caplog):
    _core._write_line(WARNING, b"of the parent")
    child = os.fork()
    if child == 0:
        try:
            seen = []
            logging.getLogger("weir").handle = seen.append
            _core.drain_log()
            os._exit(len(seen))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    _core.drain_log()
    assert caplog.messages == ["of the parent"]
