"""Clips decoded by weir as NumPy arrays, without a copy. It needs only Python's ctypes and NumPy 1.23.

    python3 weir_loader.py weir_loader.so DIR

From NumPy 2.1 on the arrays are writable; older versions make read-only arrays of the same memory.
"""

import ctypes
import sys

import numpy as np

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def load(path):
    weir = ctypes.CDLL(path)
    pointer, flag = ctypes.c_void_p, ctypes.c_bool
    weir.weir_loader_open.restype = pointer
    weir.weir_loader_open.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32]
    weir.weir_loader_next.argtypes = [pointer, ctypes.POINTER(pointer)]
    weir.weir_loader_view.restype = pointer
    numbers = ctypes.POINTER(ctypes.c_int32)
    weir.weir_loader_view.argtypes = [pointer, pointer, flag, flag, numbers]
    weir.weir_loader_device.argtypes = [pointer, flag, numbers, numbers]
    weir.weir_loader_end_clip.argtypes = [pointer]
    weir.weir_loader_error.restype = ctypes.c_char_p
    weir.weir_loader_error.argtypes = [pointer]
    weir.weir_loader_close.argtypes = [pointer]
    return weir


class View:
    """A part of a clip, for numpy.from_dlpack(), torch.from_dlpack() and others, any number of times.

    The arrays share the clip's memory, and keep it after the clip and the loader have ended.
    """

    def __init__(self, weir, loader, clip, of_times):
        self.weir, self.loader, self.clip, self.of_times = weir, loader, clip, of_times

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("weir makes no copies")
        is_versioned = max_version is not None and max_version[0] >= 1
        device = (ctypes.c_int32 * 2)(*dl_device) if dl_device else None
        tensor = self.weir.weir_loader_view(self.loader, self.clip, self.of_times, is_versioned, device)
        if not tensor:
            raise BufferError(self.weir.weir_loader_error(self.loader).decode())
        # the consumer of the capsule calls the tensor's deleter
        return new_capsule(tensor, b"dltensor_versioned" if is_versioned else b"dltensor", None)

    def __dlpack_device__(self):
        kind, number = ctypes.c_int32(), ctypes.c_int32()
        self.weir.weir_loader_device(self.clip, self.of_times, ctypes.byref(kind), ctypes.byref(number))
        return (kind.value, number.value)


def clips(library, folder, num_frames=8, size=64):
    """Yields, for each video below the folder, an array [num_frames, size, size, 3] of uint8 and one of the frames' times."""
    weir = load(library)
    loader = weir.weir_loader_open(folder.encode(), num_frames, size)
    clip = ctypes.c_void_p()
    try:
        # ctypes releases the interpreter's lock during the call: other Python threads can run.
        while (status := weir.weir_loader_next(loader, ctypes.byref(clip))) == 1:
            try:
                frames = np.from_dlpack(View(weir, loader, clip, False))
                times = np.from_dlpack(View(weir, loader, clip, True))
            finally:
                weir.weir_loader_end_clip(clip)
            yield frames, times
        if status < 0:
            raise RuntimeError(weir.weir_loader_error(loader).decode())
    finally:
        weir.weir_loader_close(loader)


if __name__ == "__main__":
    for frames, _ in clips(sys.argv[1], sys.argv[2]):
        print(frames.shape, frames.dtype, f"mean {frames.mean():.1f}", "" if frames.flags.writeable else "(read-only)")
