"""The row of `distributed.py` about killed workers: ``python benchmarks/distributed.py --rows killed --kills 100``."""
import os
import re
import subprocess
import sys

from harness import common
from harness.distributed_rows.registry import row


@row("workers of 4 killed at random moments, `Progress(rescue=True)`", "an undisturbed run", "equal weights, the next step within 30 s; 1,000 kills")
def killed(args):
    done = subprocess.run([sys.executable, "-m", "tests.rescues", "--kills", str(args.kills)], cwd=common.ROOT, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src")})
    text = done.stdout.strip()
    late = re.search(r"^(\d+) of \d+ pauses", text, re.MULTILINE)
    if late is None:
        raise SystemExit(f"tests.rescues failed:\n{(text + done.stderr)[-2000:]}")
    return "; ".join(line.strip() for line in text.splitlines()), done.returncode == 0 and int(late[1]) == 0 and args.kills >= 1000
