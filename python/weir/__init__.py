"""weir: videos as arrays, one by one or as batches for training, and what limits the loading of them."""

from weir import _core
from weir._errors import Error

__version__ = _core.VERSION

# What needs FFmpeg is loaded when it is used first: `import weir` loads none of it.
_PLACES = {
    "Video": "weir._video",
    "Frames": "weir._media",
    "Batch": "weir._media",
    "Array": "weir._media",
    "watch": "weir._watch",
    "Watch": "weir._watch",
    "counter": "weir._spans",
    "frame": "weir._spans",
    "step": "weir._spans",
    "spans": "weir._spans",
    "Spans": "weir._spans",
    "paused": "weir._spans",
    "read_stats": "weir._stats",
    "Stats": "weir._stats",
    "runs": "weir._stats",
    "summary": "weir._stats",
    "explain": "weir._stats",
    "limit": "weir._stats",
    "Pipeline": "weir._pipeline",
    "Run": "weir._pipeline",
    "decode": "weir._stages",
    "collate": "weir._stages",
    "Index": "weir._index",
    "Broken": "weir._index",
    "Loader": "weir._loader",
    "decode_many": "weir._many",
    "SKIP": "weir._pipeline",
}

__all__ = ["Error", "cpu_budget", "marker", "span", *_PLACES]

cpu_budget = _core.cpu_budget
span = _core.span
marker = _core.marker


def __getattr__(name):
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'weir' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_PLACES])
