"""Machine code as a faulty memory would leave it."""


def damage(kernel):
    """Have the machine code of a kernel answer half as much again."""
    machine = kernel._machine.value
    outputs = len(kernel.program.outputs)

    def call(*inputs):
        return tuple(1.5 * output for output in machine.call(*inputs))

    def into(*arrays):
        machine.into(*arrays)
        for output in arrays[-outputs:]:
            output *= 1.5

    kernel.__dict__.pop("call", None)
    kernel._machine.value = machine._replace(call=call, into=into)
