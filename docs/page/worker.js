// Python, away from the page, which stays alive: Pyodide, then the kernel, then all of dpassay.
import { loadPyodide, version } from "./pyodide.js";

const base = new URL(".", import.meta.url);
const index = `https://cdn.jsdelivr.net/pyodide/v${version}/full/`; // for what the visitor allows
let bytes = 0;
const plainFetch = self.fetch.bind(self);
self.fetch = async (...request) => {
  const response = await plainFetch(...request);
  count(response.clone()).catch(() => {}); // whoever reads it is told what went wrong
  return response;
};

async function count(response) { // what arrives, for the page to show
  const reader = response.body.getReader();
  for (let part; !(part = await reader.read()).done;) {
    bytes += part.value.length;
    postMessage({ bytes });
  }
}

const archives = ["kernel.zip", "dpassay.zip"].map((name) => [name, fetch(new URL(name, base))]);

async function unpack(python, [name, request]) {
  const response = await request;
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  python.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/lib/dpassay" });
}

async function start() {
  postMessage({ step: "Loading Python …" });
  const python = await loadPyodide({ indexURL: base.href, packageBaseUrl: index });
  python.runPython("import sys; sys.path.append('/lib/dpassay')");
  postMessage({ step: "Loading the kernel …" });
  await unpack(python, archives[0]);
  python.runPython("import ask, dpassay_check.releases");
  postMessage({ ready: "kernel" });
  return python;
}

async function finish(python) {
  postMessage({ step: "Certificates can be checked. Loading the rest …" });
  await unpack(python, archives[1]);
  python.runPython("import dpassay.figures.pages.verdict, dpassay.verifier.prover");
  postMessage({ ready: "all" });
  python.pyimport("ask").verify("Gaussian(3) is (1, 1e-5)-DP"); // loads what a first answer needs
}

const kernel = start();
const everything = kernel.then(finish);
everything.catch((error) => postMessage({ failed: String(error.message || error) }));

onmessage = async ({ data }) => {
  try {
    const python = await kernel;
    if (data.kind !== "check") await everything;
    if (data.fetch) await python.loadPackage(data.fetch); // asked for by the visitor
    postMessage({ started: data.kind });
    const ask = python.pyimport("ask");
    const given = data.kind === "check" ? python.toPy(data.content).tobytes() : data.words;
    postMessage({ answer: data.kind, ...JSON.parse(ask[data.kind](given)) });
  } catch (error) { // such as a stack that overflowed, after which Python is not to be trusted
    const last = String(error.message || error).trim().split("\n").pop();
    postMessage({ answer: data.kind, broken: true, error: `There is no answer, and Python starts again: ${last}` });
  }
};
