"""From an algorithm to machine code: trace, program, plan, emit, compile, call.

Lives here: the registry of what can be traced, the cache of a robot's kernels, the emitters for
one state, for batches and for C.
Comes in: `algorithms`.
Used from outside: `cache.KernelCache`, `registry.KERNELS`, `kernel.Kernel`, and of exports
`export.function_source`.
"""
