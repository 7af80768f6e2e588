"""Writes no_axes.json: what MXNet 1.9.1 does with the arrays of `no_axes.py`; what it refuses, or what ends its process, is left out.

Run it with the Python of the oracle, from this folder: ``/opt/oracle/bin/python record_no_axes.py``. Left out, too, is what differs on purpose.
"""
import json
import os
import pathlib
import re
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from no_axes import cases, outcome  # noqa: E402

warnings.simplefilter("ignore")
# NumPy's value, or error, is ours: products and means of nothing (MXNet: 0), extrema of nothing (whatever memory holds), axes that are not there,
# bits of floats, True against 2.5 (MXNet converts it to True), and arguments that are no sizes, axes or results.
DIFFERENT = re.compile(r"np\.(mean|prod|amax|amin|max|min|invert): (empty|no rows)|np\.(cumsum|flip): empty: f\(x, (axis=)?1\)|"
                       r"np\.(equal|less): truth: f\(x, 2.5\)|np\.nan_to_num: integer: f\(x, vector\)|np\.resize|np\.tensordot: scalar|"
                       r"np\.unique: .*axis|np\.vstack: .*: f\(vector, x\)|np\.empty")
GROUP = 40


def run(group):
    """What comes of cases in a process of its own, as far as that gets."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as out:
            for number, (_, settings, case) in group:
                try:
                    line = [number, outcome(settings, case)]
                except Exception:
                    line = [number]
                print(json.dumps(line), file=out, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        found = [json.loads(line) for line in lines if line.endswith("\n")]
    os.waitpid(child, 0)
    return {line[0]: line[1:] for line in found}


todo, results, recorded = list(enumerate(cases())), [], {}
while todo:
    group = todo[:GROUP]
    found = run(group)
    done = len(found) if len(found) == len(group) else len(found) + 1  # the one that ended the process is passed over
    for number, (name, _, _) in group[:done]:
        if found.get(number) and not DIFFERENT.match(name):
            if found[number][0] not in results:
                results.append(found[number][0])
            recorded[name] = results.index(found[number][0])
    todo = todo[done:]
text = '{"results": [\n' + ",\n".join(map(json.dumps, results)) + '],\n"cases": {\n' + ",\n".join(f"{json.dumps(k)}: {v}" for k,
    v in recorded.items())
(pathlib.Path(__file__).parent / "no_axes.json").write_text(text + "}}\n")
print(len(results), len(recorded))
