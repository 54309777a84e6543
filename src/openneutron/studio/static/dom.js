// Makes elements and formats figures.

export const $ = (id) => document.getElementById(id);

// h("button", {class: "action", onclick: go}, "Go"): text is always text, never markup.
export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else if (name === "class") made.className = value;
    else if (name in made && name !== "list" && name !== "role" && !name.includes("-")) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (bytes >= 1024 && at < 3) { bytes /= 1024; at += 1; }
  const digits = at === 0 || bytes >= 100 ? 0 : 1;
  return `${bytes.toFixed(digits)} ${units[at]}`;
}

export const count = (value) => Math.round(value).toLocaleString("en");

export function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toPrecision(3)} s`;
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : value.toFixed(3)} ms`;
}

export const percent = (value) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(100 * value).toFixed(1)} %`;

export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
