"use strict";
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  // A page opened from a file may have no storage; then the choice lasts as long as the page.
  try { theme = localStorage.getItem("searchbench-theme") || "auto"; } catch { /* none */ }
  const show = () => {
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("searchbench-theme", theme); } catch { /* none */ }
    show();
  });
  if (!themes.includes(theme)) theme = "auto";
  show();

  // Tips at once, and by touch too; without script the browser shows the <title> in its own time.
  const tip = document.getElementById("tip"), texts = new WeakMap();
  for (const title of document.querySelectorAll("figure svg title")) {
    texts.set(title.parentNode, title.textContent);
    title.remove();
  }
  const place = (event) => {
    const text = texts.get(event.target);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above < 8 ? event.clientY + 18 : above) + "px";
  };
  document.addEventListener("pointermove", place);
  document.addEventListener("pointerdown", place);
  document.addEventListener("scroll", (event) => {
    tip.hidden = true;
    // A table: its first column stays, and gets an edge where others are below it.
    if (event.target.classList) event.target.classList.toggle("scrolled", event.target.scrollLeft > 0);
  }, true);

  // On paper everything is open that is printed at all.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open]):not(.screen)")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
  // A link into closed details opens them.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
