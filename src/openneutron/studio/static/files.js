// Files: everything a variant has to download.
import { h, size } from "./dom.js";

export function filesPanel(state, actions, files) {
  const variants = state.model.variants;
  if (!variants.length) return h("p", { class: "quiet" }, "Compile it first, under Report.");
  const chosen = variants.find((one) => one.id === state.variant) ?? variants[variants.length - 1];
  const pick = h("select", { id: "files-variant", onchange: () => actions.files(pick.value) },
    ...variants.map((one) => h("option", { value: one.id, selected: one.id === chosen.id }, one.label)));
  return h("div", {},
    h("div", { class: "field inline" }, h("label", { htmlFor: "files-variant" }, "Variant"), pick),
    h("ul", { class: "files" }, ...files.map((one) => h("li", { class: "card" },
      h("span", {}, h("strong", {}, one.name), h("span", { class: "quiet block" }, `${one.what}, ${size(one.bytes)}`)),
      h("button", { type: "button", class: "action", "data-file": one.name, "aria-label": `Download ${one.name}`, onclick: () => actions.download(chosen.id, one.name) }, "Download")))));
}
