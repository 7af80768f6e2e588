"""Runs the processes of a campaign, goes on behind those that die or hang, and writes the report. Imports nothing of what is tested."""
import base64
import datetime
import hashlib
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

from .progress import Progress

CASES = pathlib.Path(__file__).parent / "cases"
_ROOT = pathlib.Path(__file__).parents[2]
_AT_ONCE = 40_000  # cases that one process tries
_STUCK = 120  # seconds after which a process is killed whose case does not end


def keep(name, case):
    """Write a case to where the tests find it."""
    path = CASES / f"{name}--{hashlib.sha256(case).hexdigest()[:12]}"
    path.write_bytes(case)
    return path


def shared_memory():
    """A folder that is in memory where there is one: a disk's file system takes milliseconds for a file."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class _Child:
    """A process, and what it leaves."""

    def __init__(self, folder, seed, seconds, cases, options):
        self.seed, self.folder = seed, pathlib.Path(folder)
        self.progress = Progress(self.folder / "progress")
        self.seen = (0, time.monotonic())  # cases begun, and since when
        self.stuck = False
        command = [sys.executable, "-m", "tests.fuzz", f"--child={self.folder}", f"--seed={seed}", f"--minutes={seconds / 60}",
                   f"--cases={cases}", *options]
        environment = {**os.environ, "OPENCV_LOG_LEVEL": "OFF", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        self.process = subprocess.Popen(command, stdout=open(self.folder / "out", "wb"), stderr=open(self.folder / "errors", "wb"), cwd=_ROOT,
                                        env=environment, start_new_session=True)

    def ended(self):
        """Whether it has; one that is stuck is killed."""
        if self.process.poll() is not None:
            return True
        begun, now = self.progress.begun, time.monotonic()
        if begun != self.seen[0]:
            self.seen = begun, now
        elif now - self.seen[1] > _STUCK + 120 * (begun == 0):
            self.stuck = True
            self.process.kill()
        return False

    def _sanitizers(self):
        """What AddressSanitizer or UndefinedBehaviorSanitizer says at the end of the process, where it has one."""
        lines = (self.folder / "errors").read_text(errors="replace").splitlines()
        at = next((i for i, line in enumerate(lines) if "ERROR: AddressSanitizer" in line or ": runtime error: " in line), len(lines))
        return "\n".join(["", *lines[at:at + 12]]) if lines[at:] else ""

    def failures(self):
        """(target, case, text) of what failed in it."""
        found = [json.loads(line) for line in (self.folder / "out").read_text().splitlines() if line.startswith("{")]
        failures = [(f["target"], base64.b64decode(f["case"]), f["text"]) for f in found]
        code = self.process.returncode
        if code:
            name, case = self.progress.current() or ("the process", b"")
            if code > 0:
                text = f"ended with status {code}\n{(self.folder / 'errors').read_text(errors='replace')[-2000:]}"
            else:
                text = f"stuck for over {_STUCK} s" if self.stuck else f"killed by {signal.Signals(-code).name}"
                text += f"\n{(self.folder / 'crash').read_text()[:4000]}{self._sanitizers()}"
            failures.append((name, case, text))
        return failures


def supervise(minutes, cases, seed, jobs, only, kept):
    """Run processes until the minutes or the cases are used up; print a report. The number of failures."""
    begin = time.monotonic()
    end, left = begin + 60 * minutes, cases
    total, peak, died, failures, seen, running, first = {}, 0, 0, [], set(), [], seed
    options = [f"--only={o}" for o in only]
    try:
        with tempfile.TemporaryDirectory(dir=shared_memory(), prefix="fuzz-") as folder:
            while running or ((left is None or left > 0) and end - time.monotonic() > 1):
                while len(running) < jobs and (left is None or left > 0) and end - time.monotonic() > 1:
                    count = min(_AT_ONCE, left or _AT_ONCE)
                    own = pathlib.Path(folder) / str(seed)
                    own.mkdir()
                    running.append(_Child(own, seed, end - time.monotonic(), count, options))
                    running[-1].count = count
                    seed += 1
                    left = None if left is None else left - count
                time.sleep(0.1)
                for child in [c for c in running if c.ended()]:
                    running.remove(child)
                    done = 0
                    for name, row in child.progress.table().items():
                        before = total.get(name, (0, 0, 0, 0, 0))
                        total[name] = (*(a + b for a, b in zip(before[:4], row[:4])), max(before[4], row[4]))
                        done += row[0]
                    peak = max(peak, child.progress.memory)
                    if left is not None:
                        left += max(0, child.count - done) if done else 0
                    code = child.process.returncode
                    died += bool(code)
                    for name, case, text in child.failures():
                        place = (name, *[line for line in text.splitlines() if "File " in line][-1:], text.strip().splitlines()[-1].split(":")[0])
                        if place in seen:
                            continue
                        seen.add(place)
                        failures.append(place)
                        print(f"{name} (seed {child.seed}): {text}\n{case[:300]!r}", flush=True)
                        if case and (kept or code < 0):
                            print("kept:", keep(name, case), flush=True)
                    if code and not done:  # it does not even start
                        end = 0
                    print(f"seed {child.seed}: {done} cases, {sum(r[0] for r in total.values())} in all", file=sys.stderr, flush=True)
                    _remove(child.folder)
    finally:
        for child in running:
            child.process.kill()
            child.process.wait()
    command = "python -m tests.fuzz " + " ".join(sys.argv[1:])
    print(report(command, range(first, seed), jobs, time.monotonic() - begin, total, peak, len(failures), died))
    return len(failures)


def _remove(folder):
    for root, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(root, name))
        for name in folders:
            os.rmdir(os.path.join(root, name))
    os.rmdir(folder)


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor():
    try:
        names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()


def circumstances(command, seconds):
    """The lines of a report that say what was run, where and when."""
    from importlib import metadata
    versions = [f"Python {platform.python_version()}"]
    for name, package in (("torch", "torch"), ("NumPy", "numpy"), ("OpenCV", "opencv-python-headless")):
        try:
            versions.append(f"{name} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    commit = _git("rev-parse", "--short", "HEAD") + (" with changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    return [f"- Command: `{command}`", f"- Commit: {commit}, {datetime.date.today()}",
            f"- With: {', '.join(versions)}; {platform.system()}, {_processor()}, {os.cpu_count()} cores", f"- Took: {seconds:,.0f} s"]


def report(command, seeds, jobs, seconds, total, peak, failures, died):
    """A campaign as lines of Markdown."""
    count = sum(row[0] for row in total.values())
    lines = [*circumstances(command, seconds),
             f"- Seeds: {seeds.start} to {seeds.stop - 1}, one for each process; {jobs} at a time",
             f"- Cases: {count:,}, {count / seconds:,.0f} a second",
             f"- Failures: {failures or 'none'} (processes that died or hung: {died or 'none'}); peak of memory: {peak >> 10} MiB", "",
             "| target | cases | refused | failed | ms per case | longest, ms |", "|---|--:|--:|--:|--:|--:|"]
    for name, (cases, refused, failed, spent, longest) in sorted(total.items()):
        if cases:
            lines.append(f"| {name} | {cases:,} | {100 * refused / cases:.0f} % | {failed} | {1e3 * spent / cases:.2f} | {1e3 * longest:.0f} |")
    return "\n".join(lines)
