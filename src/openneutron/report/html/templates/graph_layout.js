// Layered drawing of a directed graph (after Sugiyama): ranks by longest path, order by barycentres, bends in long edges.
// Weakness: barycentres with a fixed number of sweeps leave some crossings; for networks, mostly chains with short skips,
// they find none.
const BOX_WIDTH = 208, BOX_HEIGHT = 44; // for an operator's name and one line of figures
const GAP_X = 28, GAP_Y = 26;
const BEND_WIDTH = 6; // a long edge passing a rank beside its boxes
const SWEEPS = 6; // more change nothing on the zoo's models

// Places boxes, of which box i reads the earlier boxes inputs[i]: upper left corners, SVG paths of the edges, total size.
function layoutGraph(inputs) {
  const ranks = rankBoxes(inputs);
  // A place is a box, or the point where a long edge passes a rank.
  const places = ranks.map((rank, box) => ({ box, rank, above: [], below: [], x: 0, width: BOX_WIDTH }));
  const chains = inputs.flatMap((read, box) => read.map((maker) => chainPlaces(places, maker, box)));
  const rows = Array.from({ length: 1 + Math.max(-1, ...ranks) }, () => []);
  for (const place of places) rows[place.rank].push(place);
  for (const row of rows) placeRow(row, new Map(row.map((place, at) => [place, at])));
  for (let sweep = 0; sweep < SWEEPS; sweep++) sweepRows(rows, sweep % 2 === 0);
  let left = Infinity, right = 0;
  for (const place of places) left = Math.min(left, place.x - place.width / 2);
  for (const place of places) { place.x -= left; right = Math.max(right, place.x + place.width / 2); }
  return {
    boxes: places.slice(0, inputs.length).map((place) => [place.x - BOX_WIDTH / 2, place.rank * (BOX_HEIGHT + GAP_Y)]),
    edges: chains.map((chain) => [chain[0].box, chain[chain.length - 1].box, edgePath(chain)]),
    width: right,
    height: rows.length ? rows.length * (BOX_HEIGHT + GAP_Y) - GAP_Y : 0,
  };
}

// The longest path from the top; a box without inputs is placed right above its first reader.
function rankBoxes(inputs) {
  const ranks = [], readers = inputs.map(() => []);
  inputs.forEach((read, box) => {
    ranks.push(1 + read.reduce((most, one) => Math.max(most, ranks[one]), -1));
    for (const one of read) readers[one].push(box);
  });
  inputs.forEach((read, box) => {
    if (!read.length && readers[box].length) ranks[box] = readers[box].reduce((least, one) => Math.min(least, ranks[one]), Infinity) - 1;
  });
  return ranks;
}

// Connects two boxes, with a bend in every rank between them.
function chainPlaces(places, maker, reader) {
  const chain = [places[maker]];
  for (let rank = places[maker].rank + 1; rank < places[reader].rank; rank++) {
    const bend = { box: -1, rank, above: [], below: [], x: 0, width: BEND_WIDTH };
    places.push(bend);
    chain.push(bend);
  }
  chain.push(places[reader]);
  for (let at = 1; at < chain.length; at++) {
    chain[at - 1].below.push(chain[at]);
    chain[at].above.push(chain[at - 1]);
  }
  return chain;
}

// Orders each rank by the mean position of its neighbours above (or below), and moves it there.
function sweepRows(rows, downward) {
  for (const row of downward ? rows : [...rows].reverse()) {
    const wanted = new Map();
    for (const place of row) {
      const all = downward ? place.above : place.below;
      // Boxes before bends: a chain stays straight, and the edges beside it are moved.
      const boxes = all.filter((one) => one.box >= 0), near = boxes.length ? boxes : all;
      wanted.set(place, near.length ? near.reduce((sum, one) => sum + one.x, 0) / near.length : place.x);
    }
    row.sort((a, b) => wanted.get(a) - wanted.get(b));
    placeRow(row, wanted);
  }
}

// Moves the middle box to its wanted position, the others as near to theirs as the widths on both sides allow.
function placeRow(row, wanted) {
  const boxes = row.flatMap((place, at) => (place.box >= 0 ? [at] : []));
  const anchor = boxes.length ? boxes[boxes.length >> 1] : 0;
  const apart = (a, b) => (a.width + b.width) / 2 + GAP_X;
  if (row.length) row[anchor].x = wanted.get(row[anchor]);
  for (let at = anchor + 1; at < row.length; at++) {
    row[at].x = Math.max(wanted.get(row[at]), row[at - 1].x + apart(row[at], row[at - 1]));
  }
  for (let at = anchor - 1; at >= 0; at--) {
    row[at].x = Math.min(wanted.get(row[at]), row[at + 1].x - apart(row[at], row[at + 1]));
  }
}

// A smooth line from the lower side of the first box to the upper side of the last.
function edgePath(chain) {
  const points = chain.flatMap(({ x, rank }) => {
    const y = rank * (BOX_HEIGHT + GAP_Y);
    return [[x, y], [x, y + BOX_HEIGHT]];
  }).slice(1, -1);
  const text = (...numbers) => numbers.map((one) => one.toFixed(1)).join(" ");
  return points.reduce((path, [x, y], at) => {
    if (!at) return `M${text(x, y)}`;
    const [x0, y0] = points[at - 1], middle = (y0 + y) / 2;
    return path + (x0 === x ? `L${text(x, y)}` : `C${text(x0, middle, x, middle, x, y)}`);
  }, "");
}
