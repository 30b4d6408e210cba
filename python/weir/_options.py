"""What people write as options, as the fields of weir's structs have it."""

NS = 1_000_000_000
_MOST_SECONDS = 2**63 // NS  # of an int64


class NoCopy:
    """For objects that stand for something that is open: a copy would use the same, and both would be wrong."""

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a weir.{type(self).__name__} cannot be copied or pickled: make another one of the same source where "
                        "it is needed")


def ns(seconds, name="a time"):
    """Seconds as whole nanoseconds."""
    try:
        value = float(seconds)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} is a number of seconds, not {seconds!r}") from None
    if not abs(value) < _MOST_SECONDS:
        raise ValueError(f"{name} is {seconds!r}, which is not a number of seconds that a file can have")
    return round(value * NS)


def height_width(size, name="size"):
    """(height, width)"""
    try:
        height, width = as_list(size, name)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} is a whole number, or (height, width), not {size!r}") from None
    return whole(height, f"the height of {name}", 1), whole(width, f"the width of {name}", 1)


def is_whole(value):
    """Whether it is a single whole number, also NumPy's. Arrays have __index__, too."""
    return hasattr(value, "__index__") and not getattr(value, "shape", ())


def picture(size=None, resize=None, pixel=None, layout=None, scaler=None, filter=None, autorotate=True, **sides):
    """The picture: size is the shortest side, or (height, width). width, height, longest and shortest are there, too."""
    fields = dict(sides)
    unknown = set(fields) - {"width", "height", "longest", "shortest"}
    if unknown:
        raise TypeError(f"unknown option: {sorted(unknown)[0]!r}")
    if size is not None:
        if fields:
            raise ValueError("give either size, or width, height, longest or shortest")
        if is_whole(size):
            fields["shortest"] = whole(size, "size", 1)
        else:
            fields["height"], fields["width"] = height_width(size)
    fields.update(resize=resize, pixel=pixel, layout=layout, scaler=scaler, filter=filter, no_autorotate=not autorotate)
    return {name: value for name, value in fields.items() if value is not None}


def rate(frames_per_second):
    """A rate as a fraction: 30, 29.97, or fractions.Fraction(30000, 1001)."""
    from fractions import Fraction
    from numbers import Rational

    try:
        is_exact = isinstance(frames_per_second, (Rational, str))
        fraction = Fraction(frames_per_second if is_exact else float(frames_per_second))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"a rate is a number of frames per second, not {frames_per_second!r}") from None
    if fraction <= 0:
        raise ValueError(f"a rate is above 0, not {frames_per_second!r}")
    if fraction.denominator > 2**31:
        fraction = fraction.limit_denominator(1_000_000)
    if not 0 < fraction.numerator < 2**32:
        raise ValueError(f"the rate {frames_per_second!r} is too small or too large")
    return {"rate_num": fraction.numerator, "rate_den": fraction.denominator}


def whole(value, name, least=0):
    """A whole number of at least so much; also NumPy's."""
    import operator

    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} is {number}; it must be at least {least}")
    return number


def number(value, name):
    """A whole number from 1 on, or None for the default: 0 would select that, too."""
    return None if value is None else whole(value, name, 1)


def span_ns(seconds, name):
    """A span of time above 0 in nanoseconds, or None for the default: 0 would select that, too."""
    if seconds is None:
        return None
    value = ns(seconds, name)
    if value <= 0:
        raise ValueError(f"{name} is {seconds!r}; it must be above 0 seconds")
    return value


def video(*, stream=0, strict=False, seed=0, max_frames=None, threads=0, ca_file=None, allow_pipes=False,
          allow_insecure=False, isolated=False, max_memory=None, **pictures):
    """How a file is read and decoded, and what its pictures are, for Reader and for the video stage."""
    if max_memory is not None and not isolated:
        raise ValueError("max_memory is the limit of a child process: give isolated=True, too")
    return {
        "isolated": {"max_memory_bytes": None if max_memory is None else whole(max_memory, "max_memory", 1)} if isolated else None,
        "picture": picture(**pictures),
        "video": {
            "stream": stream,
            "seed": seed,
            "damage": "strict" if strict else "tolerant",
            "max_frames": max_frames,
        },
        "decoder": {"threads": threads},
        "input": {"allow": (1 if allow_pipes else 0) | (2 if allow_insecure else 0), "ca_file": ca_file},
    }


# ---- which frames ----

def as_list(values, name):
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, (str, bytes, bytearray, memoryview)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list, not {values!r}")
    return list(values)


def at(times, *, tolerance=None, match=None, outside=None, origin=None):
    """The frames at these times, in seconds."""
    if tolerance is not None and match not in (None, "exact"):
        raise ValueError(f"tolerance is for match=\"exact\", not {match!r}")
    if tolerance is not None and ns(tolerance, "tolerance") < 0:
        raise ValueError(f"tolerance is {tolerance!r}; it must be at least 0")
    return {
        "times_ns": [ns(time) for time in as_list(times, "times")],
        "match": "exact" if match is None and tolerance is not None else match,
        "tolerance_ns": None if tolerance is None else ns(tolerance),
        "outside": outside,
        "origin": origin,
    }


def window(start, stop, origin=None):
    """The frames with start <= time < stop, in seconds."""
    start_ns, end_ns = ns(start, "start"), 0 if stop == float("inf") else ns(stop, "stop")  # 0 = the end of the video
    is_empty = stop != float("inf") and (end_ns <= start_ns or end_ns == 0)
    if is_empty or (start < 0 and origin != "stream"):
        raise ValueError(f"between {start} and {stop} s there is no time of a video")
    return {"start_ns": start_ns, "end_ns": end_ns, "origin": origin}


def clips(count, *, frames, stride=1, start="random", short="last"):
    """Clips of so many frames. count None: one, without an axis of clips. stride: frames as an int, seconds as a float."""
    sampling = {"what": "clips", "num_clips": None if count is None else whole(count, "clips", 1),
                "count": whole(frames, "frames", 1), "clip_start": start, "clip_short": short}
    if not is_whole(stride) and hasattr(stride, "__float__"):
        sampling["stride_ns"] = ns(stride, "stride")
        if sampling["stride_ns"] < 1:  # 0 is the default of the field
            raise ValueError(f"a stride is above 0, not {stride!r}")
    else:
        sampling["stride_frames"] = whole(stride, "stride", 1)
    return sampling


def sampling(frames=None, *, fps=None, every=None, indices=None, times=None, keyframes=False, clips=None, between=None,
             stride=None, start=None, short=None, tolerance=None, match=None, outside=None, origin=None):
    """One way to choose frames, by the words of weir.Video; by default `frames` frames, spread evenly."""
    if clips is None and (stride is not None or start is not None or short is not None):
        raise ValueError("stride, start and short are of clips: give clips=, too")
    if times is None and between is None and origin is not None:
        raise ValueError("origin is of times and between: give one of them, too")
    if times is None and (tolerance is not None or match is not None or outside is not None):
        raise ValueError("tolerance, match and outside are of times: give times=, too")
    ways = {"fps": fps, "every": every, "indices": indices, "times": times, "keyframes": keyframes or None, "clips": clips}
    given = [name for name, value in ways.items() if value is not None]
    if frames is not None and given != ["clips"]:
        given.insert(0, "frames")
    if len(given) > 1:
        raise ValueError(f"give either {given[0]} or {given[1]}, not both")
    if between is not None and (times is not None or indices is not None):
        raise ValueError(f"between is not for {given[0]}")
    chosen = _choose(frames, ways, {"stride": stride, "start": start, "short": short},
                     {"tolerance": tolerance, "match": match, "outside": outside, "origin": origin})
    if between is not None:
        try:
            start, stop = between
        except (TypeError, ValueError):
            raise ValueError(f"between is (start, stop), not {between!r}") from None
        chosen.update(window(start, stop, origin))
    return chosen


def _choose(frames, ways, of_clips, of_times):
    for name in ("times", "indices"):
        if ways[name] is not None:
            ways[name] = as_list(ways[name], name)
            if not ways[name]:
                raise ValueError(f"{name} is empty: it names no frame")
    if ways["times"] is not None:
        return at(ways["times"], **of_times)
    if ways["indices"] is not None:
        return {"indices": ways["indices"]}
    if ways["fps"] is not None:
        return {"what": "rate", **rate(ways["fps"])}
    if ways["every"] is not None:
        return {"what": "every", "every": whole(ways["every"], "every", 1)}
    if ways["keyframes"] is not None:
        return {"what": "keyframes"}
    if ways["clips"] is not None:
        if frames is None:
            raise ValueError("clips need frames=, the number of frames of each")
        return clips(ways["clips"], frames=frames, **{name: value for name, value in of_clips.items() if value is not None})
    return {"what": "uniform", "count": whole(32 if frames is None else frames, "frames", 1)}
