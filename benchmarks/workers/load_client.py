"""Clients that send one request after the other, each on a connection of its own; prints throughput and latencies as JSON.

    python load_client.py PORT PATH CLIENTS SECONDS HEADER_LENGTH TYPE BODY_FILE
"""
import asyncio
import json
import sys
import time


async def client(port, request, until, latencies):
    """Send requests until the time is up, and note how long each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (start := time.perf_counter()) < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server answers {head!r}")
        length = next(int(line.partition(b":")[2]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        latencies.append(time.perf_counter() - start)
    writer.close()


async def main(port, path, clients, seconds, header_length, kind, body):
    """Run all clients, and print the result."""
    head = (f"POST {path} HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: {header_length}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    request, latencies = head.encode() + body, []
    await asyncio.gather(*(client(port, request, time.perf_counter() + min(1, seconds / 4), []) for _ in range(clients)))
    start = time.perf_counter()
    await asyncio.gather(*(client(port, request, start + seconds, latencies) for _ in range(clients)))
    taken = time.perf_counter() - start
    latencies.sort()
    print(json.dumps({"rate": len(latencies) / taken, "p50": latencies[len(latencies) // 2], "p99": latencies[int(len(latencies) * 0.99)]}))


if __name__ == "__main__":
    port, path, clients, seconds, header_length, kind, file = sys.argv[1:]
    with open(file, "rb") as content:
        asyncio.run(main(int(port), path, int(clients), float(seconds), int(header_length), kind, content.read()))
