"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");

// The tooltip follows the pointer and stays inside the window.
function showTip(event, lines) {
  tip.replaceChildren(...lines.map((line, at) => {
    const row = document.createElement(at ? "div" : "strong");
    row.textContent = line;
    return row;
  }));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const below = event.clientY + 18 + box.height < innerHeight;
  tip.style.left = `${Math.max(8, x)}px`;
  tip.style.top = `${below ? event.clientY + 18 : event.clientY - box.height - 12}px`;
}
function hideTip() { tip.hidden = true; }

for (const element of document.querySelectorAll("[data-tip]")) {
  element.addEventListener("pointermove", (event) => showTip(event, element.dataset.tip.split("\n")));
  element.addEventListener("pointerleave", hideTip);
}
addEventListener("scroll", hideTip, { passive: true, capture: true });
