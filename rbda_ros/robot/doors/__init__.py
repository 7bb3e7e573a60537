"""Operations as functions of other libraries: CasADi, PyTorch and JAX.

Lives here: `casadi_functions`, with `loop_closure`, the spanning position as a CasADi function of
the independent one; `tensor_functions`, for PyTorch and JAX, with `torch_calls` and `jax_calls`,
the only modules that import these; `operation_program`, the operation as one CasADi function of
flat vectors; `batch_functions`, an operation and its derivatives over batches of numpy arrays, and
`argument_layout`, the arguments of these as users give them.
Comes in: everything that `robot` may import, and the records of `robot/operations.py`, from which
all of it is made: a new operation needs nothing here.
Used from outside: the methods `casadi`, `torch` and `jax` of `Robot`.
"""
