// The page: what the visitor asks, and what Python, in a worker, answers. Texts stay texts.
const EXAMPLES = [
  "Gaussian(3) is (1, 1e-5)-DP",
  "Gaussian(4) is (1, 1e-5)-DP",
  "Laplace(2) is 0.4-DP",
  "Gaussian(2) is 1/8-zCDP",
  "PoissonSubsampled(Gaussian(1), 0.01) is (1, 1e-5)-DP under add/remove",
];
const CHECK_SECONDS = 60;
const LARGEST_FILE = 16e6;
const at = (id) => document.getElementById(id);
const show = (id, shown) => { at(id).hidden = !shown; };

let worker, timer, loaded, asked;

function load() {
  clearTimeout(timer);
  worker?.terminate();
  loaded = "";
  // From a blob, the worker has the content security policy of this page.
  const program = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
  const source = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
  worker = new Worker(source, { type: "module" });
  worker.onmessage = ({ data }) => heard(data);
  worker.onerror = (error) => heard({ failed: error.message || "The worker did not start." });
}

function tell(text, busy = false) {
  at("step").textContent = text;
  show("progress", busy);
  show("stop", busy && asked);
}

function heard(data) {
  if (data.bytes && !loaded) at("bar").value = (100 * data.bytes) / document.body.dataset.bytes;
  if (data.failed) tell(`dpassay could not be loaded: ${data.failed}`);
  if (data.ready) {
    loaded = data.ready;
    document.body.dataset.ready = loaded;
    if (!asked && loaded === "all") tell("Ready.");
  }
  if (data.step) tell(data.step, true);
  if (data.started) {
    at("bar").removeAttribute("value");
    tell(data.started === "check" ? "Checking …" : "Deciding …", true);
    if (data.started === "check") {
      timer = setTimeout(() => stop(`Not checked within ${CHECK_SECONDS} seconds: nothing was found VALID.`), 1000 * CHECK_SECONDS);
    }
  }
  if (data.answer) answered(data);
}

function ask(question) {
  if (asked) load(); // what was asked before is given up
  asked = question;
  for (const id of ["answer", "consent", "page"]) show(id, false);
  at("checks").replaceChildren();
  show("stop", true);
  worker.postMessage(question);
}

function stop(text) {
  answered({ error: text, broken: true });
}

function answered(data) {
  clearTimeout(timer);
  const question = asked;
  asked = null;
  if (data.broken) load();
  if (data.missing && !question.fetch?.includes(data.missing)) return permit(question, data.missing);
  if (data.missing) data.error = `${data.missing} could not be fetched.`;
  tell(data.verdict ? `${data.verdict}: ${question.words}` : data.error ? "No answer." : "Done.");
  if (data.error) note("error", "", data.error);
  for (const { outcome, report } of data.checks || []) note(outcome, outcome, report.slice(outcome.length));
  show("answer", true);
  show("checked", Boolean(data.checks?.length));
  show("share", question.words !== undefined);
  if (question.words) at("link").href = fragment(question.words);
  if (data.page) {
    show("page", true);
    at("page").srcdoc = data.page;
  }
  at("answer").focus();
}

function note(kind, title, text) {
  const box = document.createElement("div");
  box.className = `check ${kind}`;
  const strong = document.createElement("strong");
  strong.textContent = title;
  const body = document.createElement("pre");
  body.textContent = text.trim();
  box.append(strong, body);
  at("checks").append(box);
}

function permit(question, library) {
  tell(`This question needs ${library}, which is not a part of this page.`);
  at("question").textContent = `May your browser fetch ${library} (several megabytes) from ` +
    "cdn.jsdelivr.net, where Pyodide keeps its packages? That host learns your IP address, but not your claim.";
  show("consent", true);
  at("agree").onclick = () => ask({ ...question, fetch: [...(question.fetch || []), library] });
  at("agree").focus();
}

const fragment = (words) => `#${new URLSearchParams({ claim: words })}`;

function decide(words) {
  at("words").value = words;
  ask({ kind: "verify", words });
}

function fromFragment() {
  const words = new URLSearchParams(location.hash.slice(1)).get("claim");
  if (words) decide(words.slice(0, at("words").maxLength));
}

async function check(file) {
  if (file.size > LARGEST_FILE) return tell("A file of certificates has at most 16 MB.");
  ask({ kind: "check", content: new Uint8Array(await file.arrayBuffer()) });
}

at("claim").onsubmit = (event) => {
  event.preventDefault();
  const words = at("words").value.trim();
  history.pushState(null, "", fragment(words));
  decide(words);
};
at("stop").onclick = () => stop("Stopped.");
at("file").onchange = ({ target }) => {
  if (target.files.length) check(target.files[0]);
  target.value = ""; // so that the same file can be chosen again
};
addEventListener("dragover", (event) => { event.preventDefault(); at("drop").classList.add("over"); });
addEventListener("dragleave", () => at("drop").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  at("drop").classList.remove("over");
  if (event.dataTransfer.files.length) check(event.dataTransfer.files[0]);
});
at("page").onload = ({ target }) => { // as high as what it shows
  const fit = () => { target.style.height = `${target.contentDocument.documentElement.scrollHeight}px`; };
  new ResizeObserver(fit).observe(target.contentDocument.body);
};
addEventListener("hashchange", fromFragment);
for (const words of EXAMPLES) {
  const link = document.createElement("a");
  link.href = fragment(words);
  link.textContent = words;
  const item = document.createElement("li");
  item.append(link);
  at("examples").append(item);
}
load();
fromFragment();
