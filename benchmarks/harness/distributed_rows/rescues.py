"""The row of `distributed.py` about killed workers: ``python benchmarks/distributed.py --rows killed --kills 100``."""
import os
import re
import subprocess
import sys

from harness import common
from harness.distributed_rows.registry import row


@row("workers of 4 killed at random moments, `Progress(rescue=True)`", "an undisturbed run", "equal weights, the next step within 30 s; 1,000 kills")
def killed(args):
    # The file keeps the jobs of a call at this commit that was interrupted: 1,000 kills take most of an hour.
    jobs = os.path.join(args.folder, f"rescues-{common.commit()}.jsonl")
    command = [sys.executable, "-m", "tests.rescues", "--kills", str(args.kills), "--results", jobs]
    os.makedirs(args.folder, exist_ok=True)
    done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src")})
    text = done.stdout.strip()
    counts = re.search(r"^(\d+) kills of .*\n(\d+) of \d+ pauses", text, re.MULTILINE)
    if counts is None:
        raise SystemExit(f"tests.rescues failed:\n{(text + done.stderr)[-2000:]}")
    os.remove(jobs)
    kills, late = map(int, counts.groups())
    return "; ".join(line.strip() for line in text.splitlines()), done.returncode == 0 and late == 0 and kills >= 1000
