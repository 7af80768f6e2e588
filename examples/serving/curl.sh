#!/bin/sh
# Ask a server in all of its languages: sh curl.sh http://127.0.0.1:8080 digits digit.png
set -e
server=$1 model=$2 file=$3
curl -sf "$server/v2/health/ready"; echo
curl -sf "$server/v2/models/$model"; echo
curl -sf -T "$file" "$server/predictions/$model"; echo
curl -sf -F "data=@$file" "$server/predictions/$model" | head -c 60; echo
zeros=$(printf '0,%.0s' $(seq 63))0
curl -sf -H "Content-Type: application/json" "$server/v2/models/$model/infer" \
  -d "{\"inputs\": [{\"name\": \"data\", \"shape\": [1, 1, 8, 8], \"datatype\": \"FP32\", \"data\": [$zeros]}]}" | head -c 100; echo
curl -sf -H "Content-Type: text/csv" -H "Accept: text/csv" "$server/invocations" -d "$zeros"
curl -sf "$server/metrics" | grep "^remex_requests_total"
