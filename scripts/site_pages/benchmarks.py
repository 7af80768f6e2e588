"""Pictures of the benchmarks, drawn from the result files when the site is built."""
import io
import json
import math
import statistics

FOLDERS = {"": "Xeon, or the machine that the table names", "zen4": "EPYC (Zen 4)", "zen4-avx2": "EPYC (Zen 4) limited to AVX2",
           "zen5": "EPYC (Zen 5)"}
INTRODUCTION = """Each bar is the geometric mean of a library's time (or memory) over Remex's, over all rows that both have: above 1, Remex is
faster. The pictures are drawn from the files in `benchmarks/results` when the site is built; each title leads to the table.

[The goals, and what was measured](README.md).
"""
LONGEST = 12  # bars of a picture


def pages(root):
    """Return the page of pictures, and the pictures, by path."""
    collected, lines = {}, ["# Benchmarks in pictures\n", INTRODUCTION]
    for folder, machine in FOLDERS.items():
        place = root / "benchmarks" / "results" / folder
        results = {path.stem: ratios(json.loads(path.read_text())) for path in sorted(place.glob("*.json"))}
        drawn = {task: means for task, means in results.items() if means and (place / f"{task}.md").exists()}
        if drawn:
            lines.append(f"## {machine}\n")
        for task, means in drawn.items():
            base = f"{folder}/{task}" if folder else task
            picture = f"pictures-{base.replace('/', '-')}.svg"
            collected[f"benchmarks/results/{picture}"] = draw(means)
            figures = ", ".join(f"{peer} {mean:.2f}" for peer, (mean, _) in means.items())
            lines.append(f"### [{task}]({base}.md)\n\n![{task}: {figures}]({picture})\n")
    tables = sorted(str(path.relative_to(root / "benchmarks" / "results"))[:-3] for path in (root / "benchmarks" / "results").rglob("*.md"))
    lines += ["```{toctree}\n:hidden:\n:maxdepth: 1\n", *(name for name in tables if name != "README"), "```\n"]
    collected["benchmarks/results/pictures.md"] = "\n".join(lines).encode()
    return collected


def ratios(stored):
    """Return (geometric mean of its medians over Remex's, number of rows) of each library; {} for files without rows of medians."""
    rows = stored.get("rows")
    if not isinstance(rows, dict):
        return {}
    collected = {}
    for row in rows.values():
        medians = {peer: statistics.median(values) for peer, values in row.get("values", {}).items() if values}
        own = medians.get("Remex")
        for peer, value in medians.items():
            if own and peer != "Remex" and math.isfinite(value) and value > 0:
                collected.setdefault(peer, []).append(value / own)
    means = {peer: (statistics.geometric_mean(values), len(values)) for peer, values in collected.items()}
    return dict(sorted(means.items(), key=lambda item: item[1])[:LONGEST])


def draw(means):
    """Return the picture of `ratios` as SVG."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    with pyplot.rc_context({"svg.hashsalt": "remex", "svg.fonttype": "none"}):  # the same file each time
        figure, axis = pyplot.subplots(figsize=(7, 0.6 + 0.3 * len(means)))
        values = [mean for mean, _ in means.values()]
        bars = axis.barh([f"{peer} ({count} rows)" for peer, (_, count) in means.items()], values,
                         color=["tab:blue" if value >= 1 else "tab:orange" for value in values])
        axis.bar_label(bars, [f"{value:.2f}" for value in values], padding=3)
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_xlim(0, 1.12 * max(values))
        axis.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        text = io.BytesIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return text.getvalue()
