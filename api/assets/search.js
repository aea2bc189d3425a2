// Makes the search page quicker for those who run scripts; nothing depends on it.
// "/" goes to the box; arrows walk the results.
const box = document.querySelector("input[type=search]");

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    box?.focus();
    box?.select();
    return;
  }
  if (typing || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
  const links = [...document.querySelectorAll(".card h3 a")];
  const at = links.indexOf(document.activeElement);
  const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at >= 0 && next) {
    event.preventDefault();
    next.focus();
  }
});
