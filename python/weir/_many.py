"""weir.decode_many(): many videos at once."""

import os

from weir import _core, _media, _options
from weir._errors import Error


def decode_many(sources, frames=None, size=None, *, fps=None, every=None, indices=None, times=None, keyframes=False, clips=None,
                between=None, stride=None, start=None, short=None, tolerance=None, match=None, outside=None, origin=None,
                concurrency=None, on_error="return", deadline=None, **options):
    """Decodes many videos at once, on all CPUs that the process may use. Returns a list in the order of the sources: Frames,
    or the exception in the place of a video that failed.

    sources: paths, URLs, the bytes of files (any objects with a buffer, which are not copied), or file objects, which are
    read first. The frames of each video are chosen in one of these ways:
      frames     so many, spread evenly: the middles of equal intervals (default: 32)
      fps        so many for each second, repeated or skipped as needed
      every      each n-th
      indices    by their numbers; negative ones count from the end
      times      those shown at these times in seconds, with tolerance, match, outside and origin as in Video.at()
      keyframes  those that are marked as keyframes
      clips      so many clips of `frames` frames at a stride, as in Video.clips()
    between: (start, stop) in seconds: only the frames of this window. size: the shortest side, or (height, width).
    on_error: "return", or "raise": the first failure ends it. Each exception is a weir.Error, whose `number` is that of the
    source. concurrency: videos at a time, by default as many as there are CPUs. deadline: seconds after which a video counts as
    failed. The other options are those of Video. For untrusted bytes: isolated=True, with a deadline and max_memory.

    Many threads may call it at once. Memory holds the results, and one more video per CPU. Ctrl-C ends it.
    """
    if on_error not in ("return", "raise"):
        raise ValueError(f"on_error is {on_error!r}; it can be one of: 'return', 'raise'")
    if isinstance(sources, (str, bytes, bytearray, os.PathLike)):
        raise TypeError("sources is a list of videos: for one, write [source]")
    sources = [_read(source) for source in sources]
    config = _options.video(size=size, **options)
    config["sampling"] = _options.sampling(
        frames, fps=fps, every=every, indices=indices, times=times, keyframes=keyframes, clips=clips, between=between,
        stride=stride, start=start, short=short, tolerance=tolerance, match=match, outside=outside, origin=origin)
    slots = _core.cpu_budget() if concurrency is None else _options.whole(concurrency, "concurrency", 1)
    deadline_ns = _options.span_ns(deadline, "deadline")
    if not sources:
        return []
    stages = ((_media.many_stage(sources), {}),
              (_media.video_stage(config), {
                  "name": "decode", "concurrency": min(slots, len(sources)),
                  "task_deadline_ns": deadline_ns}))
    run = {"threads": min(slots, len(sources)), "kept_failures": len(sources)}
    if on_error == "raise":
        run["max_failures"] = 0
    pipeline = _core.Pipeline(stages, None, run)
    try:
        return _collect(pipeline, [None] * len(sources))
    finally:
        pipeline.close()


def _collect(pipeline, results):
    while True:
        try:
            frames = pipeline.next()
        except StopIteration:
            break
        except Error:
            failures = pipeline.failures()
            if failures:
                raise min(failures, key=lambda error: error.number) from None
            raise
        results[frames.number] = frames
    for error in pipeline.failures():
        results[error.number] = error
    return results


def _read(source):
    """A file object becomes its bytes."""
    if isinstance(source, (str, os.PathLike)) or not hasattr(source, "read"):
        return source
    try:
        data = source.read()
    except UnicodeDecodeError:
        data = ""
    if not isinstance(data, bytes):
        raise TypeError(f"{source!r} is not opened as binary: read() gave {type(data).__name__}")
    return data
