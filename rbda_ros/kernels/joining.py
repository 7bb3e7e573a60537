"""A program and another one that checks its inputs, as one: what both compute is computed once.

The numbers of the program stay what they are, to the last bit, whether it is checked or not. Where
its products may be fused with sums (`writer.py`), reading one of them elsewhere too would undo
that; so there both share sines and cosines only.
"""

from __future__ import annotations

from dataclasses import replace

from rbda_ros.kernels.program import Instruction, Program, is_smooth


def join(program: Program, check: Program) -> Program:
    """The program, and behind it the instructions and the output of a check of its first input.

    Args:
        program: any; the check reads the first of its inputs.
        check: of one input, with one output.
    """
    (given,), (output,) = check.inputs, check.outputs
    assert given.size == program.inputs[0].size
    constants = dict.fromkeys(value.hex() for value in (*program.constants, *check.constants))
    place = {value: program.first_constant + i for i, value in enumerate(constants)}
    first = program.first_constant + len(constants)
    shift = first - program.first_result
    instructions = [
        Instruction(operation, tuple(v + shift if v >= program.first_result else v for v in given))
        for operation, given in program.instructions
    ]
    known = {each: first + i for i, each in enumerate(instructions)}
    shared = ("sin", "cos") if is_smooth(program) else None
    number = [*range(given.size), *(place[value.hex()] for value in check.constants)]
    equal = list(number)  # the same value where it is one of the program, shared or not
    for operation, arguments in check.instructions:
        same = known.get(Instruction(operation, tuple(equal[v] for v in arguments)))
        own = Instruction(operation, tuple(number[v] for v in arguments))
        if same is not None and (shared is None or operation in shared):
            number.append(same)
        else:
            instructions.append(own)
            number.append(first + len(instructions) - 1)
        equal.append(number[-1] if same is None else same)
    results = [
        tuple(v + shift if v >= program.first_result else v for v in values)
        for values in program.results
    ]
    return replace(
        program,
        outputs=(*program.outputs, output),
        constants=tuple(float.fromhex(value) for value in constants),
        instructions=tuple(instructions),
        results=(*results, tuple(number[v] for v in check.results[0])),
        answered=len(program.instructions),
    )
