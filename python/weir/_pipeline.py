"""weir.Pipeline: Python functions and weir's stages in a chain, each with its own concurrency."""

import functools
import inspect
import re
import threading
from fractions import Fraction

from weir import _core, _options
from weir._errors import Stopped

SKIP = _core.SKIP
_END = object()  # of an async generator

# What an exception waits for a callable that still runs: Ctrl-C must not wait for it.
_LEAVE_SECONDS = 0.05


class Pipeline:
    """Describes a pipeline: a source, stages and a sink. build() starts it.

        pipeline = (
            weir.Pipeline()
            .add_source(paths)
            .pipe(load, concurrency=8)
            .aggregate(4)
            .add_sink(3)
            .build(threads=8)
        )
        with pipeline:
            for batch in pipeline:
                ...

    The words are SPDL's. A description may be built several times.
    """

    def __init__(self):
        self._source = None
        self._stages = []
        self._sink = None

    def __copy__(self):
        """Another description, which begins with the same stages."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _stages=list(self._stages))
        return other

    def add_source(self, source, *, epochs=None, name=None):
        """What the pipeline processes: anything iterable, also a pipeline that runs, or a source of weir.

        Python's sources run on a thread of their own. None and weir.SKIP are left out. epochs: the source is iterated so many times,
        and each `for` over the pipeline is one epoch. An exception of the source ends the run.
        """
        if self._source is not None:
            raise ValueError("the source is set already: a pipeline has one")
        options = {"epochs": epochs, "name": name}
        if isinstance(source, _core.Stage):
            self._source = (source, options)
        elif hasattr(source, "__iter__") or hasattr(source, "__getitem__"):
            self._source = (_core.iterate(source), {"threads": 1, **options})
        else:
            raise TypeError(f"a source is iterable or a stage of weir, not {source!r}")
        return self

    def merge(self, *pipelines, order="arrival", weights=None, seed=0, end="last", name=None):
        """What several pipelines make, instead of add_source(): each is described with a source, and without a sink.

        order: which of them gives the next item: "arrival", "round_robin", "weighted" (so many of each in turn as weights, whole
        numbers, say), or "random" (by weights and seed). end: with the "last" of them, or with the "first". Of the pipelines, the
        first one may be a merged one itself.
        """
        if self._source is not None:
            raise ValueError("the source is set already: a pipeline has one")
        if len(pipelines) < 2 or any(not isinstance(one, Pipeline) or one._source is None or one._sink for one in pipelines):
            raise ValueError("merge takes at least two pipelines, each with a source and without a sink")
        if any(isinstance(one._source, list) for one in pipelines[1:]):
            raise ValueError("only the first of the pipelines may be merged itself")
        junction = _core.merge({"order": order, "seed": seed, "end": end}, tuple(weights or ()))
        self._source = [*(stage for one in pipelines for stage in one._chain()), (junction, {"name": name})]
        return self

    def path_variants(self, router, paths, *, output_order="completion", name=None):
        """Each item takes one of several paths; then they meet.

        router(item) returns the number of the path, from 0. paths: pipelines that are described with stages alone, or with none: items
        pass as they are. output_order: "completion", or "input" for the order before the paths. An item fails if the router raises or
        returns another number.
        """
        if inspect.iscoroutinefunction(router) or inspect.iscoroutinefunction(getattr(router, "__call__", None)):
            raise TypeError("a router is no async function: put one before it with pipe(), which returns the number with the item")
        if any(not isinstance(path, Pipeline) or path._source is not None or path._sink for path in paths):
            raise ValueError("a path is a pipeline without source and sink: weir.Pipeline().pipe(…)")
        self._stages.append((_core.route(router, len(paths)), {"name": name}))
        for path in paths:
            self._stages += [(_core.branch(), {}), *path._stages]
        self._stages.append((_core.join(), {"output_order": output_order}))
        return self

    def _chain(self):
        """Its stages from the source on."""
        return [*(self._source if isinstance(self._source, list) else [self._source]), *self._stages]

    def pipe(self, op, *, concurrency=1, name=None, output_order="completion", max_failures=None, threads=None,
             queue_items=None, deadline=None):
        """A stage that calls op(item) for each item, up to `concurrency` at a time; or a stage of weir.

        What op returns goes to the next stage, except None and weir.SKIP. If op is a generator function, each of its values is an item.
        A list, tuple or dict is looked up: op[item]. An async function runs on one event loop for the whole pipeline, and up
        to `concurrency` calls wait at the same time.

        output_order: "completion", or "input" to keep the order. max_failures: how many failures the stage may have, or the share of
        items as a number below 1; -1 = any number (default: as build() says). threads: threads for this stage alone, for
        functions that wait. deadline: seconds after which a task counts as failed.
        """
        options = {
            "concurrency": _options.whole(concurrency, "concurrency", 1),
            "name": name,
            "output_order": output_order,
            "max_failures": _max_failures(max_failures),
            "threads": _options.number(threads, "threads"),
            "queue_items": _options.number(queue_items, "queue_items"),
            "task_deadline_ns": _options.span_ns(deadline, "deadline"),
        }
        self._stages.append((op if isinstance(op, _core.Stage) else _as_function(op), options))
        return self

    def aggregate(self, n, *, drop_last=False, name=None):
        """Makes lists of n items. The last one may be shorter, or is left out with drop_last."""
        self._stages.append((_core.aggregate(n, drop_last), {"name": name}))
        return self

    def disaggregate(self, *, name=None):
        """Passes on the items of lists (or of anything iterable) one by one."""
        self._stages.append((_core.disaggregate(), {"name": name}))
        return self

    def add_sink(self, buffer_size=3):
        """The end: so many results wait for the consumer."""
        if self._sink is not None:
            raise ValueError("the sink is set already: a pipeline has one")
        if buffer_size < 1:
            raise ValueError(f"buffer_size is {buffer_size}; it is at least 1")
        self._sink = {"queue_items": buffer_size}
        return self

    def build(self, *, threads=None, max_failures=-1, checkpoints=False, resume=None, record=None, trace=None,
              stats_interval=1.0):
        """Starts the pipeline.

        threads: that run the stages (default: the CPUs of this process). A function that waits occupies one, so functions that download
        need more. max_failures: of each stage, as for pipe(). By default, as in SPDL, failed items are left out, logged, and kept in
        `failures`; a stage whose tasks have all failed ends the run. With 0, the first failure ends it: the iteration raises
        weir.Error, whose __cause__ is what the function raised.

        checkpoints: checkpoint() tells what is done, for `resume`: a list of such texts. True: a result is done when it is delivered;
        "done": when done() says so. record: a database for the statistics; by default they are in memory, and with False there are none.
        trace: a file for Perfetto, .json or .json.gz. stats_interval: the seconds of one lap of the statistics.
        """
        if self._source is None:
            raise ValueError("the pipeline has no source: call add_source()")
        loop = _Loop()
        stages = [loop.stage(stage, options) for stage, options in self._chain()]
        options = {
            "threads": _options.number(threads, "threads"),
            "max_failures": _max_failures(max_failures),
            "checkpoints": checkpoints if isinstance(checkpoints, str) else "delivered" if checkpoints else "off",
            "resume": resume,
            "record": record or None,
            "in_memory": record is None,
            "trace": trace,
            "stats_interval_ns": _options.span_ns(stats_interval, "stats_interval"),
        }
        return Run(_core.Pipeline(stages, self._sink, options), loop)

    def __repr__(self):
        names = [options["name"] or _name(stage) for stage, options in self._stages]
        return f"<weir.Pipeline {' > '.join(['source' if self._source else '?', *names, 'sink'])}>"


class Run(_options.NoCopy):
    """A pipeline that runs. Iterating takes its results; a new `for` goes on where the last one ended.

    Use it as a context manager, or close() it. A pipeline that nobody refers to any more is closed, too.
    """

    def __init__(self, core, loop=None):
        self._core = core
        self._loop = loop

    def __iter__(self):
        return self.get_iterator()

    def get_iterator(self, timeout=None):
        """Iterates; a result that does not come within so many seconds is a TimeoutError."""
        while True:
            try:
                item = self._core.next(timeout)
            except StopIteration:
                return
            if item is None:  # the end of an epoch
                return
            yield item

    def get_item(self, timeout=None):
        """The next result. Raises EOFError at the end, and at the end of an epoch."""
        try:
            item = self._core.next(timeout)
        except StopIteration:
            item = None
        if item is None:
            raise EOFError("the pipeline has no more items")
        return item

    # ---- the end

    def stop(self):
        """Tells the pipeline to stop; never waits. Iterations raise weir.Stopped."""
        self._core.stop()
        if self._loop:
            self._loop.cancel()

    def close(self, timeout=None):
        """Stops and frees it. True = all is freed; False = a function still runs after so many seconds: it ends by itself."""
        if timeout is not None and not timeout >= 0:  # before anything ends
            raise ValueError(f"timeout is {timeout!r}; it is seconds from 0 on, or None for no limit")
        self._core.stop()  # first: calls that are cancelled are no failures then
        if self._loop:
            self._loop.close()
        return self._core.close(timeout)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close(None if kind is None else _LEAVE_SECONDS)

    # ---- what it tells

    @property
    def state(self):
        """ "running", "stopping", "failed", "ended" or "closed"."""
        return self._core.state

    @property
    def failures(self):
        """The failures so far, as weir.Error with stage, file, number and epoch. __cause__ is what the function raised.

        The last thousand are kept.
        """
        return self._core.failures()

    def stats(self):
        """Totals so far, also after close(): {"tasks": {stage: {measure: value}}, "queues": {…}, …}, in seconds and bytes.

        Names and meanings are those of the database.
        """
        return self._core.stats()

    def explain(self, live=False, *, seconds=None):
        """What limits the run, why, and what would help, as a text. Also after close().

        live: by an experiment of some seconds, which changes settings back and forth; another thread must iterate meanwhile.
        seconds: how long each setting runs, at most.
        """
        return explain(self._core, live, seconds)

    def checkpoint(self):
        """What is done, as a text for build(resume=[…]). Needs build(checkpoints=…)."""
        return self._core.checkpoint()

    def done(self, n=1):
        """The n oldest results that were delivered and are not done yet have been handled. Needs build(checkpoints="done")."""
        self._core.done(n)

    def account(self, stage=None):
        """Where every item went: taken, passed_on, skipped, failed, dropped, …, of a stage or of the whole pipeline."""
        return self._core.account(stage)

    def snapshot(self):
        """The state at this moment: stages with their slots, queues with their levels, tasks with their ages."""
        return self._core.snapshot()

    # ---- what it is told

    def set_concurrency(self, stage, n):
        """Changes how many tasks of a stage run at a time."""
        self._core.set_concurrency(stage, n)

    def set_threads(self, n, stage=None):
        """Changes the threads of the pipeline, or of a stage that has its own."""
        self._core.set_threads(n, stage)

    def mark_step(self, step):
        """The consumer begins this step."""
        self._core.mark_step(step)

    def mark_phase(self, name):
        """The consumer begins a phase, such as "forward"."""
        self._core.mark_phase(name)

    def mark_mode(self, name):
        """The consumer begins a mode, such as "train" or "eval"."""
        self._core.mark_mode(name)

    def __repr__(self):
        return f"<weir pipeline, {self.state}>"


# ---- functions as stages


class _Async:
    """An async function, until the pipeline is built: it needs an event loop."""

    def __init__(self, function):
        self.function = function


def _as_function(op):
    if not callable(op) and hasattr(op, "__getitem__"):
        return op.__getitem__
    call = op.func if isinstance(op, functools.partial) else op
    own = getattr(call, "__call__", None)
    if any(is_async(f) for f in (call, own) for is_async in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
        return _Async(op)
    if not callable(op):
        raise TypeError(f"{op!r} is neither a function nor a stage")
    return op


def _name(op):
    """A name for the statistics, of the characters that are allowed there."""
    if isinstance(op, _core.Stage):
        return repr(op).removeprefix("<weir stage ").removesuffix(">")
    if isinstance(op, _Async):
        op = op.function
    if isinstance(op, functools.partial):
        op = op.func
    name = getattr(op, "__name__", None) or type(op).__name__
    return re.sub(r"[^A-Za-z0-9_.-]+", "", name)[:64] or "call"


def _max_failures(value):
    return float(value) if isinstance(value, Fraction) else value


class _Loop:
    """The event loop of a pipeline, on a thread that the first async function starts. It ends with close(), or with the object."""

    def __init__(self):
        self._loop = None
        self._asyncio = None  # the module, once it is needed
        self._calls = _Calls()

    def stage(self, op, options):
        """The stage of a function, with its options."""
        if isinstance(op, _core.Stage):
            return op, options
        options = {**options, "name": options["name"] or _name(op)}
        if isinstance(op, _Async):
            # A call waits in its thread. Private threads, so that these do not hold up other stages.
            options["threads"] = options["threads"] or options["concurrency"]
            op = self._blocking(op.function)
        return _core.call(op), options

    def _start(self):
        import asyncio

        if self._loop is None:
            self._asyncio = asyncio
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run_loop, args=(self._loop,), name="weir-asyncio", daemon=True).start()

    def _blocking(self, function):
        self._start()
        asyncio, loop, calls = self._asyncio, self._loop, self._calls

        def wait(coroutine):
            return calls.begin(asyncio.run_coroutine_threadsafe, coroutine, loop).result()

        async def advance(generator):
            return await anext(generator, _END)

        def values(generator):
            while (value := wait(advance(generator))) is not _END:
                yield value

        async def settle(result):
            return await result

        def call(item):
            result = function(item)
            if hasattr(result, "__anext__"):
                return values(result)
            try:
                return wait(settle(result))
            finally:
                if hasattr(result, "close"):
                    result.close()  # it may not have begun

        return call

    def cancel(self):
        """Cancels what the event loop does."""
        self._tell(_cancel_tasks)

    def close(self):
        """Cancels what the event loop does, and ends its thread."""
        self._tell(_end_loop)

    def _tell(self, function):
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(_end_calls, self._calls, function, self._asyncio, self._loop)
        except RuntimeError:
            pass  # it is closed

    def __del__(self):
        self.close()


class _Calls:
    """Which calls the event loop gets: none after the end. So a call is cancelled, or it does not begin."""

    def __init__(self):
        self._lock = threading.Lock()
        self._has_ended = False  # with the lock

    def begin(self, submit, coroutine, loop):
        with self._lock:
            if not self._has_ended:
                return submit(coroutine, loop)
        coroutine.close()
        raise Stopped("the pipeline was stopped before the call began")

    def end(self):
        with self._lock:
            self._has_ended = True


def _run_loop(loop):
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end_calls(calls, function, asyncio, loop):
    """On the loop's thread: a finalizer must not wait for the lock. What was submitted before the end is in the loop's queue, and
    has become a task when the function runs: behind it in the queue."""
    calls.end()
    loop.call_soon(function, asyncio, loop)


def _cancel_tasks(asyncio, loop):
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    return tasks


def _end_loop(asyncio, loop):
    ended = asyncio.gather(*_cancel_tasks(asyncio, loop), return_exceptions=True)
    ended.add_done_callback(lambda _: loop.stop())


def explain(core, live, seconds):
    """Run.explain() of a weir._core.Pipeline."""
    setting_ns = 0 if seconds is None else _options.ns(seconds, "seconds")
    return _in_thread(core.explain, True, setting_ns) if live else core.explain()


def _in_thread(function, *args):
    """Calls it in a thread, so that Ctrl-C is heard meanwhile."""
    result = []

    def call():
        try:
            result.append((True, function(*args)))
        except BaseException as error:
            result.append((False, error))

    thread = threading.Thread(target=call, name="weir-explain", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    is_good, value = result[0]
    if not is_good:
        raise value
    return value
