"""A backend for tests of who runs a graph."""


class Counting:
    """It says how often it compiled, multiplies its results by `scale`, and is to take `seconds` where `native` takes one."""

    name, specializes, trains, freezes, devices = "test_counting", True, False, True, ("cpu",)

    def __init__(self, scale=1.0, seconds=0.0):
        self.scale, self.seconds, self.compiled, self.fails, self.function = scale, seconds, 0, False, None

    def compile(self, program):
        self.compiled += 1
        if self.fails:
            raise ValueError("out of luck")
        weights = {i: program.inputs[i].clone() for i in program.weights}

        def run(*inputs):
            return tuple(self.scale * r for r in program.module.forward(*[weights.get(i, t) for i, t in enumerate(inputs)]))
        self.function = run
        return run
