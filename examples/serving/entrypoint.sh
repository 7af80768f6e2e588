#!/bin/sh
# exec: the server itself gets SIGTERM, answers what it has accepted, and ends with status 0.
if [ "$1" = serve ]; then
    set -- "model=${MODEL:-/opt/ml/model}"
fi
exec python -m mxnet.tools.serve --host "${HOST:-0.0.0.0}" --grace "${GRACE:-5}" "$@"
