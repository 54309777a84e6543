// The worker of engine 2: Pyodide, the compiler, and the session's files in memory and in the browser's storage.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const FOLDER = "/session", PLACE = "/lib/python3.14/site-packages";
const CHANGES = new Set(["trust", "sizes", "remove", "compile", "open", "changes", "run", "project", "zoo"]); // calls after which the session differs
const DAY = 24 * 3600 * 1000; // sessions of closed pages are forgotten after it

let session = "", page = null, python = null, samples = [];
let tell = () => {}; // progress of the request at hand

const database = new Promise((resolve, reject) => {
  const asked = indexedDB.open("openneutron-studio", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore("sessions", { keyPath: "session" });
  asked.onsuccess = () => resolve(asked.result);
  asked.onerror = () => reject(asked.error);
});
database.catch(() => {}); // without storage a reload begins anew

async function stored(mode, act) {
  const store = (await database).transaction("sessions", mode).objectStore("sessions");
  return new Promise((resolve, reject) => {
    const asked = act(store);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

function filesUnder(folder) {
  return python.FS.readdir(folder).filter((name) => name !== "." && name !== "..").flatMap((name) => {
    const path = `${folder}/${name}`;
    return python.FS.isDir(python.FS.stat(path).mode) ? [[path, null], ...filesUnder(path)] : [[path, python.FS.readFile(path)]];
  });
}

async function keep() {
  try {
    const record = { session, when: Date.now(), state: page.state(), files: filesUnder(FOLDER) };
    await stored("readwrite", (store) => store.put(record));
  } catch (error) {
    console.info(`not kept for a reload: ${error}`);
  }
}

async function bringBack() {
  try {
    for (const old of await stored("readonly", (store) => store.getAllKeys())) {
      const found = await stored("readonly", (store) => store.get(old));
      if (old !== session && Date.now() - found.when > DAY) await stored("readwrite", (store) => store.delete(old));
    }
    const found = await stored("readonly", (store) => store.get(session));
    if (!found) return;
    for (const [path, data] of found.files) {
      if (data) python.FS.writeFile(path, data);
      else python.FS.mkdirTree(path);
    }
    page.restore(found.state);
  } catch (error) {
    console.info(`nothing kept from before: ${error}`);
  }
}

async function fetched(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function start() {
  tell("loading Python");
  const packages = ["numpy.zip", "openneutron.zip"].map((name) => fetched(`packages/${name}`));
  samples = JSON.parse(new TextDecoder().decode(await fetched("models/models.json")));
  python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href, stdout: () => {}, stderr: () => {} });
  tell("loading the compiler");
  for (const one of packages) python.unpackArchive(await one, "zip", { extractDir: PLACE });
  python.FS.mkdirTree(FOLDER);
  const { InPage } = python.pyimport("openneutron.studio.in_page");
  page = InPage(FOLDER, JSON.stringify(samples));
  await bringBack();
}

// A model that comes along, by name: fetched, then kept like a dropped one.
async function sample(name) {
  const known = samples.find((one) => one.name === name);
  if (!known) return JSON.stringify({ error: { text: `there is no model ${name}`, message: "", hint: "", bug: false } });
  return put(`${known.name}.tflite`, await fetched(`models/${known.file}`), "");
}

function put(name, data, model) {
  python.FS.writeFile("/upload", data);
  try {
    return page.upload(name, "/upload", model);
  } finally {
    python.FS.unlink("/upload");
  }
}

async function answer({ method, parameters, upload, data, model, download, variant }) {
  if (download) {
    const found = page.download(variant, download), bytes = found.toJs();
    found.destroy();
    return { result: bytes };
  }
  let text;
  if (upload) text = put(upload, new Uint8Array(data), model);
  else if (method === "zoo") text = await sample(JSON.parse(parameters).name);
  else text = page.call(method, parameters, (said) => tell(said));
  if (upload || CHANGES.has(method)) await keep();
  return JSON.parse(text);
}

let ready = null, last = Promise.resolve();
addEventListener("message", ({ data }) => {
  if (data.start) {
    session = data.start;
    ready = start();
    ready.catch(() => {});
    return;
  }
  // One after another: Python runs one thing at a time.
  last = last.then(async () => {
    tell = (progress) => postMessage({ number: data.number, progress });
    try {
      await ready;
      postMessage({ number: data.number, ...(await answer(data)) });
    } catch (error) {
      if (page === null) postMessage({ number: data.number, error: { text: `Python cannot be loaded: ${error.message}`, hint: "load the page again" } });
      else if (error.name === "PythonError") postMessage({ number: data.number, error: { text: error.message.trim().split("\n").pop(), hint: "", bug: true } });
      else postMessage({ number: data.number, dead: error.message || String(error) });
    }
  });
});
