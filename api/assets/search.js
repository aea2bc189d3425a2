// Makes searching quicker for those who run scripts; nothing depends on it.
// "/" goes to the box; arrows walk the results; completions come as one types (a combobox with a list box, as the ARIA
// Authoring Practices describe it).
const box = document.querySelector("input[type=search]");

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
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

const PAUSE_MS = 80;
const SHORTEST = 2;

function suggestions(input) {
  const list = document.createElement("ul");
  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  input.form.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"]]) {
    input.setAttribute(name, value);
  }
  let chosen = -1;
  let timer;
  let asking;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (index) => {
    chosen = index;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    if (index >= 0) input.setAttribute("aria-activedescendant", list.children[index].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const take = (option) => {
    input.value = option.dataset.text;
    close();
    input.form.requestSubmit();
  };
  const show = (found) => {
    list.replaceChildren(...found.map((suggestion, index) => {
      const option = document.createElement("li");
      option.id = `suggestion-${index}`;
      option.dataset.text = suggestion.text;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const text = document.createElement("span");
      text.textContent = suggestion.text;
      const count = document.createElement("span");
      count.className = "count";
      count.textContent = suggestion.count ?? "";
      option.append(text, count);
      // before the box loses its focus and the list closes
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(option);
      });
      return option;
    }));
    chosen = -1;
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
  };
  const ask = async () => {
    asking?.abort();
    asking = new AbortController();
    const typed = input.value;
    if (typed.trim().length < SHORTEST) return close();
    try {
      const answer = await fetch(`/suggest?q=${encodeURIComponent(typed)}`, { headers: { accept: "application/json" }, signal: asking.signal });
      if (answer.ok && input === document.activeElement) show((await answer.json()).suggestions);
    } catch {
      // typed on, or offline: the form works without completions
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const count = list.children.length;
    if (list.hidden || count === 0) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(((chosen + step + 1 + count + 1) % (count + 1)) - 1);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      take(list.children[chosen]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
}

if (box) suggestions(box);
