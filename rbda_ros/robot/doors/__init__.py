"""Operations as functions of other libraries: CasADi.

Lives here: `casadi_functions`, which adapts an operation to CasADi; `operation_program`, the
operation as one CasADi function of flat vectors; `loop_closure`, the spanning position as a CasADi
function of the independent one.
Comes in: everything that `robot` may import, and the records of `robot/operations.py`, from which
all of it is made: a new operation needs nothing here.
Used from outside: the method `casadi` of `Robot`.
"""
