"""Measurements in Python code, without a pipeline. span() and marker() themselves are in weir._core."""

import functools
import inspect

from weir import _core


def decorate(span, function):
    """The function with a span around each call. Of a coroutine, the time from its start to its end; of a generator function, the
    time up to its end, with that of its user."""
    again = span._again
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def measured(*args, **named):
            with again():
                return await function(*args, **named)

    elif inspect.isasyncgenfunction(function):
        raise TypeError("a span does not decorate an asynchronous generator: use `with weir.span(…):` within it")
    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def measured(*args, **named):
            with again():
                return (yield from function(*args, **named))

    elif callable(function):

        @functools.wraps(function)
        def measured(*args, **named):
            with again():
                return function(*args, **named)

    else:
        raise TypeError(f"a span decorates a function, not {function!r}")
    return measured


def frame(name, number, category="user"):
    """Begins frame `number` of this name and ends the one before; None only ends it. Frames are numbered spans, one after the
    other."""
    _core._frame(category, name, number)


def step(number):
    """Begins this step of the training loop, and ends the one before; None only ends it.

    Without a pipeline of weir, weir.spans() has the steps, as "weir/step". A Loader or a Pipeline has a function of its own, which also
    says in recordings in which step something was."""
    _core._frame("weir", "step", number)


def counter(name, *values, category="user", total=False):
    """A value over time, such as a loss: `weir.counter("loss").set(0.5)`. Threads may share it.

    values: names of several values, `c = weir.counter("cache", "hits", "misses")`, then `c.add(hits=1)`; they are one chart in
    traces. total: it only grows, such as bytes that were sent. By how much and how fast is shown. The same name gives
    the same counter; keep it, since finding it takes a lock."""
    return _core._counter(category, name, values, total)


def spans(*, reset=False):
    """All spans, frames, markers and counters of the process so far, and the tasks of its pipelines: a dict for each name.

    Times are in seconds: count, total, average, min, max, p50, p99; counters have last instead of percentiles. reset: begin again
    from 0 afterwards. print(weir.spans().text) prints a table."""
    import json

    text = _core._dump_spans(False, False)
    return Spans(json.loads(_core._dump_spans(True, reset))["names"], text)


class Spans(list):
    """A list of dicts, one for each name; text is all of it as a table."""

    def __init__(self, names, text):
        super().__init__(names)
        self.text = text

    def __getitem__(self, key):
        """By number; or by name, "user/forward"."""
        if isinstance(key, str):
            category, _, name = key.rpartition("/")
            for row in self:
                if row["name"] == key or (row["name"] == name and row["category"] == category):
                    return row
            raise KeyError(key)
        return super().__getitem__(key)

    def _repr_html_(self):
        import html

        return f"<pre>{html.escape(self.text)}</pre>"


class paused:
    """Within `with weir.paused():` nothing is measured in this process, by no thread. These do not nest."""

    def __enter__(self):
        _core._set_paused(True)
        return self

    def __exit__(self, *exception):
        _core._set_paused(False)
