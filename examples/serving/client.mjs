// Classify an image file, and send a tensor as JSON: node client.mjs http://127.0.0.1:8080 digits digit.png (Node 18 or later, or a browser's fetch)
import { readFile } from "node:fs/promises";

const [server, model, file] = process.argv.slice(2);

const image = await fetch(`${server}/predictions/${model}`, { method: "POST", body: await readFile(file) });
if (!image.ok) throw new Error(`${image.status}: ${(await image.json()).message}`);
console.log(await image.json());

const data = new Array(64).fill(0);
const tensor = await fetch(`${server}/v2/models/${model}/infer`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ inputs: [{ name: "data", shape: [1, 1, 8, 8], datatype: "FP32", data }] }),
});
if (!tensor.ok) throw new Error(`${tensor.status}: ${(await tensor.json()).error}`);
console.log((await tensor.json()).outputs[0].data);
