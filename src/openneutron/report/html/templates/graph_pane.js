// A pane that shows a part of a drawing: drag, Ctrl + wheel, pinch, arrow keys and buttons move and zoom it; a small map
// shows which part.
const MIN_SCALE = 0.05, MAX_SCALE = 2.5;
const READABLE = 0.6; // below, the boxes' text is too small for a first view
const MARGIN = 18;

function makePane(frame, layer, map) {
  const view = { x: 0, y: 0, scale: 1, width: 0, height: 0 };
  const size = () => [frame.clientWidth, frame.clientHeight];
  let waiting = null; // a page that is not shown has no size: its first view waits

  function apply() {
    layer.setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.scale.toFixed(4)})`);
    const [width, height] = size();
    const seen = map.querySelector(".seen");
    const left = Math.max(0, -view.x / view.scale), top = Math.max(0, -view.y / view.scale);
    const right = Math.min(view.width, (width - view.x) / view.scale), bottom = Math.min(view.height, (height - view.y) / view.scale);
    seen.setAttribute("x", left);
    seen.setAttribute("y", top);
    seen.setAttribute("width", Math.max(0, right - left));
    seen.setAttribute("height", Math.max(0, bottom - top));
    map.toggleAttribute("hidden", left <= 0 && top <= 0 && right >= view.width && bottom >= view.height);
    frame.dataset.scale = view.scale.toFixed(3);
  }

  // A part of the drawing always stays in sight.
  function settle() {
    const [width, height] = size();
    const keep = (at, drawn, room) => {
      const edge = Math.min(room / 2, drawn * view.scale, 120);
      return Math.min(room - edge, Math.max(edge - drawn * view.scale, at));
    };
    view.x = keep(view.x, view.width, width);
    view.y = keep(view.y, view.height, height);
    apply();
  }

  function zoom(factor, x = size()[0] / 2, y = size()[1] / 2) {
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, view.scale * factor)), by = scale / view.scale;
    view.x = x - (x - view.x) * by;
    view.y = y - (y - view.y) * by;
    view.scale = scale;
    settle();
  }

  function move(x, y) {
    view.x += x;
    view.y += y;
    settle();
  }

  function fitScale() {
    const [width, height] = size();
    return Math.min(1, (width - 2 * MARGIN) / (view.width || 1), (height - 2 * MARGIN) / (view.height || 1));
  }

  function fit() {
    const [width, height] = size();
    view.scale = Math.max(MIN_SCALE, fitScale());
    view.x = (width - view.width * view.scale) / 2;
    view.y = Math.max(MARGIN, (height - view.height * view.scale) / 2);
    apply();
  }

  // The whole drawing if its text can be read then, else the beginning of it, with x in the middle.
  function begin(x) {
    const [width] = size();
    waiting = width ? null : x;
    fit();
    if (view.scale >= READABLE) return;
    view.scale = Math.max(READABLE, Math.min(1, (width - 2 * MARGIN) / view.width));
    const wide = view.width * view.scale + 2 * MARGIN;
    view.x = wide <= width ? (width - view.width * view.scale) / 2 : Math.min(MARGIN, Math.max(width - wide + MARGIN, width / 2 - x * view.scale));
    view.y = MARGIN;
    apply();
  }

  // Moves as little as needed to have a rectangle in sight.
  function reveal(x, y, width, height) {
    const [across, down] = size();
    if (width * view.scale < 60) view.scale = Math.max(view.scale, READABLE);
    const into = (at, extent, offset, room) => {
      const start = at * view.scale + offset, end = start + extent * view.scale;
      return start < MARGIN ? offset + MARGIN - start : end > room - MARGIN ? offset - (end - room + MARGIN) : offset;
    };
    view.x = into(x, width, view.x, across);
    view.y = into(y, height, view.y, down);
    apply();
  }

  function centre(x, y) {
    const [width, height] = size();
    view.x = width / 2 - x * view.scale;
    view.y = height / 2 - y * view.scale;
    settle();
  }

  const held = new Map(); // pointers that are down
  let moved = false;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button || event.target.closest("button, .minimap")) return;
    if (!held.size) moved = false;
    held.set(event.pointerId, [event.clientX, event.clientY]);
  });
  frame.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const x = event.clientX - before[0], y = event.clientY - before[1];
    if (!moved && Math.hypot(x, y) < 4) return; // a click that trembles
    if (!moved) frame.setPointerCapture(event.pointerId);
    moved = true;
    const others = [...held].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    held.set(event.pointerId, [event.clientX, event.clientY]);
    if (others.length) {
      const apart = (place) => Math.hypot(place[0] - others[0][0], place[1] - others[0][1]) || 1;
      const box = frame.getBoundingClientRect();
      zoom(apart([event.clientX, event.clientY]) / apart(before), others[0][0] - box.x, others[0][1] - box.y);
    } else move(x, y);
  });
  for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, (event) => held.delete(event.pointerId));
  frame.addEventListener("click", (event) => { if (moved) event.stopPropagation(); moved = false; }, true);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), event.clientX - box.x, event.clientY - box.y);
  }, { passive: false });
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) move(...step);
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });
  const follow = (event) => {
    if (!event.buttons && event.type !== "pointerdown") return;
    event.preventDefault();
    map.setPointerCapture(event.pointerId);
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    centre(place.x, place.y);
  };
  map.addEventListener("pointerdown", follow);
  map.addEventListener("pointermove", follow);
  new ResizeObserver(() => {
    if (!frame.clientWidth) return;
    if (waiting === null) settle();
    else begin(waiting);
  }).observe(frame);
  addEventListener("beforeprint", fit);

  return {
    zoom, fit, begin, reveal, centre,
    resize(width, height) { Object.assign(view, { width, height }); },
  };
}
