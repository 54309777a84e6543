// Run: a picture, a sound or arrays in; outputs, the check against the reference, and cycles out.
import { base64, npy, npz } from "./arrays.js";
import { count, h, milliseconds } from "./dom.js";
import { tell } from "./jobs.js";
import { RANGES, cameraFrame, likelyRange, pictureShape, pixels, recorded, samples, soundLength } from "./media.js";

const RATE = 16000; // of nearly all speech and sound models

export function runPanel(state, actions) {
  const variants = state.model.variants;
  if (!variants.length) return h("p", { class: "quiet" }, "Compile it first, under Report.");
  const chosen = variants.find((one) => one.id === state.variant) ?? variants[variants.length - 1];
  const pick = h("select", { id: "run-variant", onchange: () => actions.show(pick.value, "") },
    ...variants.map((one) => h("option", { value: one.id, selected: one.id === chosen.id }, one.label)));
  const given = {}; // input → .npy bytes
  let whole = null; // a dropped .npz with all inputs
  const place = h("div", { id: "run-result", "aria-live": "polite" });
  const seed = h("input", { id: "run-seed", type: "number", min: 0, value: "0" });
  const check = h("input", { id: "run-check", type: "checkbox", checked: state.hello.reference, disabled: !state.hello.reference });
  const said = h("span", { class: "quiet", id: "run-source" }, "random data");
  const say = () => {
    const names = Object.keys(given);
    said.textContent = whole ? whole.name : names.length ? names.map((name) => given[name].what).join(", ") : "random data";
  };

  async function run() {
    let inputs = "";
    const missing = chosen.inputs.filter((input) => !given[input.name]);
    if (whole) inputs = base64(whole.data);
    else if (Object.keys(given).length && missing.length) {
      tell(new Error(`these inputs have no data yet: ${missing.map((input) => input.name).join(", ")}`));
      return;
    } else if (Object.keys(given).length) {
      inputs = base64(npz(Object.fromEntries(Object.entries(given).map(([name, one]) => [name, one.data]))));
    }
    const found = await actions.run(chosen.id, inputs, Number(seed.value) || 0, check.checked);
    if (found) place.replaceChildren(...result(found, chosen, state));
  }

  return h("div", {},
    h("div", { class: "card options" },
      h("div", { class: "field" }, h("label", { htmlFor: "run-variant" }, "Variant"), pick),
      h("div", { class: "field" }, h("label", { htmlFor: "run-seed" }, "Seed of random data"), seed),
      h("div", { class: "field check" }, check, h("label", { htmlFor: "run-check" }, "Check against LiteRT's reference kernels")),
      h("button", { type: "button", class: "action", id: "run", onclick: run }, "Run"), said),
    h("div", { class: "inputs" }, ...chosen.inputs.map((input) => inputCard(input, (what, data) => { given[input.name] = { what, data }; whole = null; say(); },
      (name, data) => { whole = { name, data }; say(); }))),
    place);
}

function inputCard(input, give, giveAll) {
  const picture = pictureShape(input.shape), sound = soundLength(input.shape);
  const canvas = h("canvas", { class: "preview", width: 1, height: 1, hidden: true, role: "img", "aria-label": `what ${input.name} sees` });
  const range = picture && h("select", { "aria-label": `Pixel range of ${input.name}` }, ...Object.keys(RANGES).map((name) => h("option", { value: name, selected: name === likelyRange(input) }, name)));
  let last = null;
  const usePicture = (image, what) => {
    last = () => { canvas.hidden = false; give(what, npy(pixels(image, picture, range.value, canvas), input.shape)); };
    last();
  };
  if (range) range.addEventListener("change", () => last?.());
  const useSound = async (data, what) => give(what, npy(await samples(data, sound, RATE), input.shape));

  async function take(file) {
    try {
      const name = file.name.toLowerCase();
      if (name.endsWith(".npz")) giveAll(file.name, new Uint8Array(await file.arrayBuffer()));
      else if (name.endsWith(".npy")) give(file.name, new Uint8Array(await file.arrayBuffer()));
      else if (file.type.startsWith("image/") && picture) usePicture(await createImageBitmap(file), file.name);
      else if (file.type.startsWith("audio/") && sound) await useSound(await file.arrayBuffer(), file.name);
      else if (file.type.startsWith("audio/")) throw new Error(`${input.name} takes ${input.shape.join("×")} features, not samples: make them with your front end and give the .npy (openneutron run --stream does both)`);
      else throw new Error(`${input.name} takes ${input.dtype} ${input.shape.join("×")}, which ${file.name} cannot give: choose ${picture ? "a picture, " : sound ? "a sound, " : ""}a .npy or a .npz`);
    } catch (error) {
      tell(error);
    }
  }
  const guarded = (work) => async () => {
    try { await work(); } catch (error) { tell(new Error(`${error.name === "NotAllowedError" || error.name === "NotFoundError" ? "the browser gives no camera or microphone" : error.message}`)); }
  };
  const file = h("input", { type: "file", class: "sr", id: `input-${input.name}`, "aria-label": `Data for ${input.name}`, accept: `.npy,.npz${picture ? ",image/*" : ""}${sound ? ",audio/*" : ""}`, onchange: () => { if (file.files[0]) take(file.files[0]); file.value = ""; } });
  const card = h("div", { class: "card input" },
    h("div", {}, h("strong", {}, input.name), h("span", { class: "quiet block" }, `${input.dtype} ${input.shape.join("×") || "scalar"}${input.low === undefined ? "" : `, ${input.low.toPrecision(3)} to ${input.high.toPrecision(3)}`}`)),
    h("div", { class: "buttons" }, file,
      h("button", { type: "button", class: "small", onclick: () => file.click() }, picture ? "Picture or array…" : sound ? "Sound or array…" : "Array…"),
      picture && navigator.mediaDevices && h("button", { type: "button", class: "small", onclick: guarded(() => cameraFrame((video) => usePicture(video, "a camera frame"))) }, "Camera"),
      sound > 0 && navigator.mediaDevices && h("button", { type: "button", class: "small", onclick: guarded(async () => useSound(await recorded(sound / RATE), "the microphone")) }, "Microphone"),
      range && h("label", { class: "quiet" }, "pixels ", range)),
    canvas);
  card.addEventListener("dragover", (event) => { event.preventDefault(); event.stopPropagation(); });
  card.addEventListener("drop", (event) => { event.preventDefault(); event.stopPropagation(); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
  return card;
}

function result(found, variant, state) {
  const chip = state.hello.chips.find((one) => one.name === variant.target);
  const tiles = [];
  if (found.check) {
    const exact = found.check.differing === 0;
    tiles.push(h("div", { class: `tile-card ${exact ? "good" : "bad"}` }, h("span", { class: "figure" }, `${found.check.largest} LSB`),
      h("span", { class: "quiet" }, exact ? `${count(found.check.elements)} ${found.check.what === "outputs" ? "values" : "layers on random data"} equal ${found.check.against}` : `${count(found.check.differing)} of ${count(found.check.elements)} ${found.check.what} differ from ${found.check.against}`)));
  }
  if (found.cycles) {
    tiles.push(h("div", { class: "tile-card" }, h("span", { class: "figure" }, count(found.cycles)), h("span", { class: "quiet" }, `simulated cycles${chip ? `, ${milliseconds(1000 * found.cycles / chip.clock)} of the NPU at ${chip.clock / 1e6} MHz` : ""}`)));
  }
  return [h("div", { class: "tile-cards" }, ...tiles), ...found.outputs.map(output), ...(found.check?.notes ?? []).map((note) => h("p", { class: "quiet" }, note))];
}

function output(one) {
  const numbers = one.values.map(Number);
  const top = numbers.map((value, at) => [value, at]).sort((a, b) => b[0] - a[0]).slice(0, 10);
  const low = Math.min(...numbers), span = Math.max(...numbers) - low || 1;
  const vector = one.shape.filter((length) => length > 1).length <= 1;
  return h("div", { class: "card output" }, h("h3", {}, one.name), h("p", { class: "quiet" }, `${one.dtype} ${one.shape.join("×") || "scalar"}`),
    vector && one.size > 1
      ? h("ol", { class: "ranked" }, ...top.map(([value, at]) => h("li", {}, h("span", { class: "num" }, `${at}`), h("div", { class: "bar" }, h("i", { style: { width: `${(100 * (value - low) / span).toFixed(1)}%` } })), h("span", { class: "num" }, `${value}`))))
      : h("p", { class: "values" }, numbers.slice(0, 64).join(", "), one.size > 64 ? " …" : ""));
}
