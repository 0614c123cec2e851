/* Tables that are filtered, searched and sorted where they stand, and figures that are enlarged on click. */
(function () {
  "use strict";

  document.querySelectorAll(".grok-table").forEach(function (box) {
    const body = box.querySelector("tbody"), rows = [...body.rows];
    const choices = [...box.querySelectorAll("select")], search = box.querySelector("input"), count = box.querySelector("output");

    function show() {
      const words = search.value.toLowerCase().split(/\s+/);
      rows.forEach(function (row) {
        row.hidden = !(choices.every(one => !one.value || row.dataset[one.dataset.key] === one.value)
          && words.every(word => row.textContent.toLowerCase().includes(word)));
      });
      count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
    }

    box.querySelectorAll("thead th").forEach(function (head, column) {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", function () {
        const up = head.getAttribute("aria-sort") !== "ascending" ? 1 : -1;
        const key = row => row.cells[column].dataset.sort || row.cells[column].textContent;
        box.querySelectorAll("[aria-sort]").forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
        rows.sort((a, b) => up * key(a).localeCompare(key(b), "en", { numeric: true })).forEach(row => body.append(row));
      });
    });
    box.querySelector(".fields").hidden = false;
    [...choices, search].forEach(one => one.addEventListener("input", show));
    show();
  });

  // A cell of a fold's table says on a phone, where it stands alone, which column it is from.
  document.querySelectorAll("details.sd-dropdown td:not([data-label])").forEach(function (cell) {
    const head = cell.closest("table").tHead?.rows[0].cells[cell.cellIndex]?.textContent.trim();
    if (head) cell.dataset.label = head;
  });

  // A click on a figure, or Enter where a keyboard is on it, shows it as large as the window; Escape goes back.
  const view = document.createElement("dialog");
  view.className = "grok-view";
  view.addEventListener("click", () => view.close());
  view.addEventListener("keydown", event => event.key === "Escape" && view.close());
  document.querySelectorAll(".bd-article :is(figure, .cell_output) img:not(.tile img, .sd-card img, .grok-frames img)").forEach(function (image) {
    const button = document.createElement("button");
    button.className = "grok-enlarge";
    button.title = "Enlarge";
    (image.closest("a") || image).replaceWith(button);
    button.append(image);
    button.addEventListener("click", function () {
      const large = image.cloneNode();
      large.removeAttribute("style");
      view.replaceChildren(large);
      if (!view.isConnected) document.body.append(view);
      view.showModal();
    });
  });

  // Paper is white, whatever the screen is.
  const root = document.documentElement;
  let theme = root.dataset.theme;
  window.addEventListener("beforeprint", function () { theme = root.dataset.theme; root.dataset.theme = "light"; });
  window.addEventListener("afterprint", function () { root.dataset.theme = theme; });

  // Who follows a link to this page wants to see where it leads.
  document.querySelectorAll("dialog").forEach(function (dialog) {
    dialog.addEventListener("click", event => event.target.closest('a[href^="#"]') && dialog.close());
  });

  // What a fold holds is reached by its address.
  function open() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  open();
})();
