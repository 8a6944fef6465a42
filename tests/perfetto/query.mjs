// Perfetto's trace processor on a trace: query.mjs DIRECTORY TRACE SQL..., with the files of SHA256SUMS in the
// directory. Prints JSON: for each statement its rows, each a list of strings, numbers and nulls.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, trace, ...statements] = process.argv.slice(2);
const wasm = readFileSync(join(directory, "trace_processor.wasm"));

// The engine is a browser's worker: it asks for its WebAssembly by XMLHttpRequest, and is given a port.
const worker = { location: { href: pathToFileURL(resolve(directory)).href } };
class XMLHttpRequest {
  open() {}
  send() {
    this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length);
  }
}
const quiet = { ...console, log: () => {}, warn: () => {} };
const place = { self: worker, location: worker.location, XMLHttpRequest, WorkerGlobalScope: Object, process: undefined, console: quiet };
new Function(...Object.keys(place), readFileSync(join(directory, "engine_bundle.node.js"), "utf8"))(...Object.values(place));

const { EngineBase } = await import(pathToFileURL(resolve(directory, "engine.mjs")).href);
const port = { postMessage: (data) => engine.onRpcResponseBytes(data) };
class Engine extends EngineBase {
  id = "query";
  mode = "WASM";
  rpcSendRequestBytes(data) {
    port.onmessage({ data });
  }
}
const engine = new Engine();
worker.onmessage({ data: port });
console.warn = () => {}; // of results' fields that are newer than what decodes them
await engine.parse(readFileSync(trace));
await engine.notifyEof();
const results = [];
for (const statement of statements) {
  const result = await engine.query(statement);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(result.columns().map((column) => (typeof row.get(column) === "bigint" ? Number(row.get(column)) : row.get(column))));
  }
  results.push(rows);
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
