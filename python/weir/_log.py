"""Lines of weir's log, as lines of the logger "weir". weir._core takes them from a queue when Python calls it."""

import logging

_logger = logging.getLogger("weir")


def emit(level, line, lost):
    """One line. File names may contain anything: what is not printable is escaped, so that no line is forged."""
    if not line.isprintable():
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    _logger.log(level, "%s", line)
    if lost:
        _logger.warning("%d lines of the log were lost: too many came at once", lost)
