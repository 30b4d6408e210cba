"""weir.Video: the frames of one video, without a pipeline."""

import bisect
import operator
import threading

from weir import _errors, _media, _options


class Video(_options.NoCopy):
    """A video that is open: len(), indexing, times, iteration.

    source: a path, a URL, the file's bytes (any object with a buffer, which is not copied), or a file object opened as binary.
    size: the shortest side of the pictures, or (height, width); by default they are as they were coded. layout: "nhwc" or
    "nchw". pixel: "rgb24", "gray8", "rgb48", … threads: for one long file. strict: damage fails, instead of being counted.

    isolated: for files that nobody vouches for. A child process in a sandbox does the work, with at most max_memory bytes. If a file
    crashes it, that call fails with a weir.Error, and the next one starts another child.

    video[5] is one picture (height, width, 3). video[2:10:2] and video[[1, 5, 9]] are Frames (n, height, width, 3), which
    numpy.asarray() and torch.from_dlpack() take without a copy. Threads may share a Video: one works at a time.
    """

    def __init__(self, source, *, name=None, threads=0, stream=0, strict=False, seed=0, max_frames=None,
                 ca_file=None, allow_pipes=False, allow_insecure=False, isolated=False, max_memory=None, **picture):
        options = _options.video(stream=stream, strict=strict, seed=seed, max_frames=max_frames, threads=threads,
                                 ca_file=ca_file, allow_pipes=allow_pipes, allow_insecure=allow_insecure,
                                 isolated=isolated, max_memory=max_memory, **picture)
        options["video"]["chunk_frames"] = 1  # of iteration
        self._reader = _media.Reader(source, name, options)
        self._info = self._reader.info()
        self._times = None
        self._turn = 0  # counts requests: an iteration that was interrupted begins anew
        self._lock = threading.RLock()  # of requests with what they set before and read afterwards

    # ---- facts

    def _exact(self):
        with self._lock:
            if not self._info["exact"]:
                self._turn += 1
                self._reader.scan()
                self._info = self._reader.info()
            return self._info

    def __len__(self):
        """The number of frames, counted."""
        return self._exact()["num_frames"]

    @property
    def duration(self):
        """Seconds from the first frame to the end of the last one, counted."""
        return self._exact()["duration_ns"] / _options.NS

    @property
    def fps(self):
        """Frames per second on average, as the header says, or as counted if it says nothing. Times are exact, this is not."""
        rate = self._info["average_rate"]
        if rate:
            return rate[0] / rate[1]
        duration = self.duration
        return len(self) / duration if duration else 0.0

    @property
    def codec(self):
        """FFmpeg's name of the codec: "h264"."""
        return self._info["codec"]

    @property
    def container(self):
        """FFmpeg's names of the format: "mov,mp4,m4a,3gp,3g2,mj2"."""
        return self._info["container"]

    @property
    def rotation(self):
        """Degrees by which a player turns the pictures clockwise: 0, 90, 180 or 270. Pictures here are turned already."""
        return self._info["rotation"]

    @property
    def size(self):
        """Height and width of the pictures as they are coded."""
        return self._info["size"]

    @property
    def info(self):
        """All that the header says, as a dict; after len() with exact numbers."""
        return dict(self._info)

    def _all_times(self):
        with self._lock:
            if self._times is None:
                self._turn += 1
                self._times = self._reader.times()
                self._info = self._reader.info()
            return self._times

    @property
    def times(self):
        """The time of each frame from the first one, in seconds."""
        return [time / _options.NS for time in self._all_times()[0]]

    @property
    def keyframes(self):
        """The numbers of the frames that are marked as keyframes."""
        return list(self._all_times()[1])

    # ---- frames

    def _request(self, sampling, picture=None):
        with self._lock:
            self._turn += 1
            return self._reader.frames(sampling, picture)

    def _numbered(self, numbers):
        return self._request({"indices": numbers}) if numbers else self._request({"indices": [0]})._none()

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            numbers = range(start, stop, step)
            if numbers and step == 1:
                return self._request({"what": "all", "start_frame": start, "end_frame": stop})
            return self._numbered(numbers)
        try:
            number = operator.index(key)
        except TypeError:
            return self._numbered([_as_number(number) for number in _options.as_list(key, "what chooses frames")])
        return self._request({"indices": [_as_number(number)]})[0]

    def at(self, times, *, tolerance=None, match=None, outside=None, origin=None):
        """The frames that are shown at these times, in seconds from the first frame; of one number, one frame.

        tolerance: the nearest frame, and an error if it is further away. match: "shown" (default), "nearest" or "exact".
        outside: of the video, "near" (default: up to one frame's duration), "clamp" or "fail". origin: "first" or "stream".
        """
        times = times.tolist() if hasattr(times, "tolist") else times
        is_one = not hasattr(times, "__iter__")
        wanted = [times] if is_one else _options.as_list(times, "times")
        if not wanted:
            return self._numbered([])
        wanted = [_as_time(time, outside) for time in wanted]
        frames = self._request(_options.at(wanted, tolerance=tolerance, match=match, outside=outside, origin=origin))
        return frames[0] if is_one else frames

    def between(self, start, stop, *, fps=None, origin=None):
        """The frames with start <= time < stop, in seconds; with fps, so many for each second, repeated or skipped as needed."""
        sampling = {"what": "all", **_options.window(start, stop, origin)}
        if fps is not None:
            sampling.update(what="rate", **_options.rate(fps))
        return self._request(sampling)

    def spread(self, count):
        """count frames, evenly over the video: the middles of equal intervals."""
        return self._request({"what": "uniform", "count": _options.whole(count, "count", 1)})

    def clips(self, count, *, frames, stride=1, start="random", short="last", epoch=0, number=0):
        """count clips of so many frames at a stride, as one array (count, frames, …). start: "random", "first", "center", "even".

        Random ones follow from the seed of the Video, the epoch and the number. short: what a clip is filled with if the video
        is too short: "last" or "loop" frame, or "fail".
        """
        with self._lock:
            self._reader.set_number(_options.whole(epoch, "epoch"), _options.whole(number, "number"))
            return self._request(_options.clips(count, frames=frames, stride=stride, start=start, short=short))

    def __iter__(self):
        """Each frame, one after the other, in constant memory. Other requests may come in between."""
        last, turn = None, None  # the time of the newest frame: frames that are lost to damage have numbers, too
        while True:
            with self._lock:
                if turn != self._turn:
                    number = 0
                    if last is not None:
                        times = self._all_times()[0]
                        number = bisect.bisect_right(times, last)
                        if number == len(times):
                            return
                    self._turn += 1
                    turn = self._turn
                    self._reader.begin({"what": "all", "start_frame": number})
                frames = self._reader.next()
            if frames is None:
                return
            last = frames.times_ns[0]
            yield frames[0]

    # ---- the end

    def close(self):
        """Closes the file. Frames stay valid."""
        self._reader.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        info = self._info
        height, width = info["size"]
        return f"<weir.Video {info['codec']} {width}x{height}>"


_MOST = 2**62  # what the C library can count with: frames, nanoseconds


def _as_number(value):
    """The number of a frame. One that C cannot hold is outside of each video; what is no number is refused later."""
    try:
        number = operator.index(value)
    except TypeError:
        return value
    if abs(number) > _MOST:
        raise _errors.make(None, "WEIR_ERANGE", "", "", f"no video has the frame {number}", "", 0)
    return value  # True and False too: the list is a mask then


def _as_time(value, outside):
    """A time in seconds, in the same way."""
    try:
        time = float(value)
    except (TypeError, ValueError):
        return value
    most = _MOST / _options.NS
    if abs(time) > most and outside != "clamp":
        raise _errors.make(None, "WEIR_ERANGE", "", "", f"no video has a frame at {time} s", "", 0)
    return min(max(time, -most), most) if abs(time) > most else value
