"""Draw the speed-ups of a task's rows as bars, from the task's result file.

    python benchmarks/plots.py scoring training training-bf16          # writes benchmarks/results/TASK.png, which TASK.md shows

Each bar has its value and the library that Remex is compared with. The dashed line is the goal for the geometric mean. Needs matplotlib.
"""
import argparse
import math
import os

from harness import common, report, tasks


def bars(results):
    """Return (row, speed-up, baseline) of each row that has a result."""
    return [(tasks.label(result), *report.ratio(result)) for result in results if not math.isnan(report.ratio(result)[0])]


def draw(path, task, results):
    """Draw the bars of a task into a PNG file."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    rows, goal = bars(results), tasks.GOALS[task][1]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.2 * len(rows)))
    container = axes.barh([label for label, _, _ in rows], [speedup for _, speedup, _ in rows],
                          color=["tab:blue" if speedup >= 1 else "tab:orange" for _, speedup, _ in rows])
    axes.bar_label(container, [f"{speedup:.2f} over {baseline}" for _, speedup, baseline in rows], fontsize=6, padding=2)
    axes.axvline(goal, color="gray", linewidth=1, linestyle="--", zorder=0)
    axes.invert_yaxis()
    axes.margins(x=0.25, y=0.01)
    axes.set_xlabel(f"{task}: speed-up over the baseline at each bar, higher is better (line: goal for the mean, {goal:g})")
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", choices=list(tasks.GOALS), metavar="TASK", help=f"of {', '.join(tasks.GOALS)}")
    parser.add_argument("--results", default=common.RESULTS, help="the folder of the result files, and for the plots")
    args = parser.parse_args()
    for task in args.tasks:
        results = list(report.load(args.results, task)["rows"].values())
        if not results:
            parser.error(f"{os.path.join(args.results, task)}.json has no rows; run benchmarks/run.py --tasks {task} first")
        order = {tasks.label(row): i for i, row in enumerate(tasks.rows([task]))}
        results.sort(key=lambda result: order.get(tasks.label(result), len(order)))
        draw(os.path.join(args.results, task + ".png"), task, results)
        report.write(args.results, task)


if __name__ == "__main__":
    main()
