// Which boxes of the graph are drawn: those of open modules one by one, each closed module as one box.
const MOST_DRAWN = 60; // boxes of a first view that people still read

// The modules as a tree. A module with one box is no group, and one that only holds another is named together with it.
function moduleTree(boxes) {
  const root = { key: "", title: "", parent: null, children: new Map(), own: [], all: [] };
  boxes.forEach((box, at) => {
    let group = root;
    group.all.push(at);
    for (const part of box.path) {
      if (!group.children.has(part)) {
        const key = group.key ? `${group.key}\n${part}` : part;
        group.children.set(part, { key, title: part, parent: group, children: new Map(), own: [], all: [] });
      }
      group = group.children.get(part);
      group.all.push(at);
    }
    group.own.push(at);
  });
  return mergeSingles(root);
}

function mergeSingles(group) {
  const children = new Map();
  for (let child of group.children.values()) {
    if (child.all.length === 1) { group.own.push(...child.all); continue; }
    while (child.children.size === 1 && !child.own.length) {
      const [only] = child.children.values();
      child = { ...only, title: `${child.title}.${only.title}` };
    }
    child.parent = group;
    children.set(child.key, mergeSingles(child));
  }
  group.children = children;
  return group;
}

// Groups by their depth: groupLevels(tree)[0] are the outermost modules.
function groupLevels(root) {
  const levels = [];
  for (let level = [...root.children.values()]; level.length; level = level.flatMap((one) => [...one.children.values()])) levels.push(level);
  return levels;
}

// The keys of the modules to open first: whole levels, as long as the boxes are few.
function firstOpen(root) {
  const open = new Set();
  let drawn = root.own.length + root.children.size;
  for (const level of groupLevels(root)) {
    drawn += level.reduce((sum, one) => sum + one.own.length + one.children.size - 1, 0);
    if (drawn > MOST_DRAWN) break;
    for (const one of level) open.add(one.key);
  }
  return open;
}

// What is drawn: items with their boxes, `group` null for a single box, and the earlier items that each reads.
function drawnItems(boxes, root, open) {
  let items = boxes.map((box, at) => ({ members: [at], group: null, piece: 0 }));
  let inputs = boxes.map((box) => [...box.inputs]);
  const closed = [];
  const visit = (group) => {
    for (const child of group.children.values()) {
      if (open.has(child.key)) visit(child);
      else closed.push(child);
    }
  };
  visit(root);
  for (const group of closed) [items, inputs] = contract(items, inputs, group);
  return { items, inputs };
}

// Draws a module as one box, or as several in a row where its values leave it and come back: one box would be a circle.
//   piece(v) = how often a path to v has come back into the module
function contract(items, inputs, group) {
  const inside = new Set(group.all);
  const own = items.map((item) => inside.has(item.members[0]));
  const entries = [];
  inputs.forEach((read, at) => {
    let most = own[at] ? 0 : -1;
    for (const one of read) {
      if (entries[one] >= 0) most = Math.max(most, entries[one] + (own[at] && !own[one] ? 1 : 0));
    }
    entries.push(most);
  });
  const pieces = 1 + entries.reduce((most, one, at) => (own[at] ? Math.max(most, one) : most), 0);
  const made = Array.from({ length: pieces }, (_, piece) => ({ members: [], group, piece: pieces > 1 ? piece + 1 : 0 }));
  const target = items.map((item, at) => (own[at] ? made[entries[at]] : item));
  const reads = new Map();
  target.forEach((item, at) => {
    if (own[at]) item.members.push(...items[at].members);
    const found = reads.get(item) ?? new Set();
    for (const one of inputs[at]) if (target[one] !== item) found.add(target[one]);
    reads.set(item, found);
  });
  return sorted(reads);
}

// Items so that each stands behind those it reads, otherwise in the order they came.
function sorted(reads) {
  const order = new Map();
  const visit = (first) => {
    const stack = [[first, [...reads.get(first)]]];
    while (stack.length) {
      const [item, rest] = stack[stack.length - 1];
      const next = rest.pop();
      if (next === undefined) { order.set(item, order.get(item) ?? order.size); stack.pop(); }
      else if (!order.has(next)) stack.push([next, [...reads.get(next)]]);
    }
  };
  for (const item of reads.keys()) if (!order.has(item)) visit(item);
  const items = [...order.keys()];
  return [items, items.map((item) => [...reads.get(item)].map((one) => order.get(one)))];
}
