# The types of the module. The docstrings of its classes and functions have the details.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeVar, final, overload

__version__: str

_F = TypeVar("_F", bound=Callable[..., Any])
_Path = str | PathLike[str]
_Source = Any  # a path, a URL, an object with a buffer, or a file object opened as binary

def cpu_budget() -> int: ...

# ---- errors

class Error(Exception):
    status: str
    stage: str
    file: str
    code: int
    number: int | None
    epoch: int | None

class _Skip: ...

SKIP: _Skip

# ---- arrays

class _Memory:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class Array(_Memory):
    @property
    def time(self) -> float | None: ...
    def tolist(self) -> list[Any]: ...
    def __getitem__(self, index: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...

class _Pixels(_Memory):
    def __getitem__(self, index: int, /) -> Array: ...
    def __iter__(self) -> Iterator[Array]: ...

@final
class Frames(_Pixels):
    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def pts(self) -> Array: ...
    @property
    def times_ns(self) -> Array: ...
    @property
    def mask(self) -> Array: ...
    @property
    def time_base(self) -> tuple[int, int]: ...
    @property
    def codec(self) -> str: ...
    @property
    def damage(self) -> dict[str, int]: ...
    @property
    def source_size(self) -> tuple[int, int]: ...

@final
class Batch(_Pixels):
    @property
    def frames(self) -> Array: ...
    @property
    def labels(self) -> Array: ...
    @property
    def ids(self) -> Array: ...
    @property
    def sizes(self) -> Array: ...
    @property
    def mask(self) -> Array: ...
    @property
    def valid(self) -> Array: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def columns(self) -> dict[str, Array | list[str | None]]: ...
    @property
    def epoch(self) -> int: ...
    @property
    def padding(self) -> float: ...

# ---- one video, many videos

class Video:
    def __init__(
        self,
        source: _Source,
        *,
        name: str | None = None,
        threads: int = 0,
        stream: int = 0,
        strict: bool = False,
        seed: int = 0,
        max_frames: int | None = None,
        ca_file: str | None = None,
        allow_pipes: bool = False,
        allow_insecure: bool = False,
        isolated: bool = False,
        max_memory: int | None = None,
        size: int | tuple[int, int] | None = None,
        width: int = ...,
        height: int = ...,
        longest: int = ...,
        shortest: int = ...,
        resize: Literal["pad", "stretch", "crop"] | None = None,
        pixel: Literal["rgb24", "gray8", "yuv420p", "rgb48", "gray16", "yuv420p10"] | None = None,
        layout: Literal["nhwc", "nchw"] | None = None,
        scaler: Literal["default", "exact", "fast"] | None = None,
        filter: str | None = None,
        autorotate: bool = True,
    ) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int) -> Array: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | Any) -> Frames: ...
    def __iter__(self) -> Iterator[Array]: ...
    @property
    def duration(self) -> float: ...
    @property
    def fps(self) -> float: ...
    @property
    def codec(self) -> str: ...
    @property
    def container(self) -> str: ...
    @property
    def rotation(self) -> int: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def times(self) -> list[float]: ...
    @property
    def keyframes(self) -> list[int]: ...
    @overload
    def at(
        self,
        times: float,
        *,
        tolerance: float | None = None,
        match: Literal["shown", "nearest", "exact"] | None = None,
        outside: Literal["near", "clamp", "fail"] | None = None,
        origin: Literal["first", "stream"] | None = None,
    ) -> Array: ...
    @overload
    def at(
        self,
        times: Sequence[float] | Any,
        *,
        tolerance: float | None = None,
        match: Literal["shown", "nearest", "exact"] | None = None,
        outside: Literal["near", "clamp", "fail"] | None = None,
        origin: Literal["first", "stream"] | None = None,
    ) -> Frames: ...
    def between(
        self,
        start: float,
        stop: float,
        *,
        fps: float | Fraction | None = None,
        origin: Literal["first", "stream"] | None = None,
    ) -> Frames: ...
    def spread(self, count: int) -> Frames: ...
    def clips(
        self,
        count: int,
        *,
        frames: int,
        stride: int | float = 1,
        start: Literal["random", "first", "center", "even"] = "random",
        short: Literal["last", "loop", "fail"] = "last",
        epoch: int = 0,
        number: int = 0,
    ) -> Frames: ...
    def close(self) -> None: ...
    def __enter__(self) -> Video: ...
    def __exit__(self, *exception: object) -> None: ...

def decode_many(
    sources: Iterable[_Source],
    frames: int | None = None,
    size: int | tuple[int, int] | None = None,
    *,
    fps: float | Fraction | None = None,
    every: int | None = None,
    indices: Sequence[int] | Any | None = None,
    times: Sequence[float] | Any | None = None,
    keyframes: bool = False,
    clips: int | None = None,
    between: tuple[float, float] | None = None,
    stride: int | float | None = None,
    start: str | None = None,
    short: str | None = None,
    tolerance: float | None = None,
    match: str | None = None,
    outside: str | None = None,
    origin: str | None = None,
    concurrency: int | None = None,
    on_error: Literal["return", "raise"] = "return",
    deadline: float | None = None,
    **options: Any,
) -> list[Any]: ...

# ---- datasets

class Broken(NamedTuple):
    path: str
    label: str
    reason: str
    status: str

class Index:
    progress: dict[str, int]
    def __init__(
        self,
        path: _Path,
        *,
        where: str | None = None,
        classes: Sequence[str] | None = None,
        root: _Path | None = None,
        ignore_mtime: bool = False,
        paths: Sequence[str] | None = None,
    ) -> None: ...
    @classmethod
    def build(
        cls,
        source: Any,
        path: _Path | None = None,
        *,
        glob: str | None = None,
        tar: bool | None = None,
        check: Literal["packets", "first", "all"] | str = "packets",
        labels: Sequence[str] | None = None,
        concurrency: int | None = None,
        progress: bool | Callable[[dict[str, int]], Any] | None = None,
        **options: Any,
    ) -> Index: ...
    def __len__(self) -> int: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def columns(self) -> dict[str, str]: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def broken(self) -> list[Broken]: ...
    @property
    def path(self) -> _Path | bytes | None: ...
    def rows(self, where: str | None = None) -> list[dict[str, Any]]: ...
    def summary(self) -> dict[str, Any]: ...
    def select(self, where: str | None = None, classes: Sequence[str] | None = None) -> Index: ...

class Loader:
    index: Index
    batch_size: int
    drop_last: bool
    seed: int
    rank: int
    world: int
    def __init__(
        self,
        source: Any,
        frames: int = 16,
        stride: int | float = 1,
        start: Literal["random", "first", "center", "even", "spread"] = "random",
        *,
        clips: int | None = None,
        short: Literal["last", "loop", "fail"] | None = None,
        size: int | tuple[int, int] | None = 224,
        crop: Literal["center", "random", "resized", "default"] | None = "default",
        crop_size: int | tuple[int, int] | None = None,
        flip: bool | float = False,
        dtype: Literal["uint8", "uint16", "float16", "bfloat16", "float32"] = "uint8",
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        layout: Literal["THWC", "TCHW", "CTHW"] = "THWC",
        batch_size: int = 8,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        buckets: int | None = None,
        bucket_by: str | None = None,
        group_files: int | None = None,
        where: str | None = None,
        classes: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        glob: str | None = None,
        tar: bool | None = None,
        rank: int | None = None,
        world: int | None = None,
        share: Literal["pad", "drop", "exact"] | None = None,
        concurrency: int | None = None,
        threads: int | None = None,
        prefetch: int = 2,
        on_error: Literal["replace", "raise", "skip"] = "replace",
        record: _Path | None = None,
        trace: _Path | None = None,
        keep_open: int = 0,
        progress: bool | Callable[[dict[str, int]], Any] | None = None,
        **options: Any,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...
    @property
    def epoch(self) -> int: ...
    @property
    def batches_left(self) -> int: ...
    @property
    def failures(self) -> list[Error]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None: ...
    def explain(self, live: bool = False, *, seconds: float | None = None) -> str: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Loader: ...
    def __exit__(self, *exception: object) -> None: ...

# ---- pipelines of your functions

class Pipeline:
    def __init__(self) -> None: ...
    def add_source(self, source: Any, *, epochs: int | None = None, name: str | None = None) -> Pipeline: ...
    def pipe(
        self,
        op: Any,
        *,
        concurrency: int = 1,
        name: str | None = None,
        output_order: Literal["completion", "input"] = "completion",
        max_failures: int | float | Fraction | None = None,
        threads: int | None = None,
        queue_items: int | None = None,
        deadline: float | None = None,
    ) -> Pipeline: ...
    def merge(
        self,
        *pipelines: Pipeline,
        order: Literal["arrival", "round_robin", "weighted", "random"] = "arrival",
        weights: Sequence[int] | None = None,
        seed: int = 0,
        end: Literal["last", "first"] = "last",
        name: str | None = None,
    ) -> Pipeline: ...
    def path_variants(
        self,
        router: Callable[[Any], int],
        paths: Sequence[Pipeline],
        *,
        output_order: Literal["completion", "input"] = "completion",
        name: str | None = None,
    ) -> Pipeline: ...
    def aggregate(self, n: int, *, drop_last: bool = False, name: str | None = None) -> Pipeline: ...
    def disaggregate(self, *, name: str | None = None) -> Pipeline: ...
    def add_sink(self, buffer_size: int = 3) -> Pipeline: ...
    def build(
        self,
        *,
        threads: int | None = None,
        max_failures: int | float | Fraction = -1,
        checkpoints: bool | Literal["delivered", "done", "off"] = False,
        resume: Sequence[str] | None = None,
        record: _Path | Literal[False] | None = None,
        trace: _Path | None = None,
        stats_interval: float = 1.0,
    ) -> Run: ...

class Run:
    @property
    def state(self) -> str: ...
    @property
    def failures(self) -> list[Error]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def get_iterator(self, timeout: float | None = None) -> Iterator[Any]: ...
    def get_item(self, timeout: float | None = None) -> Any: ...
    def stop(self) -> None: ...
    def close(self, timeout: float | None = None) -> bool: ...
    def stats(self) -> dict[str, Any]: ...
    def explain(self, live: bool = False, *, seconds: float | None = None) -> str: ...
    def checkpoint(self) -> str: ...
    def done(self, n: int = 1) -> None: ...
    def account(self, stage: str | None = None) -> dict[str, int]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def set_concurrency(self, stage: str, n: int) -> None: ...
    def set_threads(self, n: int, stage: str | None = None) -> None: ...
    def mark_step(self, step: int) -> None: ...
    def mark_phase(self, name: str) -> None: ...
    def mark_mode(self, name: str) -> None: ...
    def __enter__(self) -> Run: ...
    def __exit__(self, kind: object, value: object, traceback: object) -> None: ...

# stages of weir for pipe()
class _Stage: ...

def decode(frames: int | None = None, **options: Any) -> _Stage: ...
def collate(
    n: int,
    *,
    drop_last: bool = False,
    dtype: str = "uint8",
    layout: Literal["THWC", "TCHW", "CTHW"] = "THWC",
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> _Stage: ...

# ---- figures

class _Span:
    def __enter__(self) -> _Span: ...
    def __exit__(self, *exception: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

def span(name: str, category: str = "user") -> _Span: ...

class paused:
    def __enter__(self) -> paused: ...
    def __exit__(self, *exception: object) -> None: ...

class Spans(list[dict[str, Any]]):
    text: str

def marker(name: str, category: str = "user") -> None: ...
def frame(name: str, number: int | None, category: str = "user") -> None: ...
def step(number: int | None) -> None: ...
def counter(name: str, *values: str, category: str = "user", total: bool = False) -> Any: ...
def spans(*, reset: bool = False) -> Spans: ...

class Watch:
    @property
    def result(self) -> dict[str, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...
    def replay(self, steps: int = 50) -> Iterator[Any]: ...
    def explain(self) -> str: ...

def watch(
    iterable: Iterable[Any],
    *,
    replay: bool | int = False,
    keep: int | None = None,
    keep_bytes: int = ...,
    synchronize: Callable[[], Any] | None = None,
) -> Watch: ...

class Stats:
    @property
    def columns(self) -> list[str]: ...
    @property
    def types(self) -> dict[str, str]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

def read_stats(
    path: _Path,
    table: str = "tasks",
    *,
    sql: str | None = None,
    run: int | Literal["all", "last", "previous"] = "all",
    name: str | None = None,
    node: str | None = None,
    rank: int | None = None,
    start: float | None = None,
    end: float | None = None,
    steps: tuple[int, int] | None = None,
    phase: str | None = None,
    mode: str | None = None,
) -> Stats: ...
def runs(path: _Path) -> list[dict[str, Any]]: ...
def summary(path: _Path, *, run: int | Literal["all", "last", "previous"] = "last", **selection: Any) -> str: ...
def explain(
    path: _Path, *, run: int | Literal["all", "last", "previous"] = "last", verbose: bool = False, **selection: Any
) -> str: ...
def limit(path: _Path, *, run: int | Literal["all", "last", "previous"] = "last", **selection: Any) -> dict[str, Any]: ...
