// Makes the search page quicker for those who run scripts; nothing depends on it.
// "/" goes to the box; arrows walk the suggestions in the box, and the results outside it.
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

if (box) {
  const form = box.form;
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  box.after(list);
  box.setAttribute("role", "combobox");
  box.setAttribute("aria-autocomplete", "list");
  box.setAttribute("aria-controls", "suggestions");
  box.setAttribute("aria-expanded", "false");

  let chosen = -1;
  let pending = null;
  let timer = 0;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const choose = (at) => {
    const items = [...list.children];
    chosen = (at + items.length) % items.length;
    items.forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
    box.setAttribute("aria-activedescendant", items[chosen].id);
  };
  const take = (text) => {
    box.value = text;
    close();
    form.requestSubmit();
  };
  const show = (suggestions) => {
    list.replaceChildren(...suggestions.map((suggestion, index) => {
      const item = document.createElement("li");
      item.id = `suggestion-${index}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      const text = document.createElement("span");
      text.textContent = suggestion.text;
      const kind = document.createElement("span");
      kind.className = "soft small";
      kind.textContent = suggestion.kind.replace("_", " ");
      item.append(text, kind);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(suggestion.text);
      });
      return item;
    }));
    chosen = -1;
    list.hidden = suggestions.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
  };
  const ask = async () => {
    pending?.abort();
    const text = box.value.trim();
    if (text.length < 2) return close();
    pending = new AbortController();
    try {
      const answer = await fetch(`/suggest?q=${encodeURIComponent(text)}`, { signal: pending.signal, headers: { accept: "application/json" } });
      if (answer.ok && document.activeElement === box) show((await answer.json()).suggestions);
    } catch {
      close();
    }
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen].firstChild.textContent);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
}
