"""What people write as options, as the fields of weir's structs have it."""

NS = 1_000_000_000


def ns(seconds):
    """Seconds as whole nanoseconds."""
    return round(float(seconds) * NS)


def picture(size=None, resize=None, pixel=None, layout=None, scaler=None, filter=None, autorotate=True, **sides):
    """The picture: size is the shortest side, or (height, width). width, height, longest and shortest are there, too."""
    fields = dict(sides)
    unknown = set(fields) - {"width", "height", "longest", "shortest"}
    if unknown:
        raise TypeError(f"unknown option: {sorted(unknown)[0]!r}")
    if size is not None:
        if fields:
            raise ValueError("give either size, or width, height, longest or shortest")
        if isinstance(size, int):
            fields["shortest"] = size
        else:
            fields["height"], fields["width"] = size
    fields.update(resize=resize, pixel=pixel, layout=layout, scaler=scaler, filter=filter, no_autorotate=not autorotate)
    return {name: value for name, value in fields.items() if value is not None}


def rate(frames_per_second):
    """A rate as a fraction: 30, 29.97, or fractions.Fraction(30000, 1001)."""
    from fractions import Fraction

    fraction = Fraction(frames_per_second)
    if fraction.denominator > 2**31:
        fraction = fraction.limit_denominator(1_000_000)
    if fraction <= 0:
        raise ValueError(f"a rate is above 0, not {frames_per_second!r}")
    return {"rate_num": fraction.numerator, "rate_den": fraction.denominator}
