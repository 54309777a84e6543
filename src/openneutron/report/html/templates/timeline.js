// The timeline: one lane for the array, one for copies; only what is in view is drawn.
(() => {
  const canvas = document.getElementById("lanes");
  if (!canvas) return;
  const { events, kernels, end, clock, graphs } = data.timeline;
  const lanes = [0, 1].map((lane) => events.filter((event) => event[0] === lane));
  const kinds = [...new Set(kernels.map(([kind]) => kind))];
  const LEFT = 64, TOP = 8, LANE = 54, GAP = 12, AXIS = 26;
  const height = TOP + 2 * LANE + GAP + AXIS;
  let from = 0, to = Math.max(end, 1), pointed = -2, width = 0;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (kernel) => kernel < 0 ? css("--copy") : css(`--kind-${kinds.indexOf(kernels[kernel][0]) % 10}`);
  const x = (cycle) => LEFT + (cycle - from) / (to - from) * (width - LEFT - 8);
  const cycle = (at) => from + (at - LEFT) / (width - LEFT - 8) * (to - from);
  const top = (lane) => TOP + lane * (LANE + GAP);

  // First event of a lane that ends after a cycle: events of a lane do not overlap, so their ends are sorted too.
  function firstAfter(lane, when) {
    let low = 0, high = lanes[lane].length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lanes[lane][middle][3] <= when) low = middle + 1; else high = middle;
    }
    return low;
  }

  function step(span) {
    const raw = span / Math.max(2, (width - LEFT) / 130), scale = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((s) => s * scale).find((s) => s >= raw);
  }

  function axis(pen) {
    const by = Math.max(1, step(to - from));
    pen.fillStyle = css("--quiet");
    pen.strokeStyle = css("--line");
    pen.textAlign = "center";
    for (let at = Math.ceil(from / by) * by; at <= to; at += by) {
      pen.beginPath();
      pen.moveTo(x(at), TOP);
      pen.lineTo(x(at), height - AXIS + 4);
      pen.stroke();
      const text = clock && at ? `${at.toLocaleString("en")} · ${(at / clock * 1e3).toPrecision(3)} ms` : at.toLocaleString("en");
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x(at), LEFT + 8), width - half - 2), height - 8);
    }
  }

  function draw() {
    const ratio = devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    axis(pen);
    ["array", "copies"].forEach((name, lane) => {
      pen.fillStyle = css("--lane");
      pen.fillRect(LEFT, top(lane), width - LEFT - 8, LANE);
      pen.fillStyle = css("--text");
      pen.textAlign = "right";
      pen.fillText(name, LEFT - 10, top(lane) + LANE / 2 + 4);
      if (!lanes[lane].length) {
        pen.fillStyle = css("--quiet");
        pen.textAlign = "left";
        pen.fillText(lane ? "no copies: weights are read where they are" : "no calls", LEFT + 12, top(lane) + LANE / 2 + 4);
      }
    });
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT - 8, height);
    pen.clip();
    lanes.forEach((all, lane) => {
      let drawn = -1;
      for (let at = firstAfter(lane, from); at < all.length && all[at][2] < to; at++) {
        const [, kernel, start, stop, row, rows] = all[at];
        const left = x(start), right = Math.max(x(stop), left + 1);
        if (right < drawn + 0.4 && kernel !== pointed) continue;
        drawn = right;
        pen.globalAlpha = pointed < -1 || pointed === kernel ? 1 : 0.25;
        pen.fillStyle = colour(kernel);
        const inset = right - left > 3 ? 0.5 : 0;
        pen.fillRect(left + inset, top(lane), right - left - 2 * inset, LANE);
        if (right - left > 60) {
          pen.save();
          pen.beginPath();
          pen.rect(left, top(lane), right - left - 4, LANE);
          pen.clip();
          pen.fillStyle = css("--on-kind");
          pen.textAlign = "left";
          pen.fillText(kernel < 0 ? "copy" : kernels[kernel][0], left + 7, top(lane) + 22);
          pen.fillText(kernel < 0 ? `${rows.toLocaleString("en")} bytes` : `rows ${row}–${row + rows - 1}`, left + 7, top(lane) + 38);
          pen.restore();
        }
      }
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = css("--text");
    for (const base of graphs.slice(1)) {
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(x(base), TOP);
      pen.lineTo(x(base), height - AXIS);
      pen.stroke();
    }
    pen.restore();
    canvas.dataset.from = Math.round(from);
    canvas.dataset.to = Math.round(to);
  }

  function view(start, stop) {
    const span = Math.min(Math.max(stop - start, Math.min(20, end)), Math.max(end, 1));
    from = Math.min(Math.max(start, 0), Math.max(end, 1) - span);
    to = from + span;
    draw();
  }
  function zoom(factor, around = (from + to) / 2) {
    view(around - (around - from) * factor, around + (to - around) * factor);
  }

  function eventAt(mouse) {
    const box = canvas.getBoundingClientRect();
    const y = mouse.clientY - box.top, when = cycle(mouse.clientX - box.left);
    const lane = [0, 1].find((one) => y >= top(one) && y <= top(one) + LANE);
    if (lane === undefined || mouse.clientX - box.left < LEFT) return null;
    const found = lanes[lane][firstAfter(lane, when)];
    return found && found[2] <= when ? found : null;
  }

  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from, to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (held) {
      const moved = (held.x - event.clientX) / (width - LEFT - 8) * (held.to - held.from);
      return view(held.from + moved, held.to + moved);
    }
    const found = eventAt(event);
    const now = found ? found[1] : -2;
    if (now !== pointed) { pointed = now; draw(); }
    if (!found) return hideTip();
    const [, kernel, start, stop, row, rows] = found;
    const length = `${(stop - start).toLocaleString("en")} cycles, from ${start.toLocaleString("en")}`;
    showTip(event, kernel < 0
      ? ["copy", `${rows.toLocaleString("en")} bytes`, length]
      : [kernels[kernel][1], kernels[kernel][0], `rows ${row} to ${row + rows - 1}`, length]);
  });
  canvas.addEventListener("pointerleave", () => { hideTip(); pointed = -2; draw(); });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, cycle(event.clientX - canvas.getBoundingClientRect().left)));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, cycle(event.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = (to - from) / 5;
    const keys = { "+": () => zoom(0.6), "-": () => zoom(1.6), 0: () => view(0, end),
      ArrowLeft: () => view(from - by, to - by), ArrowRight: () => view(from + by, to + by) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.5));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(2));
  document.getElementById("zoom-all").addEventListener("click", () => view(0, end));
  document.getElementById("kernel-key").append(...kinds.map((kind, at) => {
    const item = document.createElement("span");
    const swatch = document.createElement("i");
    swatch.style.background = `var(--kind-${at % 10})`;
    item.append(swatch, kind);
    return item;
  }));
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
