"""Stages of weir for weir.Pipeline, beside functions of Python."""

from weir import _media, _options

_SAMPLING = ("fps", "every", "indices", "times", "keyframes", "clips", "between", "stride", "start", "short", "tolerance",
             "match", "outside", "origin")


def decode(frames=None, **options):
    """A stage that decodes: of a path, a URL or the bytes of a file it makes Frames. All frames by default.

    frames: so many, spread evenly over the video. Other ways to choose are those of decode_many(): fps, every, indices, times,
    keyframes, clips, between. The other options are those of Video: size, layout, pixel, …

        weir.Pipeline().add_source(paths).pipe(weir.decode(16, size=224), concurrency=4)
    """
    sampling = {name: options.pop(name) for name in _SAMPLING if name in options}
    video = _options.video(**options)
    if frames is not None or sampling:
        video["sampling"] = _options.sampling(frames, **sampling)
    return _media.video_stage(video)


def collate(n, *, drop_last=False, dtype="uint8", layout="THWC", mean=None, std=None):
    """A stage that makes a Batch of n Frames: floats are (value / 255 - mean) / std, with dtype "float16", "bfloat16" or "float32".

    layout: "THWC", "TCHW" or "CTHW" of a clip, whose pictures must be "nhwc" for the first one and "nchw" for the others.
    """
    values = {"num_items": _options.whole(n, "n", 1), "drop_last": bool(drop_last), "dtype": dtype, "layout": layout,
              "mean": mean, "std": std}
    return _media.collate_stage({name: value for name, value in values.items() if value is not None})
