"""Machine code as a faulty memory would leave it."""

import ctypes


def damage(kernel):
    """Have the machine code of a kernel answer half as much again."""
    signature = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))
    right = signature(kernel.address)
    sizes = kernel.native.sizes

    @signature
    def wrong(ports):
        right(ports)
        for i in range(len(kernel.input_sizes), len(sizes)):
            for k in range(sizes[i]):
                ports[i][k] *= 1.5

    kernel.native.use(ctypes.cast(wrong, ctypes.c_void_p).value, wrong)
