// The page: models at the side, one of them on the bench, four views of it.
import { $, h, save, size } from "./dom.js";
import { openEngine } from "./engine.js";
import { fitPanel } from "./fit.js";
import { filesPanel } from "./files.js";
import { clearErrors, job, tell } from "./jobs.js";
import { contents, frame, reportPanel } from "./report.js";
import { runPanel } from "./run.js";

const TABS = ["fit", "report", "run", "files"];
const KINDS = { tflite: "LiteRT", onnx: "ONNX", pte: "compiled", pt2: "PyTorch export", zoo: "zoo" };
const engine = await openEngine();
const state = {
  hello: null, models: [], model: null, tab: "fit", fits: null, helped: null, chip: "", variant: "", against: "",
  limits: { sram: 0, flash: 0, milliseconds: 0 },
};
const fitsOf = new Map(); // model → rows

const actions = {
  async compileFor(chip) {
    state.chip = chip;
    const own = state.model.variants.find((one) => one.label === chip);
    if (own) { state.variant = own.id; state.against = ""; await show("report"); }
    else await actions.compile({ target: chip }, "");
  },
  async compile(options, change) {
    clearErrors();
    const made = await job("Compiling", (watch) => engine.call("compile", { model: state.model.id, options, change }, watch));
    if (!made) return undefined;
    await refresh();
    Object.assign(state, { variant: made.id, against: "", chip: made.target });
    await show("report");
    return made;
  },
  async tryChange(variant, option) {
    const made = await actions.compile(variant.options, option);
    if (made) await actions.show(made.id, variant.id);
  },
  async changes(variant) {
    clearErrors();
    if (await job("Trying changes", (watch) => engine.call("changes", { variant }, watch))) { await refresh(); await show("report"); }
  },
  async help(chip) {
    clearErrors();
    const found = await job(`Trying what helps on ${chip}`, (watch) => engine.call("help", { model: state.model.id, chip, limits: state.limits }, watch));
    if (found) { state.helped = found; await show("fit"); document.getElementById("helped")?.scrollIntoView({ block: "nearest" }); }
  },
  async show(variant, against) {
    Object.assign(state, { variant, against });
    await show(state.tab);
  },
  async fillReport(variant, against, place) {
    if (variant.contents) { place.replaceChildren(contents(variant.contents)); return; }
    const found = against
      ? await job("Comparing", (watch) => engine.call("pair", { first: against, second: variant.id }, watch))
      : await job("Reading the report", (watch) => engine.call("report", { variant: variant.id }, watch));
    if (found) place.replaceChildren(frame(found.html, against ? "Two reports side by side" : `Report of ${variant.label}`));
  },
  async run(variant, inputs, seed, check) {
    clearErrors();
    return job("Running", (watch) => engine.call("run", { variant, inputs, seed, check }, watch));
  },
  async files(variant) { state.variant = variant; await show("files"); },
  async project(variant, platform, board) {
    clearErrors();
    state.variant = variant;
    if (!await job("Making a project", (watch) => engine.call("project", { variant, platform, board }, watch))) return;
    await refresh();
    await show("files");
  },
  async download(variant, name) {
    try { save(await engine.download(variant, name), name); } catch (error) { tell(error); }
  },
};

async function refresh() {
  state.models = await engine.call("models", {});
  state.model = state.models.find((one) => one.id === state.model?.id) ?? null;
  sessionStorage.setItem("model", state.model?.id ?? "");
  listModels();
}

function listModels() {
  $("models").replaceChildren(...state.models.map((one) => h("li", { class: one.id === state.model?.id ? "now" : "" },
    h("button", { type: "button", class: "pick", "aria-current": one.id === state.model?.id ? "true" : undefined, onclick: () => select(one.id) },
      h("strong", {}, one.name), h("span", { class: "quiet block" }, `${KINDS[one.kind]}${one.bytes ? `, ${size(one.bytes)}` : ""}`)),
    h("button", { type: "button", class: "small", "aria-label": `Remove ${one.name}`, onclick: () => remove(one.id) }, "×"))));
  $("models-title").hidden = !state.models.length;
  const now = $("models").querySelector(".now");
  if (now) $("models").scrollTop = now.offsetTop - $("models").offsetTop; // a phone's list is short
}

async function remove(id) {
  await job("Removing", (watch) => engine.call("remove", { model: id }, watch));
  fitsOf.delete(id);
  if (state.model?.id === id) state.model = null;
  await refresh();
  if (state.models.length && !state.model) await select(state.models[0].id);
  $("bench").hidden = !state.model;
  $("welcome").hidden = Boolean(state.model);
}

async function select(id, tab = state.tab) {
  clearErrors();
  state.model = state.models.find((one) => one.id === id);
  Object.assign(state, { helped: null, variant: "", against: "" });
  sessionStorage.setItem("model", id);
  listModels();
  $("welcome").hidden = true;
  $("bench").hidden = false;
  if ($("bench").getBoundingClientRect().top > innerHeight / 2) $("bench").scrollIntoView({ block: "start" }); // under the list, on a phone
  $("title").textContent = state.model.name;
  $("subtitle").textContent = [KINDS[state.model.kind], state.model.bytes ? size(state.model.bytes) : "", state.model.calibration ? "with calibration data" : ""].filter(Boolean).join(", ");
  await show(tab);
}

async function show(tab) {
  state.tab = tab;
  sessionStorage.setItem("tab", tab);
  for (const name of TABS) {
    $(`tab-${name}`).setAttribute("aria-selected", String(name === tab));
    $(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
    $(`panel-${name}`).hidden = name !== tab;
  }
  const { model } = state, panel = $(`panel-${tab}`);
  const put = (...made) => { if (state.model === model && state.tab === tab) panel.replaceChildren(...made); };
  if (model.untrusted) { put(trustCard(model)); return; }
  if (model.kind === "pte" && !model.variants.length) {
    if (!await job("Reading", (watch) => engine.call("open", { model: model.id }, watch))) return;
    await refresh();
    await show(tab);
    return;
  }
  if (tab === "fit") {
    if (model.kind === "pte") { put(h("p", { class: "quiet" }, "This file is compiled already, for one chip: Report says what it holds, Run runs it. Drop the model it was compiled from to judge chips.")); return; }
    if (!fitsOf.has(model.id)) {
      put(h("p", { class: "quiet" }, "Judging every chip…"));
      const found = await job("Judging every chip", (watch) => engine.call("fits", { model: model.id }, watch));
      if (!found) { put(retryCard(model)); return; }
      fitsOf.set(model.id, found);
    }
    state.fits = fitsOf.get(model.id);
    if (state.model === model) put(fitPanel(state, actions));
  } else if (tab === "report") put(reportPanel(state, actions));
  else if (tab === "run") put(runPanel(state, actions));
  else {
    const chosen = model.variants.find((one) => one.id === state.variant) ?? model.variants[model.variants.length - 1];
    state.boards ??= await engine.call("boards", {});
    put(filesPanel(state, actions, chosen ? await engine.call("files", { variant: chosen.id }) : [], state.boards));
  }
}

function trustCard(model) {
  return h("div", { class: "card ask" }, h("h2", {}, "Do you trust this file?"),
    h("p", {}, "Loading an exported program can run code that is hidden in it. It runs in a process without network that can read none of your files, but allow it only if you know who wrote it. An ONNX export of the model needs no trust."),
    h("p", {}, h("button", { type: "button", class: "action", id: "trust", onclick: async () => { await engine.call("trust", { model: model.id }); await refresh(); await select(model.id); } }, "I trust it"), " ",
      h("button", { type: "button", class: "small", onclick: () => remove(model.id) }, "Remove it")));
}

// A model that cannot be compiled as it is: data for calibration, open sizes of ONNX, and again.
function retryCard(model) {
  const data = h("input", { type: "file", id: "calibration", class: "sr", "aria-label": "Calibration data", accept: ".npz,.npy", onchange: async () => {
    if (data.files[0] && await job("Uploading", (watch) => engine.upload(data.files[0], model.id, watch))) await again();
  } });
  const sizes = h("input", { type: "text", id: "sizes", value: model.sizes.join(" "), placeholder: "batch=1 image=1,3,96,96", spellcheck: false });
  const again = async () => { await refresh(); clearErrors(); await select(model.id); };
  return h("div", { class: "card ask" }, h("h2", {}, "It could not be judged"), h("p", { class: "quiet" }, "The sentence above says why. A float model needs calibration data; an ONNX model with open dimensions needs sizes."),
    h("div", { class: "options" }, data,
      model.kind !== "zoo" && h("button", { type: "button", class: "action", onclick: () => data.click() }, "Calibration data…"),
      model.kind === "onnx" && h("div", { class: "field" }, h("label", { htmlFor: "sizes" }, "Sizes"), sizes),
      h("button", { type: "button", class: "action", id: "again", onclick: async () => { if (sizes.value.trim()) await engine.call("sizes", { model: model.id, sizes: sizes.value.trim() }); await again(); } }, "Try again")));
}

async function add(files) {
  clearErrors();
  let last = null;
  for (const file of files) {
    if (file.size > state.hello.most_bytes) { tell(new Error(`${file.name}: ${size(file.size)} are over the page's ${size(state.hello.most_bytes)}; the command line takes files of any size`)); continue; }
    last = await job(`Uploading ${file.name}`, (watch) => engine.upload(file, "", watch)) ?? last;
  }
  await refresh();
  if (last) await select(last.id, "fit");
}

function listen() {
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => show(name));
  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = event.key === "Home" ? 0 : event.key === "End" ? TABS.length - 1 : step ? (TABS.indexOf(state.tab) + step + TABS.length) % TABS.length : -1;
    if (at < 0) return;
    event.preventDefault();
    show(TABS[at]);
    $(`tab-${TABS[at]}`).focus();
  });
  $("choose").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => { add([...$("file").files]); $("file").value = ""; });
  $("zoo").addEventListener("change", async () => {
    const name = $("zoo").value;
    $("zoo").value = "";
    const made = name && await job("Adding", (watch) => engine.call("zoo", { name }, watch));
    if (made) { await refresh(); await select(made.id, "fit"); }
  });
  addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  addEventListener("dragleave", () => $("drop").classList.remove("over"));
  addEventListener("drop", (event) => { event.preventDefault(); $("drop").classList.remove("over"); add([...event.dataTransfer.files]); });
}

async function start() {
  state.hello = await job("Starting", (watch) => engine.call("hello", {}, watch));
  if (!state.hello) return;
  const { hello } = state;
  state.chip = hello.chips.some((one) => one.name === "imxrt700") ? "imxrt700" : hello.chips[0].name;
  $("where").textContent = `${hello.version}, ${hello.engine === "python" ? "on this machine" : "in this page"}`;
  $("drop-kinds").textContent = hello.suffixes.join(", ");
  $("file").accept = hello.suffixes.join(",");
  $("promise").textContent = ["Nothing leaves this machine.", hello.note].filter(Boolean).join(" ");
  $("zoo-row").hidden = !hello.zoo.length;
  $("zoo").replaceChildren(h("option", { value: "" }, "choose…"), ...hello.zoo.map((one) => h("option", { value: one.name, title: one.what }, one.name)));
  listen();
  const kept = sessionStorage.getItem("model"), tab = sessionStorage.getItem("tab");
  await refresh();
  const first = state.models.find((one) => one.id === kept) ?? state.models[0];
  if (first) await select(first.id, TABS.includes(tab) ? tab : "fit");
  document.body.dataset.ready = "true";
}

await start();
