"""Writes numpy_inputs.json: what MXNet 1.9.1 makes of each array of `numpy_inputs.py` at each place that takes one.

Run it with the Python of the oracle, from this folder: ``/opt/oracle/bin/python record_numpy_inputs.py``. A case that is refused is left out.
"""
import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from numpy_inputs import CONSUMERS, SOURCES, described  # noqa: E402

warnings.simplefilter("ignore")
results, cases = [], {}
for consumer, take in CONSUMERS.items():
    cases[consumer] = {}
    for source, make in SOURCES.items():
        try:
            result = described(take(make()))
        except Exception:
            continue
        if result not in results:
            results.append(result)
        cases[consumer][source] = results.index(result)
lines = {"results": results, "cases": cases}
text = ",\n".join(f'"{name}": [\n' + ",\n".join(map(json.dumps, part)) + "]" if isinstance(part, list) else
                  f'"{name}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in part.items()) + "}" for name, part in lines.items())
(pathlib.Path(__file__).parent / "numpy_inputs.json").write_text("{" + text + "}\n")
print(len(results), sum(map(len, cases.values())))
