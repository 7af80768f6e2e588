"""Results of `run.py`: JSON of all measurements, and the Markdown pages made of it."""
import datetime
import functools
import json
import math
import os
import pathlib
import platform
import statistics

from harness import common, published_results, tasks, worker_processes

TITLES = {"quantizing": "seconds for quantizing and calibrating with 32 images, in a fresh process (network built and loaded before)",
          "compile": "seconds to the first result in a fresh process (network built and loaded before)",
          "memory": "peak memory of a fresh process, MiB"}

PLAIN = tasks.PLAIN.name


@functools.lru_cache
def machine(mxnet_python):
    """Return the machine, the versions and the date of a measurement."""
    def field(path, key):
        with open(path) as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "")
    peers = (tasks.REMEX, tasks.MXNET, tasks.PLAIN, tasks.TORCH, tasks.RUNTIME, tasks.OPENVINO, tasks.NNCF)
    linux = os.path.exists("/proc/meminfo")
    return {"processor": common.processor(), "cores": os.cpu_count(), "threads": common.threads(),
            "memory": field("/proc/meminfo", "MemTotal") if linux else "", "system": platform.platform(), "python": platform.python_version(),
            "versions": {p.name: worker_processes.version(p, mxnet_python) or "not installed" for p in peers},
            "commit": common.commit(), "date": str(datetime.date.today())}


def load(folder, task):
    """Return a task's results so far."""
    path = os.path.join(folder, task + ".json")
    if not os.path.exists(path):
        return {"task": task, "rows": {}}
    with open(path) as file:
        return json.load(file)


def save(folder, task, stored):
    """Write a task's results; a run that is killed meanwhile leaves the old file."""
    path = os.path.join(folder, task + ".json")
    with open(path + ".new", "w") as file:
        json.dump(stored, file, indent=1)
    os.replace(path + ".new", path)


def medians(result):
    """Return the median of each peer."""
    return {name: statistics.median(values) for name, values in result["values"].items() if values}


def ratio(result):
    """Return (the baseline's median over Remex's, the baseline); above 1 Remex is faster. (nan, '') where one of the two is missing."""
    values = medians(result)
    remex = "Remex Module" if result["task"] == "module" else "Remex"
    baselines = tasks.BASELINES.get(result["task"])
    others = {name: v for name, v in values.items() if name != remex and (baselines is None or name in baselines)}
    if remex not in values or not others:
        return math.nan, ""
    best = min(others, key=others.get)
    return others[best] / values[remex], best


def one_line(result):
    """Return a row as text for the terminal."""
    times = ", ".join(f"{name} {_shown(result, value)}" for name, value in sorted(medians(result).items(), key=lambda item: item[1]))
    failed = "".join(f"; {name}: {why}" for name, why in result["failures"].items())
    speedup, baseline = ratio(result)
    return f"{speedup:.2f} x against {baseline or 'no baseline'} | {times}{failed}"


def _shown(result, value):
    if result["task"] == "memory":
        return f"{value / 2 ** 20:.0f}"
    return f"{value:.2f}" if result["task"] in tasks.COLD else f"{value * 1e3:.4g}"


def mean(results):
    """Return the geometric mean of the rows' ratios, and the number of rows that have one."""
    ratios = [r for r, _ in map(ratio, results) if not math.isnan(r)]
    return (statistics.geometric_mean(ratios) if ratios else math.nan), len(ratios)


def write(folder, task):
    """Write the Markdown page of a task, with its plot if `plots.py` has drawn one."""
    stored = load(folder, task)
    results = list(stored["rows"].values())
    if not results:
        return
    with open(os.path.join(folder, task + ".md"), "w") as file:
        file.write(table(task, results, plot=os.path.exists(os.path.join(folder, task + ".png"))))


def _notes(folder):
    """Return the relative path from a folder to docs/performance.md of its checkout, or of this one where the folder is in none."""
    folder = pathlib.Path(folder).resolve()
    notes = (parent / "docs" / "performance.md" for parent in (*folder.parents, pathlib.Path(common.ROOT)))
    return os.path.relpath(next(path for path in notes if path.exists()), folder)


def summarize(folder):
    """Write one table of all tasks, with the goals and the results so far."""
    lines = ["# Goals and results", "",
             "Geometric means of the speed-up: the baseline's time (or memory) over Remex's, higher is better. "
             "Written by `python benchmarks/run.py`.", "",
             _line(["task", "baseline", "goal", "result", "rows", "below the goal's limit for a row", "lowest"]), _line(["---"] * 7)]
    for task, (goal, number) in tasks.GOALS.items():
        results = list(load(folder, task)["rows"].values())
        if not results:
            continue
        average, count = mean(results)
        ratios = sorted((r, tasks.label(result)) for result in results for r, _ in [ratio(result)] if not math.isnan(r))
        limit = tasks.LIMITS.get(task)
        below = "" if limit is None else f"{sum(r < limit for r, _ in ratios)} under {limit}"
        lines.append(_line([f"[{task}]({task}.md)", goal.split(":")[0], f"{number:.2f}", f"{average:.3f}" if ratios else "-",
                            f"{count} of {len(tasks.rows([task]))}", below, f"{ratios[0][0]:.3f} ({ratios[0][1]})" if ratios else "-"]))
    lines += ["", f"[docs/performance.md]({_notes(folder)}) explains where the time goes in rows that miss their goal."]
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def speedups(folder):
    """Write the speed-ups over MXNet 1.5.1 without MKL-DNN, and those that MXNet published of 1.5 with MKL-DNN."""
    results = load(folder, "int8")["rows"]
    lines = ["# Speed-up over MXNet 1.5.1 without MKL-DNN", "",
             "Its time over Remex's, in float32 / INT8; in parentheses those of MXNet 1.5 with MKL-DNN, published for a Xeon of 48 cores with VNNI. "
             "From [int8](int8.md) and [rnn](rnn.md).", "", _line(["batch", *published_results.SPEEDUPS]),
             _line(["---"] * (len(published_results.SPEEDUPS) + 1))]
    count = 0
    for number, batch in enumerate(published_results.SPEEDUP_BATCHES):
        cells = [batch]
        for network, theirs in published_results.SPEEDUPS.items():
            values = medians(results.get(f"{network}, batch {batch}", {"values": {}}))
            speedups = [values[PLAIN] / values[name] for name in ("Remex float32", "Remex") if {PLAIN, name} <= set(values)]
            count += len(speedups)
            cells.append(" / ".join(f"{x:.2f}" for x in speedups or [math.nan]) + " ({:.2f} / {:.2f})".format(*theirs[number]))
        lines.append(_line(cells))
    if not count:
        return
    lines += ["", "Geometric means over a network's batches:", "",
              _line(["network", "float32", "published", "INT8", "published"]), _line(["---"] * 5)]
    for network, theirs in published_results.SPEEDUPS.items():
        means = []
        for column, name in enumerate(("Remex float32", "Remex")):
            both = [(values[PLAIN] / values[name], theirs[number][column]) for number, batch in enumerate(published_results.SPEEDUP_BATCHES)
                    for values in [medians(results.get(f"{network}, batch {batch}", {"values": {}}))] if {PLAIN, name} <= set(values)]
            means += [f"{statistics.geometric_mean(values):.2f}" for values in zip(*both, strict=True)] if both else ["-", "-"]
        lines.append(_line([network, *means]))
    results = load(folder, "rnn")["rows"]
    lines += ["", "LSTM layers over 50 steps, float32:", "", _line(["units", "batch", "layers", "Remex", "published"]), _line(["---"] * 5)]
    for (units, batch, layers), theirs in published_results.RECURRENT_SPEEDUPS.items():
        values = medians(results.get(f"lstm{layers}x{units} scoring, batch {batch}", {"values": {}}))
        lines.append(_line([units, batch, layers, f"{values[PLAIN] / values['Remex']:.2f}" if {PLAIN, "Remex"} <= set(values) else "-", theirs]))
    with open(os.path.join(folder, "speedups.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def _title(task, results):
    clocks = {result.get("clock", "wall") for result in results}
    return TITLES.get(task, "milliseconds per call") + (" (processor time of all threads)" if "cpu" in clocks else "")


def table(task, results, plot=False):
    """Return the Markdown page: goal, rows, means, peers without a result, machine and versions."""
    order = {tasks.label(row): i for i, row in enumerate(tasks.rows([task]))}
    results = sorted(results, key=lambda result: order.get(tasks.label(result), len(order)))
    columns = list(dict.fromkeys(peer.name for result in results for peer in tasks.peers(result)))
    figures = list(dict.fromkeys(name for result in results for name in published_results.figures(result)))
    goal, number = tasks.GOALS[task]
    average, count = mean(results)
    ratios = [(r, tasks.label(result)) for result in results for r, _ in [ratio(result)] if not math.isnan(r)]
    lines = [f"# {task}: {_title(task, results)}", "",
             f"Goal, against {goal}.", "", *([f"![speed-up of each row]({task}.png)", ""] if plot else []),
             f"**{average:.3f}** in the geometric mean of {count} rows (goal {number:.2f}){_worst(ratios)}. "
             "Speed-up: the baseline's median over Remex's, higher is better.", "", *_below(task, ratios),
             _line(["row", *columns, "speed-up", "baseline", "Remex, images/s" if figures else "", *(f"MXNet published, {f}" for f in figures)]),
             _line(["---"] * (len(columns) + 4 + len(figures)))]
    for result in results:
        values, (speedup, baseline) = medians(result), ratio(result)
        rate = f"{result['batch'] / values['Remex']:.1f}" if figures and "Remex" in values else ""
        lines.append(_line([tasks.label(result), *(_cell(result, name, values) for name in columns), f"{speedup:.3f}", baseline, rate,
                            *(published_results.figures(result).get(f, "") for f in figures)]))
    lines += ["", "Geometric means of each library's medians over Remex's, over the rows that both have:", ""]
    for name in columns:
        both = [medians(r)[name] / medians(r)["Remex"] for r in results if {"Remex", name} <= set(medians(r))]
        if both and name != "Remex":
            lines.append(f"- {name}: {statistics.geometric_mean(both):.3f} ({len(both)} rows)")
    missing = sorted({f"{name}: {why}" for result in results for name, why in result["failures"].items()})
    lines += ["", *(["Not measured:", "", *(f"- {text}" for text in missing), ""] if missing else []),
              "`-`: not measured. `~`: stopped early, because it was much slower than the best.", ""]
    busiest = max((result.get("others") or 0 for result in results), default=0)
    lines += [f"Load of other programs when a row began: at most {busiest:.0%}.", ""]
    for where in {json.dumps(result["machine"], sort_keys=True): result["machine"] for result in results}.values():
        versions = ", ".join(f"{name} {v}" for name, v in where["versions"].items())
        lines.append(f"{where['processor']}, {where['cores']} cores{_threads(where)}, {where['memory']}; Python {where['python']}; {versions}; "
                     f"commit {where['commit']}; {where['date']}.\n")
    return "\n".join(lines).rstrip() + "\n"


def _threads(where):
    return f", {where['threads']} threads for each peer" if "threads" in where else ""


def _worst(ratios):
    return f"; lowest {min(ratios)[0]:.3f} ({min(ratios)[1]})" if ratios else ""


def _below(task, ratios):
    limit = tasks.LIMITS.get(task, -math.inf)
    texts = [f"{label} ({r:.3f})" for r, label in sorted(ratios) if r < limit]
    return [f"Under {limit}: {'; '.join(texts)}.", ""] if texts else []


def _cell(result, name, values):
    if name not in values:
        return "-"
    early = len(result["values"][name]) < max(map(len, result["values"].values()))
    return _shown(result, values[name]) + ("~" if early else "")


def _line(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
