// Fit: every chip side by side, judged again at once when a budget moves.
import { h, milliseconds, size } from "./dom.js";
import { SCALES, judge } from "./judge.js";

const WORDS = { sram: "RAM", flash: "Flash", milliseconds: "Latency" };
const WHAT = { stock: "NXP's converter", open: "open schedule" };
const ALONE = "on the core"; // a processor has no NPU, and NXP's converter makes nothing for it
const WHY = {
  stock: "What NXP's converter makes today: all that a board runs.",
  open: "This compiler's schedule, which runs in the simulator.",
};

export function fitPanel(state, actions) {
  const limits = state.limits;
  const body = h("tbody");
  const summary = h("p", { class: "verdict-line", "aria-live": "polite" });

  function slider(key) {
    const scale = SCALES[key];
    const shown = h("output", { for: `budget-${key}` });
    const input = h("input", {
      type: "range", id: `budget-${key}`, min: 0, max: scale.length, step: 1,
      oninput: () => { limits[key] = scale[Number(input.value)] ?? 0; say(); fill(); },
    });
    const at = scale.indexOf(limits[key]);
    input.value = String(at < 0 ? scale.length : at);
    function say() {
      const none = key === "milliseconds" ? "any" : "what the chip has";
      shown.textContent = limits[key] ? (key === "milliseconds" ? milliseconds(limits[key]) : size(limits[key])) : none;
      input.setAttribute("aria-valuetext", shown.textContent);
    }
    say();
    return h("div", { class: "budget" }, h("label", { htmlFor: `budget-${key}` }, `${WORDS[key]} budget`), input, shown);
  }

  function meter(value, limit, over, text) {
    const part = limit ? Math.min(value / limit, 1) : 0;
    return [h("span", { class: "figure-line" }, text, limit ? h("span", { class: "quiet" }, ` of ${size(limit)}`) : ""),
      limit ? h("div", { class: `bar${over ? " over" : ""}` }, h("i", { style: { width: `${(100 * part).toFixed(1)}%` } })) : ""];
  }

  function line(row, first, span) {
    const chip = state.hello.chips.find((one) => one.name === row.target);
    const { need } = row, verdict = judge(row, chip, limits);
    const time = need.milliseconds ? milliseconds(need.milliseconds) : "–";
    const range = need.milliseconds_high ? `${milliseconds(need.milliseconds_low)} to ${milliseconds(need.milliseconds_high)}` : "";
    const late = limits.milliseconds && need.milliseconds_high > limits.milliseconds;
    return h("tr", { class: verdict.fits ? "fits" : "short", "data-chip": row.target, "data-schedule": row.schedule },
      first && h("th", { scope: "rowgroup", rowSpan: span, class: "chip-name" }, chip.name, h("span", { class: "quiet", title: chip.title }, chip.title.split(/[:,]/, 2).join(",")),
        h("button", { type: "button", class: "small", "data-report": row.target, onclick: () => actions.compileFor(row.target) }, "Report"),
        h("button", { type: "button", class: "small", "data-help": row.target, onclick: () => actions.help(row.target) }, "What helps?")),
      h("td", { title: chip.processor ? "" : WHY[row.schedule] }, chip.processor ? ALONE : WHAT[row.schedule]),
      h("td", {}, h("span", { class: `verdict ${verdict.fits ? "good" : "bad"}` }, verdict.fits ? "✓ fits" : "✕ does not fit")),
      h("td", {}, meter(need.sram_bytes, verdict.sram, need.sram_bytes > verdict.sram, size(need.sram_bytes))),
      h("td", {}, meter(need.flash_bytes, verdict.flash, verdict.flash && need.flash_bytes > verdict.flash, size(need.flash_bytes))),
      h("td", { class: late ? "late" : "" }, h("span", { class: "figure-line" }, time, need.whole ? "" : h("span", { class: "quiet" }, chip.processor ? " without operators left out" : " NPU alone")),
        h("span", { class: "quiet block" }, range)),
      h("td", { class: "why" }, verdict.short ? h("span", { class: "missing" }, verdict.short) : "",
        row.largest ? h("span", { class: "quiet block" }, `largest: ${row.largest}`) : ""));
  }

  function fill() {
    const { rows } = state.fits;
    body.replaceChildren(...rows.map((row, at) => {
      const first = at === 0 || rows[at - 1].target !== row.target;
      return line(row, first, rows.filter((one) => one.target === row.target).length);
    }));
    const stock = rows.filter((row) => row.schedule === "stock");
    const good = stock.filter((row) => judge(row, state.hello.chips.find((one) => one.name === row.target), limits).fits);
    summary.textContent = good.length ? `With NXP's converter it fits ${good.map((row) => row.target).join(", ")}.` : "With NXP's converter it fits none of the chips.";
    for (const button of body.querySelectorAll("[data-help]")) {
      const own = rows.filter((row) => row.target === button.dataset.help);
      button.hidden = own.every((row) => judge(row, state.hello.chips.find((one) => one.name === row.target), limits).fits);
    }
    const old = state.helped && h("div", { class: "helped", id: "helped" }, ...helped(state.helped));
    helpPlace.replaceChildren(...(old ? [old] : []));
  }

  const helpPlace = h("div");
  const notes = [...new Set(state.fits.rows.flatMap((row) => row.notes.map((note) => `${row.target}: ${note}`)))];
  const element = h("div", {},
    h("div", { class: "card budgets", role: "group", "aria-label": "Budgets" }, slider("sram"), slider("flash"), slider("milliseconds")),
    summary,
    h("div", { class: "card scroll table-scroll", tabIndex: 0, role: "region", "aria-label": "Chips" }, h("table", { class: "fit-table" },
      h("thead", {}, h("tr", {}, ...["Chip", "Made by", "Verdict", "RAM", "Flash", "Latency", "What is short"].map((text) => h("th", { scope: "col" }, text)))),
      body)),
    helpPlace,
    ...notes.map((note) => h("p", { class: "quiet" }, note)),
    h("p", { class: "quiet" }, "Latencies are estimates; their upper end is what a latency budget is held against."));
  fill();
  return element;
}

function helped(found) {
  const others = (row) => row.tried - row.changes.length;
  return found.rows.filter((row) => !row.fits).map((row) => h("div", { class: "card" },
    h("h3", {}, `${row.target}, ${WHAT[row.schedule]}: ${row.short}`),
    row.tried
      ? h("ul", { class: "tries" }, ...row.changes.map((change) => h("li", {},
        h("span", { class: `verdict ${change.short ? "bad" : "good"}` }, change.short ? "✕" : "✓ fits"), " ",
        change.change, change.option ? [" ", h("code", {}, change.option)] : "", " ",
        h("span", { class: "quiet" }, change.short || `${size(change.need.sram_bytes)} of RAM, ${size(change.need.flash_bytes)} of flash, ${milliseconds(change.need.milliseconds)}`))),
        others(row) > 0 && h("li", { class: "quiet" }, others(row) === 1 ? "1 other change was tried and is not enough." : `${others(row)} other changes were tried and are not enough.`))
      : h("p", { class: "quiet" }, "No option of the converter changes that: the model itself must become smaller.")));
}
