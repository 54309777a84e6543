// The model's graph: modules fold into one box, search finds boxes inside folded ones, pointing at a box shows its verdict.
(() => {
  const frame = document.getElementById("graph-pane");
  if (!frame) return;
  const { boxes } = data;
  const root = moduleTree(boxes), levels = groupLevels(root);
  const get = (id) => document.getElementById(id);
  const layer = get("graph-layer"), map = get("graph-map"), panel = get("details"), search = get("graph-search");
  const pane = makePane(frame, layer, map);
  const texts = boxes.map((box) => [box.title, box.label, box.second, ...box.lines.flat()].join(" ").toLowerCase());
  let open = firstOpen(root), items = [], placed = null, elements = [], edges = [];
  let kept = null, found = [], at = -1;

  function svg(name, attributes = {}, text = "") {
    const made = document.createElementNS(layer.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = `${text} `; // readers of the page aloud join texts
    return made;
  }
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const short = (count) => (count >= 1e6 ? `${(count / 1e6).toPrecision(3)}M` : count >= 1e4 ? `${(count / 1e3).toPrecision(3)}k` : count.toLocaleString("en"));
  const named = (group) => group.key.replaceAll("\n", ".");
  const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

  // What an item shows: a box as the compiler described it, a module as the sum of its boxes.
  function shownOf(item) {
    if (!item.group) return boxes[item.members[0]];
    const members = item.members.map((one) => boxes[one]);
    const onNpu = members.filter((one) => one.engine === "npu"), cycles = members.reduce((sum, one) => sum + one.cycles, 0);
    const graphs = [...new Set(onNpu.map((one) => one.graph))];
    const costliest = members.reduce((most, one) => (one.cycles > most.cycles ? one : most));
    const part = item.piece ? ` (part ${item.piece})` : "";
    const lines = [["module", named(item.group)], ["holds", plural(members.length, "node")],
      ["on the NPU", `${onNpu.length} of ${members.length}`]];
    if (cycles) lines.push(["cycles", `${cycles.toLocaleString("en")} (${(100 * cycles / (data.cycles || 1)).toFixed(1)}%)`], ["most of it", `${costliest.title}, ${costliest.cycles.toLocaleString("en")} cycles`]);
    const reasons = [...new Set(members.filter((one) => one.engine === "cpu").map((one) => one.lines.find(([label]) => label === "why")?.[1]))];
    if (reasons.length) lines.push(["why the CPU", reasons.filter(Boolean).slice(0, 3).join("; ")]);
    return {
      title: named(item.group), label: item.group.title + part, second: plural(members.length, "node"), cycles, lines,
      figure: cycles ? short(cycles) : "", engine: onNpu.length === members.length ? "npu" : onNpu.length ? "mixed" : "cpu",
      graph: graphs.length === 1 && onNpu.length === members.length ? graphs[0] : -1,
    };
  }

  function draw() {
    const drawn = drawnItems(boxes, root, open);
    items = drawn.items.map((item) => ({ ...item, ...shownOf(item) }));
    placed = layoutGraph(drawn.inputs);
    const busiest = items.reduce((most, one) => Math.max(most, one.cycles), 1);
    edges = placed.edges.map(([from, to, path]) => svg("path", { d: path, "data-from": from, "data-to": to }));
    const lines = svg("g", { class: "edges" });
    lines.append(...edges);
    elements = items.map((item, index) => drawBox(item, index, busiest));
    layer.replaceChildren(...drawFrames(), lines, ...elements);
    pane.resize(placed.width, placed.height);
    drawMap();
    get("graph-fold").disabled = !levels.flat().some((one) => open.has(one.key));
    get("graph-unfold").disabled = !items.some((one) => one.group);
    mark();
  }

  function drawBox(item, index, busiest) {
    const [x, y] = placed.boxes[index];
    const made = svg("g", { class: `box ${item.engine}${item.group ? " module" : ""}`, "data-box": index, tabindex: 0, role: "button",
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    if (item.group) made.append(svg("rect", { class: "behind", x: 4, y: 4, width: BOX_WIDTH, height: BOX_HEIGHT, rx: 9 }));
    made.append(svg("rect", { class: "body", width: BOX_WIDTH, height: BOX_HEIGHT, rx: 9 }), svg("rect", { class: "side", width: 5, height: BOX_HEIGHT, rx: 2.5 }),
      svg("text", { class: "name", x: 16, y: 19 }, cut(item.label, item.group ? 24 : 26)), svg("text", { class: "more", x: 16, y: 34 }, cut(item.second, item.figure ? 22 : 28)));
    if (item.group) made.append(svg("path", { class: "sign", d: "M186 15h10m-5-5v10" }));
    if (item.cycles) {
      made.append(svg("text", { class: "figure", x: 196, y: 34, "text-anchor": "end" }, item.figure),
        svg("rect", { class: "load", x: 16, y: 39, width: (180 * item.cycles / busiest).toFixed(1), height: 2.5, rx: 1.2 }));
    }
    return made;
  }

  // One frame for each NeutronGraph: a rim around its boxes and the edges between them.
  function drawFrames() {
    const graphs = [...new Set(items.map((item) => item.graph))].filter((graph) => graph >= 0).sort((a, b) => a - b);
    return graphs.map((graph, odd) => {
      const inside = new Set(items.flatMap((item, index) => (item.graph === graph ? [index] : [])));
      const made = svg("g", { class: `part${odd % 2 ? " odd" : ""}` });
      for (const [from, to, path] of placed.edges) if (inside.has(from) && inside.has(to)) made.append(svg("path", { d: path }));
      const corners = [...inside].map((index) => placed.boxes[index]);
      for (const [x, y] of corners) made.append(svg("rect", { x: x - 13, y: y - 13, width: BOX_WIDTH + 26, height: BOX_HEIGHT + 26, rx: 3 }));
      const [x, y] = corners.reduce((top, one) => (one[1] < top[1] ? one : top));
      made.append(svg("text", { x: x - 4, y: y - 3 }, `graph ${graph}, ${plural(boxes.filter((box) => box.graph === graph).length, "node")}`));
      return made;
    });
  }

  function drawMap() {
    map.setAttribute("viewBox", `-20 -20 ${placed.width + 40} ${placed.height + 40}`);
    map.replaceChildren(...items.map((item, index) => svg("rect", { class: item.engine, x: placed.boxes[index][0], y: placed.boxes[index][1], width: BOX_WIDTH, height: BOX_HEIGHT })),
      svg("rect", { class: "seen" }));
  }

  const itemOf = (box) => items.findIndex((item) => item.members.includes(box));
  const showItem = (index) => pane.reveal(...placed.boxes[index], BOX_WIDTH, BOX_HEIGHT);

  // Opens or closes a module and keeps the place where it was in sight.
  function toggle(group, member) {
    if (open.has(group.key)) for (const key of [...open]) { if (key === group.key || key.startsWith(`${group.key}\n`)) open.delete(key); }
    else open.add(group.key);
    draw();
    kept = member;
    const index = itemOf(member);
    showItem(index);
    point(index);
    elements[index].focus({ preventScroll: true });
  }

  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }

  function fill(index) {
    const item = items[index], member = item.members[0];
    const head = document.createElement("h3"), badge = document.createElement("span"), list = document.createElement("dl");
    head.textContent = item.title;
    badge.className = `badge ${item.engine}`;
    badge.textContent = { npu: "NPU", cpu: "CPU", mixed: "NPU and CPU" }[item.engine];
    for (const [label, text] of item.lines) {
      const term = document.createElement("dt"), value = document.createElement("dd");
      term.textContent = label;
      value.textContent = text;
      list.append(term, value);
    }
    const folds = document.createElement("p");
    folds.className = "buttons folds";
    if (item.group) folds.append(button(`Unfold ${named(item.group)}`, () => toggle(item.group, member)));
    const around = levels.flat().filter((one) => open.has(one.key) && one.all.includes(member));
    for (const one of around.reverse()) folds.append(button(`Fold ${named(one)}`, () => toggle(one, member)));
    panel.replaceChildren(badge, head, list, ...(folds.children.length ? [folds] : []));
  }

  function point(index) {
    elements.forEach((one, other) => one.classList.toggle("on", other === index));
    for (const edge of edges) edge.classList.toggle("on", edge.dataset.from === String(index) || edge.dataset.to === String(index));
    if (index >= 0) fill(index);
  }
  const pointKept = () => point(kept === null ? -1 : itemOf(kept));

  // Boxes that the search finds, in the order of the program.
  function look() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? texts.flatMap((text, box) => (words.every((word) => text.includes(word)) ? [box] : [])) : [];
    at = -1;
    mark();
  }

  function mark() {
    const asked = Boolean(search.value.trim()), hits = new Set(found);
    items.forEach((item, index) => {
      const hit = item.members.some((one) => hits.has(one));
      elements[index].classList.toggle("hit", hit);
      elements[index].classList.toggle("dim", asked && !hit);
    });
    get("graph-count").textContent = !asked ? "" : at < 0 ? `${found.length} of ${boxes.length}` : `${at + 1} of ${found.length}`;
  }

  function next(step) {
    if (!found.length) return;
    at = (at + step + found.length) % found.length;
    const box = found[at];
    const closed = levels.flat().filter((one) => !open.has(one.key) && one.all.includes(box));
    if (closed.length) {
      for (const one of closed) open.add(one.key);
      draw();
    }
    kept = box;
    const index = itemOf(box), [x, y] = placed.boxes[index];
    pane.centre(x + BOX_WIDTH / 2, y + BOX_HEIGHT / 2);
    pointKept();
    mark();
  }

  const hovered = (event) => Number(event.target.closest?.(".box")?.dataset.box ?? -1);
  layer.addEventListener("pointermove", (event) => {
    const index = hovered(event);
    if (index < 0 || event.buttons) { hideTip(); return; }
    showTip(event, [items[index].title, ...items[index].lines.map(([label, text]) => `${label}: ${text}`)]);
  });
  layer.addEventListener("pointerover", (event) => { const index = hovered(event); if (index >= 0 && !event.buttons) point(index); });
  layer.addEventListener("pointerout", () => { hideTip(); pointKept(); });
  // On the frame: SVG elements that listen to focus become stops of the Tab key.
  frame.addEventListener("focusin", (event) => { const index = hovered(event); if (index >= 0) { point(index); showItem(index); } });
  layer.addEventListener("click", (event) => {
    const index = hovered(event), member = items[index]?.members[0];
    if (index >= 0) { kept = kept === member ? null : member; point(index); }
  });
  layer.addEventListener("dblclick", (event) => { const item = items[hovered(event)]; if (item?.group) toggle(item.group, item.members[0]); });
  layer.addEventListener("keydown", (event) => {
    const item = items[hovered(event)];
    if (!item || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    if (item.group) toggle(item.group, item.members[0]);
    else { kept = item.members[0]; point(hovered(event)); }
  });
  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); } });
  get("graph-in").addEventListener("click", () => pane.zoom(1.4));
  get("graph-out").addEventListener("click", () => pane.zoom(1 / 1.4));
  get("graph-fit").addEventListener("click", () => pane.fit());
  get("graph-fold").addEventListener("click", () => {
    const deepest = levels.findLast((level) => level.some((one) => open.has(one.key)));
    for (const one of deepest ?? []) open.delete(one.key);
    draw();
    pane.begin(placed.boxes[0][0]);
  });
  get("graph-unfold").addEventListener("click", () => {
    const next = levels.find((level) => level.some((one) => !open.has(one.key)));
    for (const one of next ?? []) open.add(one.key);
    draw();
    pane.begin(placed.boxes[0][0]);
  });
  if (!levels.length) { get("graph-fold").hidden = true; get("graph-unfold").hidden = true; }

  draw();
  pane.begin(placed.boxes[0][0] + BOX_WIDTH / 2);
  const first = items.findIndex((item) => item.engine !== "npu");
  kept = items[Math.max(first, 0)].members[0];
  pointKept();
})();
