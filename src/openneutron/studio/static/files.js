// Files: everything a variant has to download, and projects for boards.
import { h, size } from "./dom.js";

export function filesPanel(state, actions, files, { platforms, boards }) {
  const variants = state.model.variants;
  if (!variants.length) return h("p", { class: "quiet" }, "Compile it first, under Report.");
  const chosen = variants.find((one) => one.id === state.variant) ?? variants[variants.length - 1];
  const pick = h("select", { id: "files-variant", onchange: () => actions.files(pick.value) },
    ...variants.map((one) => h("option", { value: one.id, selected: one.id === chosen.id }, one.label)));
  return h("div", {},
    h("div", { class: "field inline" }, h("label", { htmlFor: "files-variant" }, "Variant"), pick),
    h("ul", { class: "files" }, ...files.map((one) => h("li", { class: "card" },
      h("span", {}, h("strong", {}, one.name), h("span", { class: "quiet block" }, `${one.what}, ${size(one.bytes)}`)),
      h("button", { type: "button", class: "action", "data-file": one.name, "aria-label": `Download ${one.name}`, onclick: () => actions.download(chosen.id, one.name) }, "Download")))),
    boards.length > 0 && projectForm(chosen, actions, platforms, boards));
}

// A folder that builds this variant into a program for a board, with a self-test.
function projectForm(variant, actions, platforms, boards) {
  const { project } = variant;
  const options = (rows) => rows.map((one) => h("option", { value: one.name }, one.title));
  const board = h("select", { id: "project-board" });
  const fill = () => board.replaceChildren(...options(boards.filter((one) => one.platforms.includes(platform.value))));
  const platform = h("select", { id: "project-platform", onchange: fill }, ...options(platforms.map((name) => ({ name, title: name }))));
  fill();
  const taken = project && `${project.board}: ${size(project.flash)} of ${size(project.flash_there)} flash, ${size(project.ram)} of ${size(project.ram_there)} RAM. Download it above.`;
  return h("section", { class: "card", "aria-labelledby": "project-title" },
    h("h2", { id: "project-title" }, "A project for a board"),
    h("p", { class: "quiet" }, "Sources, build files, this program, and a self-test with expected outputs, as `openneutron project` writes them."),
    h("div", { class: "options" },
      h("div", { class: "field" }, h("label", { htmlFor: "project-platform" }, "Built by"), platform),
      h("div", { class: "field" }, h("label", { htmlFor: "project-board" }, "Board"), board),
      h("button", { type: "button", class: "action", id: "make-project", onclick: () => actions.project(variant.id, platform.value, board.value) }, "Make the project")),
    project && h("p", { id: "project-sizes" }, taken), ...(project?.notes ?? []).map((note) => h("p", { class: "quiet" }, note)));
}
