"""What the benchmark keeps and shows: JSON of all turns, a Markdown table and a picture per task."""
import datetime
import functools
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess

import peers
import processes
import published
import rows

TITLES = {"quantizing": "seconds for quantizing and calibrating with 32 images, in a fresh process (network built and loaded before)",
          "compile": "seconds to the first result in a fresh process (network built and loaded before)",
          "memory": "MiB at the high-water mark of a fresh process"}

PLAIN = rows.PLAIN.name


@functools.lru_cache
def machine(mxnet_python):
    """Where and with what a row was measured."""
    def first(path, key):
        with open(path) as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "")
    commit = subprocess.run(["git", "-C", rows.HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    measured = (rows.REMEX, rows.MXNET, rows.PLAIN, rows.TORCH, rows.RUNTIME, rows.OPENVINO, rows.NNCF)
    linux = os.path.exists("/proc/meminfo")
    return {"processor": peers.processor(), "cores": os.cpu_count(), "threads": peers.threads(),
            "memory": first("/proc/meminfo", "MemTotal") if linux else "", "system": platform.platform(), "python": platform.python_version(),
            "versions": {p.name: processes.version(p, mxnet_python) or "not installed" for p in measured},
            "commit": commit or "unknown", "date": str(datetime.date.today())}


def load(folder, task):
    """A task's results so far."""
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
    return {name: statistics.median(values) for name, values in result["values"].items() if values}


def ratio(result):
    """(The rival's value over Remex's, the rival): above 1 Remex is ahead. (nan, '') where one of the two is missing."""
    values = medians(result)
    own = "Remex Module" if result["task"] == "module" else "Remex"
    named = rows.RIVALS.get(result["task"])
    others = {name: v for name, v in values.items() if name != own and (named is None or name in named)}
    if own not in values or not others:
        return math.nan, ""
    best = min(others, key=others.get)
    return others[best] / values[own], best


def one_line(result):
    """A row for people who watch."""
    times = ", ".join(f"{name} {_shown(result, value)}" for name, value in sorted(medians(result).items(), key=lambda item: item[1]))
    failed = "".join(f"; {name}: {why}" for name, why in result["failures"].items())
    against, best = ratio(result)
    return f"{against:.2f} x against {best or 'nobody'} | {times}{failed}"


def _shown(result, value):
    if result["task"] == "memory":
        return f"{value / 2 ** 20:.0f}"
    return f"{value:.2f}" if result["task"] in rows.COLD else f"{value * 1e3:.4g}"


def mean(results):
    """Geometric mean of the rows' ratios, and how many rows have one."""
    ratios = [r for r, _ in map(ratio, results) if not math.isnan(r)]
    return (statistics.geometric_mean(ratios) if ratios else math.nan), len(ratios)


def write(folder, task, picture=False):
    """The Markdown table of a task, and its picture."""
    stored = load(folder, task)
    results = list(stored["rows"].values())
    if not results:
        return
    with open(os.path.join(folder, task + ".md"), "w") as file:
        file.write(table(task, results))
    if picture:
        draw(os.path.join(folder, task + ".png"), task, results)


def _notes(folder):
    """The path from a folder to docs/performance.md of the checkout that it lies in, which may be another than this one; else of this one."""
    folder = pathlib.Path(folder).resolve()
    notes = (parent / "docs" / "performance.md" for parent in (*folder.parents, pathlib.Path(rows.HERE).parent))
    return os.path.relpath(next(path for path in notes if path.exists()), folder)


def summarize(folder):
    """One table of all tasks: the goals, and what was measured of them so far."""
    lines = ["# The goals, and what was measured", "",
             "Geometric means of the rival's time (or memory) over Remex's; above 1 Remex is ahead. Written by `python benchmarks/run.py`.", "",
             _line(["task", "against", "goal", "measured", "rows", "below the goal's limit for a row", "lowest"]), _line(["---"] * 7)]
    for task, (goal, number) in rows.GOALS.items():
        results = list(load(folder, task)["rows"].values())
        if not results:
            continue
        average, count = mean(results)
        ratios = sorted((r, rows.label(result)) for result in results for r, _ in [ratio(result)] if not math.isnan(r))
        limit = rows.LIMITS.get(task)
        below = "" if limit is None else f"{sum(r < limit for r, _ in ratios)} under {limit}"
        lines.append(_line([f"[{task}]({task}.md)", goal.split(":")[0], f"{number:.2f}", f"{average:.3f}" if ratios else "-",
                            f"{count} of {len(rows.rows([task]))}", below, f"{ratios[0][0]:.3f} ({ratios[0][1]})" if ratios else "-"]))
    lines += ["", f"[docs/performance.md]({_notes(folder)}) says where the time goes in rows that miss their goal, and what was tried."]
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def speedups(folder):
    """How many times as fast as MXNet 1.5.1 without MKL-DNN, beside what MXNet published of its 1.5 with it."""
    results = load(folder, "int8")["rows"]
    lines = ["# Times as fast as MXNet 1.5.1 without MKL-DNN", "",
             "Its time over Remex's, in float32 and in INT8 (MXNet 1.5's own, with MKL-DNN, as published for a Xeon of 48 cores with VNNI). Made of "
             "[int8](int8.md) and [rnn](rnn.md).", "", _line(["batch", *published.SPEEDUPS]), _line(["---"] * (len(published.SPEEDUPS) + 1))]
    found = 0
    for number, batch in enumerate(published.SPEEDUP_BATCHES):
        cells = [batch]
        for network, theirs in published.SPEEDUPS.items():
            values = medians(results.get(f"{network}, batch {batch}", {"values": {}}))
            ours = [values[PLAIN] / values[name] for name in ("Remex float32", "Remex") if {PLAIN, name} <= set(values)]
            found += len(ours)
            cells.append(" / ".join(f"{x:.2f}" for x in ours or [math.nan]) + " ({:.2f} / {:.2f})".format(*theirs[number]))
        lines.append(_line(cells))
    if not found:
        return
    lines += ["", "Geometric means of a network's batches, and of what was published for them:", "",
              _line(["network", "float32", "published", "INT8", "published"]), _line(["---"] * 5)]
    for network, theirs in published.SPEEDUPS.items():
        means = []
        for which, name in enumerate(("Remex float32", "Remex")):
            both = [(values[PLAIN] / values[name], theirs[number][which]) for number, batch in enumerate(published.SPEEDUP_BATCHES)
                    for values in [medians(results.get(f"{network}, batch {batch}", {"values": {}}))] if {PLAIN, name} <= set(values)]
            means += [f"{statistics.geometric_mean(column):.2f}" for column in zip(*both, strict=True)] if both else ["-", "-"]
        lines.append(_line([network, *means]))
    results = load(folder, "rnn")["rows"]
    lines += ["", "Layers of LSTM over 50 steps, float32:", "", _line(["units", "batch", "layers", "Remex", "published"]), _line(["---"] * 5)]
    for (units, batch, layers), theirs in published.RECURRENT_SPEEDUPS.items():
        values = medians(results.get(f"lstm{layers}x{units} scoring, batch {batch}", {"values": {}}))
        lines.append(_line([units, batch, layers, f"{values[PLAIN] / values['Remex']:.2f}" if {PLAIN, "Remex"} <= set(values) else "-", theirs]))
    with open(os.path.join(folder, "speedups.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def _title(task, results):
    clocks = {result.get("clock", "wall") for result in results}
    return TITLES.get(task, "milliseconds per call") + (" (processor's time, of all threads)" if "cpu" in clocks else "")


def table(task, results):
    """The Markdown text: goal, rows, means, who is missing and why, machine and versions."""
    order = {rows.label(row): i for i, row in enumerate(rows.rows([task]))}
    results = sorted(results, key=lambda result: order.get(rows.label(result), len(order)))
    columns = list(dict.fromkeys(peer.name for result in results for peer in rows.peers(result)))
    figures = list(dict.fromkeys(name for result in results for name in published.figures(result)))
    goal, number = rows.GOALS[task]
    average, count = mean(results)
    ratios = [(r, rows.label(result)) for result in results for r, _ in [ratio(result)] if not math.isnan(r)]
    lines = [f"# {task}: {_title(task, results)}", "",
             f"Goal, against {goal}.", "",
             f"**{average:.3f}** in the geometric mean of {count} rows (goal {number:.2f}){_worst(ratios)}. "
             "Ratio: the rival's median over Remex's; above 1 Remex is ahead.", "", *_below(task, ratios),
             _line(["row", *columns, "ratio", "against", "Remex, images/s" if figures else "", *(f"MXNet published, {f}" for f in figures)]),
             _line(["---"] * (len(columns) + 4 + len(figures)))]
    for result in results:
        values, (against, best) = medians(result), ratio(result)
        rate = f"{result['batch'] / values['Remex']:.1f}" if figures and "Remex" in values else ""
        lines.append(_line([rows.label(result), *(_cell(result, name, values) for name in columns), f"{against:.3f}", best, rate,
                            *(published.figures(result).get(f, "") for f in figures)]))
    lines += ["", "Where peers stand, as geometric means of their medians over Remex's (the rows that both have):", ""]
    for name in columns:
        both = [medians(r)[name] / medians(r)["Remex"] for r in results if {"Remex", name} <= set(medians(r))]
        if both and name != "Remex":
            lines.append(f"- {name}: {statistics.geometric_mean(both):.3f} ({len(both)} rows)")
    missing = sorted({f"{name}: {why}" for result in results for name, why in result["failures"].items()})
    lines += ["", *(["Not measured:", "", *(f"- {text}" for text in missing), ""] if missing else []),
              "`-`: not measured. `~`: ended early, because it was far behind the best.", ""]
    busiest = max((result.get("others") or 0 for result in results), default=0)
    lines += [f"What others used of the machine when a row began: at most {busiest:.0%}.", ""]
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
    limit = rows.LIMITS.get(task, -math.inf)
    found = [f"{label} ({r:.3f})" for r, label in sorted(ratios) if r < limit]
    return [f"Under {limit}: {'; '.join(found)}.", ""] if found else []


def _cell(result, name, values):
    if name not in values:
        return "-"
    early = len(result["values"][name]) < max(map(len, result["values"].values()))
    return _shown(result, values[name]) + ("~" if early else "")


def _line(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def draw(path, task, results):
    """Bars of each row's ratio, with the goal as a line."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    ratios = [(rows.label(result), ratio(result)[0]) for result in results][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.22 * len(ratios)))
    axes.barh([name for name, _ in ratios], [0 if math.isnan(r) else r for _, r in ratios],
              color=["tab:green" if r >= rows.GOALS[task][1] else "tab:orange" for _, r in ratios])
    axes.axvline(rows.GOALS[task][1], color="black", linewidth=1)
    axes.set_xlabel(f"{task}: the rival's time over Remex's (the line is the goal)")
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
