// Makes searching quicker for those who run scripts; nothing depends on it.
// "/" and Ctrl+K go to the box. On the page of results they change while one types; elsewhere completions and the best results come (a
// combobox with a list box, as the ARIA Authoring Practices describe it). Arrow keys go from the box into the results and back.
const box = document.querySelector("input[name=q]");
const isResultsPage = document.querySelector("#found") !== null;
const links = () => [...document.querySelectorAll("#found .card h3 a")].filter((link) => link.checkVisibility());

function toBox() {
  box?.focus();
  box?.select();
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement;
  const isText = isTyping && !["radio", "checkbox"].includes(event.target.type);
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
    event.preventDefault();
    toBox();
  } else if (event.key === "/" && !isText && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    toBox();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && isResultsPage) {
    const from = event.target === box ? -1 : links().indexOf(event.target);
    if (from < 0 && event.target !== box) return;
    const to = from + (event.key === "ArrowDown" ? 1 : -1);
    const next = to < 0 ? box : links()[to];
    if (!next || (event.target === box && event.key === "ArrowUp")) return;
    event.preventDefault();
    next.focus();
  }
});

const PAUSE_MS = 80;
const SHORTEST = 2;
// Best results below the completions.
const RESULTS_SHOWN = 3;

// A type is shown as words: "weather:current" as "weather: current". A completion with the same words stands for it.
const asWords = (suggestion) => (suggestion.kind === "semantic_type" && !suggestion.text.includes("://") ? suggestion.text.replace(":", ": ").replace(/[-_.]/g, " ") : suggestion.text);
const wordsOf = (text) => text.split(/[^\p{L}\p{N}]+/u).sort().join(" ");

function shownSuggestions(suggestions) {
  const others = new Set(suggestions.filter(({ kind }) => kind !== "semantic_type").map(({ text }) => wordsOf(text)));
  const kept = suggestions.filter(({ kind, text }) => kind !== "semantic_type" || !others.has(wordsOf(text)));
  return kept.map((suggestion) => ({
    text: asWords(suggestion),
    typed: suggestion.text,
    note: suggestion.count == null ? "" : `${suggestion.count} ${suggestion.count === 1 ? "result" : "results"}`,
  }));
}

// The results that speak of the request, as options that open their page.
function shownResults({ results, relevant }) {
  const close = results.slice(0, Math.min(RESULTS_SHOWN, relevant ?? RESULTS_SHOWN));
  return close.map(({ id, name, site }) => ({ text: name, note: site, href: `/capabilities/${id}` }));
}

async function asJson(path, signal) {
  const answer = await fetch(path, { headers: { accept: "application/json" }, signal });
  return answer.ok ? answer.json() : null;
}

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
    if (option.dataset.href) return location.assign(option.dataset.href);
    input.value = option.dataset.typed;
    close();
    input.form.requestSubmit();
  };
  const show = (found) => {
    list.replaceChildren(...found.map((suggestion, index) => {
      const option = document.createElement("li");
      option.id = `suggestion-${index}`;
      if (suggestion.href) option.dataset.href = suggestion.href;
      else option.dataset.typed = suggestion.typed;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const text = document.createElement("span");
      text.textContent = suggestion.text;
      const note = document.createElement("span");
      note.className = "count";
      note.textContent = suggestion.note;
      option.append(text, note);
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
      const q = encodeURIComponent(typed);
      const [completed, found] = await Promise.all([
        asJson(`/suggest?q=${q}`, asking.signal),
        asJson(`/search?q=${q}&limit=${RESULTS_SHOWN}&fields=id,name,site`, asking.signal),
      ]);
      const options = [...(completed ? shownSuggestions(completed.suggestions) : []), ...(found ? shownResults(found) : [])];
      if (input === document.activeElement) show(options);
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

// Results that change while one types. The first change adds an entry to the history and later ones replace it, so that Back
// leads to where one came from.
const RESULTS_PAUSE_MS = 150;

function instantResults(input) {
  let timer;
  let asking;
  let isTypingSession = false;

  const show = async (url, signal) => {
    const response = await fetch(url, { headers: { accept: "text/html" }, signal });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.querySelector("#found");
    const found = document.querySelector("#found");
    if (!fresh || !found) return;
    const isSheetOpen = found.querySelector("#filters")?.checked ?? false;
    found.replaceChildren(...fresh.childNodes);
    found.querySelector("#filters").checked = isSheetOpen;
    document.title = page.title;
  };
  const replace = (url) => {
    asking?.abort();
    asking = new AbortController();
    return show(url, asking.signal).catch((error) => {
      if (error.name !== "AbortError") input.form.dataset.failed = error.name;
    });
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (input.value.trim() === "") return;
      const url = `/search?${new URLSearchParams([...new FormData(input.form)].filter(([, value]) => value !== ""))}`;
      if (isTypingSession) history.replaceState(null, "", url);
      else history.pushState(null, "", url);
      isTypingSession = true;
      replace(url);
    }, RESULTS_PAUSE_MS);
  });
  input.addEventListener("blur", () => (isTypingSession = false));
  addEventListener("popstate", () => {
    clearTimeout(timer);
    isTypingSession = false;
    input.value = new URLSearchParams(location.search).getAll("q").join(" ");
    replace(location.href);
  });
}

if (box && isResultsPage) instantResults(box);
else if (box) suggestions(box);
