# Programs that ask the real MXNet for the expected values of tests; they run where that is installed, not here.
collect_ignore_glob = ["**/record_*.py", "ops/record_*.py", "ops/nn/record_*.py"]
