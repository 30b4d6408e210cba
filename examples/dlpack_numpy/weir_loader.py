"""Clips decoded by weir as NumPy arrays, without a copy. It needs only Python's ctypes and NumPy 1.23.

    python3 weir_loader.py weir_loader.so DIR
"""

import ctypes
import sys

import numpy as np


class Tensor:
    """A DLPack tensor on the CPU, for numpy.from_dlpack(); also for torch.from_dlpack() and others."""

    _new = ctypes.pythonapi.PyCapsule_New
    _new.restype = ctypes.py_object
    _new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    def __init__(self, pointer):
        self.pointer = pointer

    def __dlpack__(self, stream=None, **_):
        if not self.pointer:
            raise BufferError("the tensor has been taken already")
        pointer, self.pointer = self.pointer, None
        return self._new(pointer, b"dltensor", None)  # the consumer of the capsule calls the tensor's deleter

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU


def clips(library, folder, num_frames=8, size=64):
    """Yields an array [num_frames, size, size, 3] of uint8 for each video below the folder."""
    weir = ctypes.CDLL(library)
    weir.weir_loader_open.restype = ctypes.c_void_p
    weir.weir_loader_open.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32]
    weir.weir_loader_next.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    weir.weir_loader_error.restype = ctypes.c_char_p
    weir.weir_loader_error.argtypes = [ctypes.c_void_p]
    weir.weir_loader_close.argtypes = [ctypes.c_void_p]

    loader = weir.weir_loader_open(folder.encode(), num_frames, size)
    tensor = ctypes.c_void_p()
    try:
        # ctypes releases the interpreter's lock during the call: other Python threads can run.
        while (status := weir.weir_loader_next(loader, ctypes.byref(tensor))) == 1:
            yield np.from_dlpack(Tensor(tensor.value))
        if status < 0:
            raise RuntimeError(weir.weir_loader_error(loader).decode())
    finally:
        weir.weir_loader_close(loader)


if __name__ == "__main__":
    for array in clips(sys.argv[1], sys.argv[2]):
        print(array.shape, array.dtype, f"mean {array.mean():.1f}")
