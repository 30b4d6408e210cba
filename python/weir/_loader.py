"""weir.Loader: batches of clips for training and evaluation, shuffled, shared among ranks, resumed exactly."""

import math
import os
import sys
import threading
from collections.abc import Mapping

from weir import _core, _media, _options
from weir._errors import Error
from weir._index import Index, is_index
from weir._pipeline import explain as _explain

_ENDLESS = 2**32 - 1  # epochs of the source
_FAILED = {"replace": "mask", "skip": "skip", "raise": "default"}
_KEPT_FAILURES = 1000
_STATE_VERSION = 1


class Loader(_options.NoCopy):
    """Batches of clips: `for batch in loader` is one epoch.

    source: a folder, a list, rows, a file of these, tar archives (as for Index.build(), in memory), or an Index. where,
    classes: which of its clips. Broken files are left out: loader.index.broken.
    frames: of a clip, `stride` frames apart (a float: seconds), from `start`: "random", "first", "center", "even", or "spread"
    evenly over the video. clips: so many of each video; then batches have the shape (batch, clip, …).
    size: pictures are scaled so that the shortest side has so many pixels; (height, width): exactly so, as `resize` says.
    crop: "center", "random", "resized" (a random crop, resized), or None. crop_size: by default `size`. flip: True, or the
    probability of a mirror image. Crops and flips are the same for all frames of a clip.
    dtype: "uint8", "float16", "bfloat16", "float32", or "uint16" with pixel="rgb48". Floats are (value / 255 - mean) / std.
    layout: "THWC", "TCHW" or "CTHW" of a clip; the batch comes first.
    shuffle, seed: each epoch has another order, which follows from the seed. drop_last: leave out an incomplete batch.
    buckets: clips are sorted into so many buckets by duration, or by `bucket_by`, an SQL expression on the columns such as
    "width * 1.0 / height". Most batches have clips of one bucket, so they need little padding. A state fits the same batch_size and
    number of ranks only.
    group_files: within each so many clips of the shuffled order, those of one file follow each other; with keep_open, they share
    what is decoded.
    rank, world: by default those of torch.distributed, if it is initialised, or of the launcher (torchrun, mpirun, srun).
    share: "pad" repeats clips so that all ranks have equally many. "drop" leaves some out (default with drop_last).
    "exact" does neither: then lengths may differ by one.
    on_error: with "replace", a clip that fails is replaced by another one of this rank and has batch.valid 0. With
    "raise" it ends the epoch with the exception. With "skip" it makes the epoch shorter: len() is then an upper
    bound.
    concurrency: how many clips are decoded at a time. threads: how many threads do that. Both are the number of CPUs
    by default. prefetch: batches that wait. keep_open: files that stay open for further clips of them.
    record: a database with the statistics, for `weir explain` and others. trace: a file for Perfetto. With several ranks, each
    has its own: run.rank3.db. Each pipeline that begins anew (below) is another run, and its trace another file: run.2.json.gz.
    progress: of indexing, as for Index.build(). The other options are those of Video.

    Batches are arrays without a copy: torch.from_dlpack(batch.frames), and batch.labels, ids, mask, valid, names, columns.

    The pipeline works on between epochs, so that the next one begins with batches that are ready. After a `break`, the next
    loop is the next epoch. One loop at a time.
    """

    def __init__(self, source, frames=16, stride=1, start="random", *, clips=None, short=None, size=224, crop="default",
                 crop_size=None, flip=False, dtype="uint8", mean=None, std=None, layout="THWC", batch_size=8, shuffle=True,
                 seed=0, drop_last=False, buckets=None, bucket_by=None, group_files=None, where=None,
                 classes=None, labels=None, glob=None, tar=None, rank=None, world=None,
                 share=None, concurrency=None, threads=None, prefetch=2, on_error="replace", record=None, trace=None,
                 keep_open=0, progress=None, **options):
        _one_of("on_error", on_error, _FAILED)
        _one_of("layout", layout, ("THWC", "TCHW", "CTHW"))
        self._pipeline = None
        self._last = None       # the pipeline before
        self._closed = False
        self.batch_size = _options.whole(batch_size, "batch_size", 1)
        self.drop_last = bool(drop_last)
        self.seed = _options.whole(seed, "seed")
        self.rank, self.world = _find_world(rank, world)
        self._video = _video_options(frames, stride, start, clips, short, size, layout, self.seed, keep_open, options)
        self._batch = {
            "num_items": self.batch_size, "drop_last": self.drop_last, "dtype": dtype, "layout": layout, "seed": self.seed,
            "flip": _flip(flip), **_normalise(dtype, mean, std), **_crop(crop, crop_size, size),
        }
        self._run = {
            "concurrency": _core.cpu_budget() if concurrency is None else _options.whole(concurrency, "concurrency", 1),
            "threads": 0 if threads is None else _options.whole(threads, "threads", 1),
            "prefetch": _options.whole(prefetch, "prefetch", 1),
            "record": record, "trace": trace, "on_error": on_error,
        }
        _check_values(dtype, options.get("pixel"))
        _media.collate_stage(self._batch)  # wrong options are told now: before files are indexed
        _media.video_stage(self._video)
        self.index = _find_index(source, where, classes, labels, glob, tar, progress)
        order, self._order = _find_order(self.index, shuffle, buckets, bucket_by, group_files, self.batch_size * self.world)
        self._sampler = {
            "dataset": self.index.fingerprint,
            "failed": _FAILED[on_error],
            "sampler.num_items": len(self.index),
            **order,
            "sampler.seed": self.seed,
            "sampler.share": share or ("drop" if drop_last else "pad"),
            "sampler.world.rank": self.rank,
            "sampler.world.size": self.world,
        }
        self._num_batches = _media.count_left(self._sampler, self._order, (), self.batch_size, self.drop_last)[0]
        self._epoch = 0         # of the loop that runs, or of the next one
        self._is_inside = False # a loop has had a batch of this epoch, and not its end
        self._resume = ()       # checkpoints of this epoch, for a pipeline that is not built yet
        self._turn = 0          # counts loops: an older one ends
        self._step = 0
        self._num_pipelines = 0
        self._mark = f"rank{self.rank}" if self.world > 1 else ""
        self._failures = []
        self._process = os.getpid()

    # ---- the pipeline

    def _build(self):
        stages = (
            (_media.sampler_stage(self.index._dataset, self._sampler, self._order), {"threads": 1, "epochs": _ENDLESS}),
            (_media.video_stage(self._video), {"name": "decode", "concurrency": self._run["concurrency"],
                                               "output_order": "input"}),
            (_media.collate_stage(self._batch), {"name": "batch", "queue_items": 1}),
        )
        options = {
            "threads": self._run["threads"],
            "checkpoints": "delivered",
            "kept_failures": _KEPT_FAILURES,
            "record": _own_path(self._run["record"], self._mark),
            "record_options": {"rank": self.rank, "world": self.world},
            "trace": _own_path(self._run["trace"], self._mark, self._num_pipelines),
            "trace_options": {"rank": self.rank, "world_size": self.world},
            "in_memory": self._run["record"] is None,
            "stats_interval_ns": _options.NS,
        }
        if self._run["record"] is None:
            del options["record_options"]
        if self._run["trace"] is None:
            del options["trace_options"]
        if self._run["on_error"] == "raise":
            options["max_failures"] = 0
        if self._resume:
            options["resume"] = self._resume
        elif self._epoch:
            options["begin_epoch"] = self._epoch
        self._pipeline = _core.Pipeline(stages, {"queue_items": self._run["prefetch"]}, options)
        self._num_pipelines += 1
        self._resume = ()

    def _running(self):
        """The pipeline, at the right place of the right epoch."""
        self._check_open()
        if self._process != os.getpid():  # a forked child: the pipeline is the parent's, and so is the place in its epoch
            self._process = os.getpid()
            self._pipeline = None
            self._is_inside = False
        if self._pipeline is None:
            self._build()
        return self._pipeline

    def _check_open(self):
        if self._closed:
            raise ValueError("the loader is closed")

    def _drop(self):
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None and self._process == os.getpid():
            self._failures = self._all_failures(pipeline)
            pipeline.close()
            self._last = pipeline  # still knows its recording

    def _all_failures(self, pipeline):
        return [*self._failures, *pipeline.failures()][-_KEPT_FAILURES:]

    def _measured(self):
        """The pipeline that explain() and stats() are about."""
        pipeline = self._last if self._pipeline is None or self._process != os.getpid() else self._pipeline
        if pipeline is None:
            raise ValueError("there is nothing to tell yet: begin a loop over the loader first")
        return pipeline

    # ---- epochs

    def __len__(self):
        """Batches of an epoch, the same on every rank (not with share="exact"). With on_error="skip": at most so many."""
        return self._num_batches

    def __iter__(self):
        self._check_open()
        if self._is_inside and self._process == os.getpid():  # an earlier loop was left: its epoch is over
            self.set_epoch(self._epoch + 1)
        self._running()
        self._turn += 1
        return _Epoch(self, self._turn)

    def _next(self, turn):
        """The next batch of this loop; None at its end. The way that all batches take is short: other threads wait for the GIL."""
        pipeline = self._pipeline  # another thread may close the loader meanwhile
        if turn != self._turn or pipeline is None:
            pipeline = self._running()
            if turn != self._turn:
                raise RuntimeError("another loop over this loader has begun: only the newest one gets batches")
        try:
            batch = pipeline.next(None, self._step)
        except Error:
            if self._process != os.getpid():  # the pipeline is the parent's: this process makes its own
                self._running()
                return self._next(turn)
            self._is_inside = True  # this epoch is over: the next loop builds anew
            failures = pipeline.failures() if self._run["on_error"] == "raise" else ()
            if failures:
                raise failures[0] from None  # with the number of the clip
            raise
        if batch is None:
            self._epoch += 1
            self._is_inside = False
            self._turn += 1
            return None
        self._is_inside = True
        self._step += 1
        return batch

    @property
    def epoch(self):
        """The number of the epoch that runs; between loops, of the next one."""
        return self._epoch

    def set_epoch(self, epoch):
        """The next loop is this epoch, from its start. If it is the next one anyway, nothing changes: also after load_state_dict(),
        so that a training script may call it before each loop."""
        epoch = _options.whole(epoch, "epoch")
        if epoch != self._epoch or self._is_inside:
            self._drop()
            self._resume = ()
            self._epoch = epoch
            self._is_inside = False
            self._turn += 1

    @property
    def batches_left(self):
        """How many batches of this epoch are still to come; exact also after a resume."""
        texts = self._resume or (() if self._pipeline is None else (self._running().checkpoint(),))
        return _media.count_left(self._sampler, self._order, texts, self.batch_size, self.drop_last)[0]

    # ---- state

    def state_dict(self):
        """What is done: a dict of numbers and texts. A batch is done when the loop has it.

        With load_state_dict() of the states of all ranks, another number of ranks may go on. It may be asked for at any time.
        """
        if len(self._resume) > 1 or (self._pipeline is None and self.world > 1 and not (self._closed and self._resume)):
            self._running()
        checkpoint = self._resume[0] if self._resume else None
        if self._pipeline is not None:
            checkpoint = self._running().checkpoint()
        return {"version": _STATE_VERSION, "epoch": self._epoch, "rank": self.rank, "world": self.world, "seed": self.seed,
                "step": self._step, "checkpoint": checkpoint}

    def load_state_dict(self, state):
        """Goes on where this state was made: the next loop has exactly the rest of its epoch.

        state: that of this rank; or a list of those of all ranks, whose rest is divided among the ranks there are now. The
        loader must have the same clips, seed and options of drawing.
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        if not states:
            raise ValueError("there is no state in the list")
        for one in states:
            _check_state(one)
            if one["seed"] != self.seed:
                raise ValueError(f"the state is of the seed {one['seed']}, not {self.seed}")
            if one["world"] != len(states) and not (len(states) == 1 and one["world"] == self.world):
                raise ValueError(f"the state is of {one['world']} ranks, so a list of the states of all of them is needed, "
                                 f"not {len(states)}")
        texts = tuple(one["checkpoint"] for one in states if one["checkpoint"] is not None)
        if texts and len(texts) != len(states):
            raise ValueError("some ranks had begun, others had not: each needs a checkpoint")
        if texts:  # raises if they do not fit
            _media.count_left(self._sampler, self._order, texts, self.batch_size, self.drop_last)
        self._drop()
        self._epoch = min(one["epoch"] for one in states)
        self._resume = texts
        self._step = max(one["step"] for one in states)
        self._is_inside = False
        self._turn += 1

    # ---- what it tells

    @property
    def failures(self):
        """The newest failures of clips, each a weir.Error with `number` and `epoch`: at most a thousand."""
        if self._pipeline is not None and self._process == os.getpid():
            return self._all_failures(self._pipeline)
        return list(self._failures)

    def explain(self, live=False, *, seconds=None):
        """What limits the loader, and what to do, as a text; during a run (up to now) and after it.

        live: by an experiment of some seconds, which changes settings back and forth; another thread must iterate meanwhile.
        seconds: how long each setting runs, at most.
        """
        return _explain(self._measured(), live, seconds)

    def stats(self):
        """The figures of all stages and queues since the pipeline has begun: dicts of "tasks", "queues" and others, by name."""
        return self._measured().stats()

    def _repr_html_(self):
        import html

        title = html.escape(repr(self))
        if self._pipeline is None and self._last is None:
            return f"<p>{title}</p>"
        try:
            text = html.escape(self.explain())
        except Error as error:
            text = html.escape(str(error))
        return f"<p>{title}</p>{_picture(self.stats()['tasks'])}<pre>{text}</pre>"

    def __repr__(self):
        return f"<weir.Loader of {len(self.index)} clips, {len(self)} batches, epoch {self._epoch}, rank {self.rank} of {self.world}>"

    # ---- the end

    def close(self):
        """Ends the pipeline, completes the recording. Batches stay valid, and so does state_dict()."""
        if self._pipeline is not None and self._process == os.getpid():
            self._resume = (self._pipeline.checkpoint(),)
        self._drop()
        self._closed = True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class _Epoch:
    """One loop."""

    def __init__(self, loader, turn):
        self._loader = loader
        self._turn = turn
        self._is_over = False
        self._process = os.getpid()
        self._lock = threading.RLock()  # threads that share a loop: none may wait for a batch when another one meets the end

    def __iter__(self):
        return self

    def __next__(self):
        if self._process != os.getpid():  # a forked child: the thread that has the lock may be the parent's
            self._process = os.getpid()
            self._lock = threading.RLock()
        with self._lock:
            if not self._is_over:
                batch = self._loader._next(self._turn)
                if batch is not None:
                    return batch
                self._is_over = True
        raise StopIteration

    def __len__(self):
        return len(self._loader)


# ---- a picture for notebooks ----

_STATES = (("busy_time", "#2a7fbf", "works"), ("wait_in_time", "#d9d9d9", "waits for input"),
           ("wait_thread_time", "#f2b134", "waits for a CPU"), ("wait_turn_time", "#b39ddb", "waits for its turn"),
           ("wait_out_time", "#e57373", "waits for room"))


def _picture(tasks):
    """An SVG: for each stage, how its slots have spent their time."""
    import html

    lines, y = [], 0
    for name, values in tasks.items():
        times = [max(values.get(state) or 0, 0) for state, _, _ in _STATES]
        if not sum(times):
            continue
        lines.append(f'<text x="0" y="{y + 13}">{html.escape(name)}</text>')
        x = 160
        for time, (_, colour, meaning) in zip(times, _STATES):
            width = 400 * time / sum(times)
            lines.append(f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="14" fill="{colour}">'
                         f'<title>{meaning}: {time:.2f} s</title></rect>')
            x += width
        y += 20
    for number, (_, colour, meaning) in enumerate(_STATES):
        x = 112 * number
        lines.append(f'<rect x="{x}" y="{y + 7}" width="8" height="8" fill="{colour}"/>'
                     f'<text x="{x + 12}" y="{y + 15}">{meaning}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="570" height="{y + 20}" font-family="sans-serif" font-size="11">'
            f'{"".join(lines)}</svg>')


# ---- options ----

def _own_path(path, rank, number=0):
    """As `weir record` names the files of a rank: run.rank3.db; those of a further pipeline: run.2.json.gz."""
    if path is None:
        return None
    path = os.fspath(path)
    marks = [mark for mark in ("" if "{rank}" in path else rank, str(number + 1) if number else "") if mark]
    folder, name = os.path.split(path)
    stem, end = os.path.splitext(name.removesuffix(".gz"))
    end += ".gz" if name.endswith(".gz") else ""
    return os.path.join(folder, ".".join([stem, *marks]) + end)


def _one_of(name, value, words):
    if value not in words:
        raise ValueError(f"{name} is {value!r}; it can be one of: {', '.join(map(repr, words))}")


def _find_world(rank, world):
    if (rank is None) != (world is None):
        raise ValueError("give both rank and world, or neither")
    if rank is not None:
        rank, world = _options.whole(rank, "rank"), _options.whole(world, "world", 1)
        if rank >= world:
            raise ValueError(f"rank is {rank}; it must be below world, {world}")
        return rank, world
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return _media.find_world()[:2]


def _find_index(source, where, classes, labels, glob, tar, progress):
    of_build = {"labels": labels, "glob": glob, "tar": tar}
    is_built = isinstance(source, Index) or (isinstance(source, (str, os.PathLike)) and is_index(source))
    if not is_built:
        return Index.build(source, where=where, classes=classes, progress=progress, **of_build)
    for name, value in of_build.items():
        if value is not None:
            raise ValueError(f"{name} is for building an index, and this one is built already")
    if not isinstance(source, Index):
        return Index(source, where=where, classes=classes)
    if where is None and classes is None:
        return source
    kept = source._options
    return source.select(where=kept.get("where") if where is None else where,
                         classes=kept.get("classes") if classes is None else classes)


def _find_order(index, shuffle, buckets, bucket_by, group_files, batch_items):
    """Options of the sampler, and what it needs of each clip."""
    if bucket_by is not None and buckets is None:
        raise ValueError("bucket_by needs buckets=")
    if buckets is not None and group_files is not None:
        raise ValueError("buckets and group_files are two orders: give one of them")
    if not shuffle and (buckets is not None or group_files is not None):
        raise ValueError(f"{'group_files' if buckets is None else 'buckets'} is for shuffle=True")
    if buckets is not None:
        options = {"sampler.order": "buckets", "sampler.num_buckets": _options.whole(buckets, "buckets", 1),
                   "sampler.block_items": batch_items}
        return options, index._dataset.read_sizes(bucket_by)
    if group_files is not None:
        options = {"sampler.order": "groups", "sampler.block_items": _options.whole(group_files, "group_files", 1)}
        return options, index._dataset.read_files()
    return {"sampler.order": "shuffled" if shuffle else "listed"}, None


def _video_options(frames, stride, start, clips, short, size, layout, seed, keep_open, options):
    if "seed" in options or "layout" in options:
        raise TypeError("seed and layout are those of the loader")
    video = _options.video(size=size, layout="nhwc" if layout == "THWC" else "nchw", seed=seed, **options)
    if start == "spread":
        if stride != 1 or clips is not None or short is not None:
            raise ValueError("stride, clips and short are not for start=\"spread\"")
        video["sampling"] = _options.sampling(frames)
    else:
        video["sampling"] = _options.clips(clips, frames=frames, stride=stride, start=start, short=short or "last")
    video["video"]["keep_open"] = _options.whole(keep_open, "keep_open")
    return video


_STATE = ("version", "epoch", "rank", "world", "seed", "step", "checkpoint")


def _check_state(state):
    """Raises if it is not what state_dict() makes: before anything has changed."""
    if not isinstance(state, Mapping) or state.get("version") != _STATE_VERSION:
        raise ValueError(f"this is no state of a weir.Loader of this version: {state!r}")
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise ValueError(f"the state has no {missing[0]!r}: it is not what state_dict() has made")
    for name in ("epoch", "rank", "world", "seed", "step"):
        _options.whole(state[name], f"the state's {name}")
    if not isinstance(state["checkpoint"], (str, type(None))):
        raise TypeError(f"the state's checkpoint is a text or None, not {state['checkpoint']!r}")


def _check_values(dtype, pixel):
    """Whether batches of these values can be made of such pictures."""
    if pixel is not None and pixel.startswith("yuv"):
        raise ValueError(f"pixel={pixel!r} cannot be batched: use \"rgb24\", \"gray8\", \"rgb48\" or \"gray16\"")
    is_wide = pixel in ("rgb48", "gray16")
    if dtype == "uint16" and not is_wide:
        raise ValueError("dtype=\"uint16\" is for pixel=\"rgb48\" or \"gray16\"")
    if dtype in ("uint8", None) and is_wide:
        raise ValueError(f"pixel={pixel!r} is for dtype=\"uint16\", or floats, not \"uint8\"")


def _flip(flip):
    probability = 0.5 if flip is True else float(flip or 0)
    if not 0 <= probability <= 1:
        raise ValueError(f"flip is {flip!r}; it can be True, False, or a probability from 0 to 1")
    return probability


def _normalise(dtype, mean, std):
    given = {name: [value] * 3 if not hasattr(value, "__len__") else value
             for name, value in (("mean", mean), ("std", std)) if value is not None}
    if given and dtype in ("uint8", "uint16"):
        raise ValueError(f"{next(iter(given))} is for dtype \"float16\", \"bfloat16\" or \"float32\", not {dtype!r}")
    for name, values in given.items():
        if not all(math.isfinite(value) and (name == "mean" or value > 0) for value in values):
            raise ValueError(f"{name} is {list(values)}; {'these are finite numbers' if name == 'mean' else 'these are above 0'}")
    return given


def _crop(crop, crop_size, size):
    if crop == "default":
        crop = "center" if crop_size is not None or _options.is_whole(size) else None
    if crop is None:
        if crop_size is not None:
            raise ValueError("crop_size is given, but crop is None")
        return {}
    _one_of("crop", crop, ("center", "random", "resized"))
    target = size if crop_size is None else crop_size
    if target is None:
        raise ValueError(f"crop={crop!r} needs size= or crop_size=")
    if _options.is_whole(target):
        target = [_options.whole(target, "crop_size", 1)] * 2
    height, width = _options.height_width(target, "crop_size")
    if crop != "resized" and size is not None:
        smaller = min(height, width) > size if _options.is_whole(size) else any(a > b for a, b in zip((height, width), size))
        if smaller:
            raise ValueError(f"crop_size is {crop_size!r}: larger than the pictures, whose size is {size!r}")
    return {"crop": crop, "crop_height": height, "crop_width": width}
