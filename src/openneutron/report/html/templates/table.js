// Ranking of the advice: what is for this target stays before what is for others.
const list = document.querySelector(".advice");
for (const button of document.querySelectorAll("#rank button")) {
  button.addEventListener("click", () => {
    const key = button.dataset.key;
    const place = (item) => [Number(item.dataset.elsewhere), Number(item.dataset[key]), Number(item.dataset.time)];
    list.append(...[...list.children].sort((a, b) => {
      const [x, y] = [place(a), place(b)];
      return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
    }));
    for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
  });
}

// Sorting: numbers from large to small first, text from A to Z first; a second click reverses the order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? cell.dataset.value : cell.textContent.trim();
  };
  function sort(column, descending) {
    const numeric = heads[column].classList.contains("num");
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      // What was not measured goes last, in either order.
      if (numeric && (x === "" || y === "")) return x === y ? 0 : (x === "") === descending ? -1 : 1;
      return numeric ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true });
    });
    body.append(...(descending ? rows.reverse() : rows));
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const now = head.getAttribute("aria-sort");
    const first = head.classList.contains("num") && head.dataset.key !== "number";
    sort(column, now ? now === "ascending" : first);
  }));
}

// Filtering: rows that hold every word stay.
const filter = document.querySelector("#layer-filter");
if (filter) {
  const rows = [...document.querySelectorAll("#layer-table tbody tr")];
  const said = document.querySelector("#layer-count");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    const left = rows.filter((row) => !row.hidden).length;
    said.textContent = words.length ? `${left} of ${rows.length}` : "";
  });
}
