// Work in progress: what it does now, how long already, and a button that ends it. Errors as sentences.
import { $, h } from "./dom.js";

const PATIENCE = 400; // ms; shorter work would only flicker

export async function job(title, work) {
  const abort = new AbortController();
  const now = h("span", { class: "quiet" }, "");
  const clock = h("span", { class: "quiet clock" }, "");
  const row = h("div", { class: "job" },
    h("span", { class: "spinner", "aria-hidden": "true" }), h("strong", {}, title), now, clock,
    h("button", { type: "button", class: "small", onclick: () => abort.abort(), "aria-label": `Cancel: ${title}` }, "Cancel"));
  const start = performance.now();
  const tick = setInterval(() => { clock.textContent = `${Math.round((performance.now() - start) / 1000)} s`; }, 500);
  const shown = setTimeout(() => $("jobs").append(row), PATIENCE);
  try {
    return await work({ progress: (text) => { now.textContent = text; }, signal: abort.signal });
  } catch (error) {
    if (abort.signal.aborted) return undefined;
    tell(error);
    return undefined;
  } finally {
    clearTimeout(shown);
    clearInterval(tick);
    row.remove();
  }
}

export function tell(error) {
  const text = error.bug ? `${error.message}. This is a bug in OpenNeutron.` : error.message;
  const row = h("p", { class: "error" }, h("span", {}, text),
    h("button", { type: "button", class: "small", "aria-label": "Dismiss", onclick: () => row.remove() }, "×"));
  if ([...$("errors").children].some((other) => other.firstChild.textContent === text)) return;
  $("errors").append(row);
}

export const clearErrors = () => $("errors").replaceChildren();
