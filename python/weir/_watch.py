"""weir.watch(): whether a loop over any loader waits for its data, and how much faster it could be."""

from collections import deque

from weir import _core

_WARM_UP, _STEPS, _KEPT = 10, 50, 8  # as weir/headspace.h has them


def watch(iterable, *, replay=False, keep=None, keep_bytes=256 << 20, synchronize=None):
    """Measures a loop over a DataLoader, a generator or anything else that can be iterated:

        loader = weir.watch(loader)
        for batch in loader:
            train(batch)
        print(loader.explain())

    Is my step waiting for data, and how much faster could it be? The share of waiting gives a bound: with data that is always
    there, the loop takes at most 1 / (1 - share) as many steps per second, if a step then takes as long. It may take longer or
    shorter, because the loader works at the same time on the same CPUs. Only a measurement tells that:

    replay=True, or a number of steps: once, at the end of the first iteration that gets there, the loop gets the last
    batches again. The first 10 steps do not count, and 50 more (or that number) do. A training loop then trains on
    batches that it has seen, and takes so many steps more; so this is off unless you ask for it. Ranks of a job take
    the same number of steps more, if all ask. To keep it apart from training: `keep=8`, and after the loop `for batch
    in loader.replay(): train_a_copy(batch)`.

    keep: how many of the last batches are kept (8 with replay). They have at most keep_bytes of arrays and tensors in
    them, but at least the last one is kept. They must stay as they are: a loader that fills the same memory again, or
    a step that changes its batch in place, replays something else, which may take another time.

    synchronize: called before each end of a step, for steps that run asynchronously on a GPU: torch.cuda.synchronize. Without it, such a
    loop waits where it does not wait for data.

    The result has the length and the attributes of the loader. Each iteration measures; the first wait of each contains the start of
    the loader, and is told apart. A step that `break` ends counts with its time so far. One iteration at a time measures: a second one goes
    on without. weir.spans() has "loop/wait", "loop/step" and "loop/replay", and so have traces of pipelines that run meanwhile."""
    return Watch(iterable, replay, keep, keep_bytes, synchronize)


class Watch:
    """A loader that is measured; weir.watch() makes it."""

    def __init__(self, iterable, replay, keep, keep_bytes, synchronize):
        if not hasattr(iterable, "__iter__") and not hasattr(iterable, "__getitem__"):
            raise TypeError(f"{type(iterable).__name__!r} object cannot be iterated")
        if not (isinstance(replay, int) and replay >= 0):
            raise ValueError(f"replay is False, True or a number of steps, not {replay!r}")
        if keep is not None and not (isinstance(keep, int) and keep >= 0):
            raise ValueError(f"keep is a number of batches, not {keep!r}")
        if keep == 0 and replay:
            raise ValueError("replay needs batches that are kept: keep is 0")
        self._iterable = iterable
        self._loop = _core.Loop()
        self._num_replayed = _STEPS if replay is True else int(replay)
        self._kept = _Kept(_KEPT if keep is None and replay else keep or 0, keep_bytes)
        self._synchronize = synchronize
        self._turn = None  # of the iteration that measures

    # ---- the loop

    def __iter__(self):
        if self._turn is not None:  # a second one at the same time
            yield from self._iterable
            return
        self._turn = object()
        try:
            yield from self._measure()
            if self._num_replayed:
                count, self._num_replayed = self._num_replayed, 0
                yield from self._replay(count)
        finally:
            self._end_step()
            self._turn = None

    def _measure(self):
        self._loop.wait()
        for batch in self._iterable:
            self._loop.step(False)
            self._kept.add(batch)
            yield batch
            batch = None  # its memory is free while the loader makes the next one
            self._begin_wait()
        self._loop.pause()

    def _replay(self, count):
        batches = self._kept.batches()
        if not batches:
            return
        try:
            for number in range(_WARM_UP + count):
                if number >= _WARM_UP:
                    self._begin_wait()
                    self._loop.step(True)
                yield batches[number % len(batches)]
        finally:
            self._end_step()

    def _begin_wait(self):
        if self._synchronize:
            self._synchronize()
        self._loop.wait()

    def _end_step(self):
        if self._synchronize:
            self._synchronize()
        self._loop.pause()

    def replay(self, steps=_STEPS):
        """The batches that were kept, again and again: 10 steps that do not count, and as many as `steps` that do. Iterate it in the same
        way as the loader, after the loop; the loader should not work meanwhile."""
        if not self._kept.batches():
            raise ValueError("no batch was kept: give watch() keep=8, and iterate it first")
        if self._turn is not None:
            raise ValueError("an iteration still goes on: replay after it")
        return self._replay(steps)

    # ---- the answer

    @property
    def result(self):
        """What is known so far, as a dict. Times are in seconds, and None is not known.

        kind: "data" (it waits for data: faster loading brings at least a tenth), "steps" (it does not) or "unknown".
        steps, wait, step: their number and mean times. share: of the time in which it waits. most: the bound of the
        gain, as steps per second divided by the present ones. replayed, gain: the same gain as measured. starts,
        start: first waits. *_range are 95 % intervals."""
        return self._loop.judge()

    def explain(self):
        """Whether the loop waits for data, and how much faster it could be, as a text."""
        result = self.result
        lines = [result["text"][:1].upper() + result["text"][1:] + "."]
        if result["steps"]:
            lines.append(f"A step takes {_time(result['step'])}, after {_time(result['wait'])} of waiting.")
        if result["starts"]:
            lines.append(f"The first wait of an iteration, with the start of the loader, took {_time(result['start'])}; "
                         "it is not in these figures.")
        if result["steps"] and not result["replayed"] and result["kind"] != "steps":
            lines.append("Replayed batches would measure the gain: weir.watch(loader, replay=True).")
        return "\n".join(lines)

    def _repr_html_(self):
        import html

        share = self.result["share"] or 0.0
        bar = "".join(
            f'<span style="display:inline-block;width:{100 * part:.1f}%;background:{color};height:1em"'
            f' title="{name}: {100 * part:.1f} %"></span>'
            for part, color, name in ((share, "#d95f02", "waiting for data"), (1 - share, "#1b9e77", "steps")))
        text = html.escape(self.explain()).replace("\n", "<br>")
        return f'<div style="max-width:40em"><div style="white-space:nowrap">{bar}</div><div>{text}</div></div>'

    # ---- as the loader

    def __len__(self):
        return len(self._iterable)

    def __bool__(self):
        return True

    def __getattr__(self, name):
        if name.startswith("__") or name == "_iterable":
            raise AttributeError(name)
        return getattr(self._iterable, name)

    def __repr__(self):
        return f"<weir.watch of {self._iterable!r}>"


def _time(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 0.9995:
            break
    return f"{seconds * factor:.3g} {unit}"


class _Kept:
    """The last batches, so many and with so many bytes; but at least one."""

    def __init__(self, most, most_bytes):
        self._most, self._most_bytes = most, most_bytes
        self._queue, self._bytes = deque(), 0

    def add(self, batch):
        if not self._most:
            return
        size = nbytes(batch)
        self._queue.append((batch, size))
        self._bytes += size
        while len(self._queue) > 1 and (len(self._queue) > self._most or self._bytes > self._most_bytes):
            self._bytes -= self._queue.popleft()[1]

    def batches(self):
        return [batch for batch, _ in self._queue]


def nbytes(value):
    """The bytes of arrays, tensors, bytes and texts in a batch: a dict, list, tuple or dataclass of them. A list of numbers counts as 8 bytes each,
    without a look at each; others count as 0."""
    total, left, seen = 0, [value], set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (bytes, bytearray, str)):
            total += len(value)
        elif isinstance(getattr(value, "nbytes", None), int):
            total += value.nbytes
        elif hasattr(value, "element_size") and hasattr(value, "nelement"):
            total += value.element_size() * value.nelement()
        elif isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "values")):
            left.extend(value.values())
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], (int, float)):
            total += 8 * len(value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            left.extend(value)
        elif hasattr(value, "__dataclass_fields__"):
            left.extend(getattr(value, name) for name in value.__dataclass_fields__)
        elif hasattr(value, "__slots__") or hasattr(value, "__dict__"):
            left.extend(_arrays_of(value))
    return total


def _arrays_of(value):
    """What an object such as weir.Batch has: its frames."""
    frames = getattr(value, "frames", None)
    return [] if frames is None or callable(frames) else [frames]
