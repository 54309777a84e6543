// Report: compile with options, look at one variant or two side by side, and try what may help.
import { count, h, milliseconds, percent, size } from "./dom.js";

// The frame has no origin of its own: whatever a report holds cannot reach this page or its server.
export function frame(html, title) {
  return h("iframe", { class: "report-frame", title, sandbox: "allow-scripts", srcdoc: html });
}

export function reportPanel(state, actions) {
  const { hello, model } = state;
  const variants = model.variants;
  const chosen = variants.find((one) => one.id === state.variant) ?? variants[variants.length - 1];
  const torch = model.kind !== "tflite";
  const target = h("select", { id: "option-target" }, ...hello.chips.map((chip) => h("option", { value: chip.name, selected: chip.name === state.chip }, chip.name)));
  const optimize = h("select", { id: "option-optimize" }, ...hello.optimize.map((name) => h("option", { value: name, selected: name === "default" }, name)));
  const more = h("input", { id: "option-more", type: "text", size: 26, placeholder: torch ? "--int8-io --channels-last" : "--fit 64K", spellcheck: false });
  const form = h("form", { class: "card options", onsubmit: (event) => {
    event.preventDefault();
    actions.compile({ target: target.value, optimize: optimize.value }, more.value.trim());
  } },
  h("div", { class: "field" }, h("label", { htmlFor: "option-target" }, "Chip"), target),
  h("div", { class: "field" }, h("label", { htmlFor: "option-optimize" }, "Search effort"), optimize),
  h("div", { class: "field wide" }, h("label", { htmlFor: "option-more" }, "More options of openneutron compile"), more),
  h("button", { type: "submit", class: "action" }, "Compile"));
  if (!chosen) return h("div", {}, form, h("p", { class: "quiet" }, "Compile it to see its report."));

  const list = h("div", { class: "variants", role: "radiogroup", "aria-label": "Compiled variants" }, ...variants.map((one) => {
    const id = `variant-${one.id}`;
    return h("label", { class: "variant", htmlFor: id },
      h("input", { type: "radio", name: "variant", id, value: one.id, checked: one.id === chosen.id, onchange: () => actions.show(one.id, "") }),
      h("span", {}, h("strong", {}, one.label),
        h("span", { class: "quiet block" }, one.milliseconds === undefined ? "" : `${milliseconds(one.milliseconds)}, ${size(one.memory)} of RAM, ${size(one.flash)} of flash`)));
  }));
  const others = variants.filter((one) => one.id !== chosen.id && one.milliseconds !== undefined);
  const against = h("select", { id: "against", onchange: () => actions.show(chosen.id, against.value) },
    h("option", { value: "" }, "nothing"), ...others.map((one) => h("option", { value: one.id, selected: one.id === state.against }, one.label)));
  const compare = others.length && chosen.milliseconds !== undefined
    ? h("div", { class: "field inline" }, h("label", { htmlFor: "against" }, "Compare with"), against) : "";
  const place = h("div", { id: "report-place" });
  const element = h("div", {}, form, h("div", { class: "variant-row" }, list, compare), changes(chosen, actions), place);
  actions.fillReport(chosen, state.against, place);
  return element;
}

function changes(variant, actions) {
  if (variant.milliseconds === undefined) return "";
  if (!variant.changes) {
    return h("div", { class: "card bar-row changes-none" },
      h("span", { class: "quiet" }, "Which options and changes would make it faster or smaller? Each one is compiled and measured."),
      h("button", { type: "button", class: "action", id: "find-changes", onclick: () => actions.changes(variant.id) }, "Find what to change"));
  }
  const useful = variant.changes.filter((one) => one.helps);
  return h("section", { class: "changes", "aria-label": "What to change" }, h("h2", {}, "What to change"),
    useful.length ? h("ol", { class: "advice" }, ...useful.map((one) => h("li", { class: `card ${one.verdict}` },
      h("p", { class: "what" }, one.change),
      one.option && h("p", {}, h("code", {}, one.option)),
      h("p", { class: "effect" }, delta(one.time, "time"), delta(one.memory, "memory"),
        one.accuracy ? h("span", { class: `delta ${one.accuracy > 0 ? "good" : "bad"}` }, `${one.accuracy > 0 ? "+" : "−"}${Math.abs(one.accuracy).toFixed(1)} dB accuracy`) : "",
        h("span", { class: "quiet" }, `${milliseconds(one.milliseconds)}, ${size(one.peak_bytes)}`)),
      one.option && h("p", {}, h("button", { type: "button", class: "action small-action", "data-change": one.option, onclick: () => actions.tryChange(variant, one.option) }, "Compile it and compare")))))
      : h("p", { class: "quiet" }, "None of the changes that were tried made a difference."));
}

const delta = (value, what) => h("span", { class: `delta ${value < -0.0005 ? "good" : value > 0.0005 ? "bad" : ""}` }, `${percent(value)} ${what}`);

export function contents(found) {
  const rows = [["kind", found.kind], ["bytes", count(found.bytes)],
    ["inputs", found.inputs.map((one) => `${one.name}: ${one.dtype} ${one.shape.join("×")} ${one.quantization}`).join("; ")],
    ["outputs", found.outputs.map((one) => `${one.name}: ${one.dtype} ${one.shape.join("×")} ${one.quantization}`).join("; ")],
    ["operators", Object.entries(found.operators).map(([name, many]) => `${name} ×${many}`).join(", ")],
    ...found.graphs.map((one) => [one.where, `NeutronGraph by ${one.made_by === "open" ? "OpenNeutron" : "NXP"} ${one.converter_version} for ${one.target || "?"}; microcode ${size(one.microcode_bytes)}, weights ${size(one.weights_bytes)}, scratch ${size(one.scratch_bytes)}`]),
    ...found.notes.map((note) => ["note", note])];
  return h("div", { class: "card scroll" }, h("table", { class: "plain" }, h("tbody", {}, ...rows.filter(([, text]) => text).map(([label, text]) => h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, text))))));
}
