"""The exceptions of weir. Each says what failed, where, and what to do."""

import errno


class Error(Exception):
    """A failure that weir reports.

    status: its name, such as "EDATA". stage: the stage of the pipeline, or "". file: the label of the item, usually a
    path, or "". code: the native code of the library behind it (FFmpeg, SQLite, the system), or 0. Of a failure of an
    item, number is its number in the order of the source, and epoch that of the source; else they are None.
    """

    status = ""
    stage = ""
    file = ""
    code = 0
    number = None
    epoch = None

    __str__ = Exception.__str__  # not as OSError, which leaves out the message if it has a file name


class Stopped(Error):
    """The call was stopped before it was done."""


class Invalid(Error, ValueError):
    """An argument that is not valid."""


class OutOfRange(Error, IndexError):
    """A frame or a time that the video does not have."""


class NotFound(Error, LookupError):
    """There is no such thing: no frame that matches, no such stream, class, stage or run. See also NoFile."""


class NoFile(NotFound, FileNotFoundError):
    """A file or folder that does not exist."""


class NoPermission(Error, PermissionError):
    """A file that may not be read or written."""


class InputOutput(Error, OSError):
    """Reading or writing failed."""


class TimedOut(Error, TimeoutError):
    """It took too long."""


class NoMemory(Error, MemoryError):
    """There is no memory."""


_CLASSES = {
    "WEIR_EINVAL": Invalid,
    "WEIR_ENOMEM": NoMemory,
    "WEIR_ESTOPPED": Stopped,
    "WEIR_ETIMEDOUT": TimedOut,
    "WEIR_ENOTFOUND": NotFound,
    "WEIR_EACCESS": NoPermission,
    "WEIR_EIO": InputOutput,
    "WEIR_ERANGE": OutOfRange,
}


_NO_FILE = (-errno.ENOENT, -errno.ENOTDIR, -0x3430_34F8)  # the last one is FFmpeg's for HTTP's 404


# What messages call by the names of C, in Python's words.
_WORDS = {
    "WEIR_ALLOW_PIPES": "allow_pipes=True",
    "WEIR_ALLOW_INSECURE": "allow_insecure=True",
    "WEIR_CLIP_RANDOM": 'start="random"',
    "WEIR_CLIP_EVEN": 'start="even"',
    "WEIR_CHECKPOINTS_OFF": '"off"',
}


def make(status, name, text, stage, message, label, code):
    """The exception of a weir_error."""
    for word, own in _WORDS.items():
        message = message.replace(word, own)
    parts = [part for part in (stage, label, message or text) if part]
    if label and message.startswith(label):
        parts.remove(label)
    kind = _CLASSES.get(name, Error)
    if kind is NotFound and code in _NO_FILE:
        kind = NoFile
    error = kind(": ".join(parts))
    error.status = name.removeprefix("WEIR_")
    error.stage = stage
    error.file = label
    error.code = code
    if isinstance(error, OSError):
        error.errno = -code if -code in errno.errorcode else None
        error.filename = label or None
    return error
