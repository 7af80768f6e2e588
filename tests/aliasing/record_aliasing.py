"""Writes aliasing_oracle.json: which arrays share memory in MXNet 1.9.1, for each operator, call and program of the files beside this one.

Run it with the Python of the oracle, from this folder: ``/opt/oracle/bin/python record_aliasing.py`` (half an hour). MXNet runs in a process of
its own, which is started again after a crash.
"""
import collections
import ctypes
import json
import os
import pathlib
import select
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SECONDS = 60  # for one question


def questions():
    """All questions in order, as lists of texts; the number of a sample, too."""
    import aliasing_calls
    import aliasing_cases
    import aliasing_data  # noqa: F401  registers its programs
    import aliasing_programs  # noqa: F401
    for name, number, _ in aliasing_cases.samples():
        for front in aliasing_cases.FRONTS:
            yield "operator", front, name, number
    for name in aliasing_cases.PROGRAMS:
        yield "program", name
    for namespace in aliasing_calls.NAMESPACES:
        for name in aliasing_calls.names(namespace):
            for pattern in aliasing_calls.patterns(namespace):
                if aliasing_calls.fits(namespace, pattern, name):
                    yield "call", namespace, pattern, name


def invoker():
    """How MXNet 1.9.1 calls any operator by its name."""
    from mxnet._ctypes.ndarray import _imperative_invoke

    from mxnet.base import _LIB, OpHandle, c_str, check_call

    def invoke(name, arrays, attributes, out, numpy):
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        outputs = _imperative_invoke(handle.value, arrays, list(attributes), list(attributes.values()), out, numpy, False)
        return outputs if isinstance(outputs, list) else [outputs]
    return invoke


def answer(question, invoke, samples):
    import aliasing_calls
    import aliasing_cases
    kind, *rest = question
    if kind == "operator":
        front, name, number = rest
        return aliasing_cases.ask(invoke, front, name, samples[name, number])
    if kind == "program":
        return aliasing_cases.run(*rest)
    namespace, pattern, name = rest
    return aliasing_calls.call(namespace, aliasing_calls.expression(namespace, pattern, name))


def work(first):
    """Answer the questions from number `first` on: a line before each question, and one with the answer behind."""
    import logging
    import warnings

    import aliasing_cases
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # MXNet prints to standard output, too
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    invoke, samples = invoker(), {(name, number): sample for name, number, sample in aliasing_cases.samples()}
    for i, question in enumerate(questions()):
        if i >= first:
            print(json.dumps({"question": question, "number": i}), file=out, flush=True)
            try:
                found = answer(question, invoke, samples)
                if found and found != answer(question, invoke, samples):
                    found = []  # what only sometimes changes was still being computed
            except Exception:
                found = None
            print(json.dumps({"answer": found}), file=out, flush=True)


def lines(process):
    """The lines of a process, until it ends or says nothing for a minute."""
    content = b""
    while select.select([process.stdout], [], [], SECONDS)[0]:
        part = os.read(process.stdout.fileno(), 1 << 16)
        if not part:
            return
        content += part
        *complete, content = content.split(b"\n")
        yield from complete
    process.kill()


def main():
    first, answers, last = 0, [], None
    while True:
        process = subprocess.Popen([sys.executable, __file__, str(first)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=HERE,
                                   env={**os.environ, "OMP_NUM_THREADS": "1"})
        for line in lines(process):
            message = json.loads(line)
            if "question" in message:
                last = message
            else:
                answers.append((last["question"], message["answer"]))
        if not process.wait():
            break
        print(f"MXNet crashes or hangs: {last['question']}", flush=True)
        first = last["number"] + 1
    write(answers)


def write(answers):
    """Write the file: what MXNet refuses, or crashes on, is left out of calls and programs, and listed for operators."""
    import aliasing_calls
    refused, calls = collections.defaultdict(list), collections.defaultdict(lambda: collections.defaultdict(list))
    result = {"operators": {}, "refused": refused, "programs": {}, "calls": calls, "sharing": {}}
    for (kind, *rest), found in answers:
        if kind == "operator":
            front, name, number = rest
            if found is None:
                refused[front].append(f"{name}-{number}")
            elif found:
                result["operators"][f"{front}: {name}-{number}"] = found
        elif kind == "program" and found is not None:
            result["programs"][rest[0]] = found
        elif kind == "call" and found is not None:
            namespace, pattern, name = rest
            calls[namespace][pattern].append(name)
            if found:
                result["sharing"].setdefault(" ".join(found), []).append(f"{namespace}: {aliasing_calls.expression(namespace, pattern, name)}")
    for table in (refused, *calls.values()):
        for key, names in table.items():
            table[key] = " ".join(names)
    (HERE / "aliasing_oracle.json").write_text(json.dumps(result, indent=0))
    print(f"{len(answers)} questions")


if __name__ == "__main__":
    work(int(sys.argv[1])) if len(sys.argv) > 1 else main()
