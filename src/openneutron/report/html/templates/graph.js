// Pointing at a node, or reaching it with Tab, shows its verdict; a click keeps it.
(() => {
  const panel = document.getElementById("details");
  const boxes = [...document.querySelectorAll(".box")];
  const edges = [...document.querySelectorAll(".edges path")];
  let kept = null;

  function fill(box) {
    const details = data.boxes[box.dataset.box];
    const head = document.createElement("h3");
    head.textContent = details.name;
    const badge = document.createElement("span");
    badge.className = `badge ${details.engine}`;
    badge.textContent = details.engine === "npu" ? "NPU" : "CPU";
    const list = document.createElement("dl");
    for (const [label, text] of details.lines) {
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = label;
      value.textContent = text;
      list.append(term, value);
    }
    panel.replaceChildren(badge, head, list);
  }

  function point(box) {
    for (const one of boxes) one.classList.toggle("on", one === box);
    for (const edge of edges) {
      const near = box && (edge.dataset.from === box.dataset.box || edge.dataset.to === box.dataset.box);
      edge.classList.toggle("on", Boolean(near));
    }
    if (box) fill(box);
  }

  for (const box of boxes) {
    const details = data.boxes[box.dataset.box];
    const short = [details.name, ...details.lines.map(([label, text]) => `${label}: ${text}`)];
    box.addEventListener("pointermove", (event) => showTip(event, short));
    box.addEventListener("pointerenter", () => point(box));
    box.addEventListener("pointerleave", () => { hideTip(); point(kept); });
    box.addEventListener("focus", () => point(box));
    box.addEventListener("click", () => { kept = kept === box ? null : box; point(box); });
  }
  const first = boxes.find((box) => box.classList.contains("cpu")) || boxes[0];
  if (first) { kept = first; point(first); }
  // The graph may be wider than its frame: begin where it begins.
  const frame = document.querySelector(".graph-scroll"), top = boxes[0];
  if (top) frame.scrollLeft += top.getBoundingClientRect().left + 104 - frame.getBoundingClientRect().left - frame.clientWidth / 2;
})();
