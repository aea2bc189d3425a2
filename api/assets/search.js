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

// Endpoints that a filter finds, by the word that people type.
const ENDPOINTS = { mcp: "Sites with an MCP server", a2a: "Sites with an A2A agent" };
// A completion is left out if another one, or a result, has the same words: "weather: current" and "Current weather".
const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).sort().join(" ");

function shownSuggestions(typed, suggestions, results) {
  const [first] = typed.trim().toLowerCase().split(/\s+/);
  const endpoint = ENDPOINTS[first] ? [{ text: ENDPOINTS[first], note: "", href: `/search?agent_endpoint=${first}` }] : [];
  const isType = ({ kind }) => kind === "semantic_type";
  const known = new Set(results.map(({ text }) => wordsOf(text)));
  const kept = [...suggestions.filter((found) => !isType(found)), ...suggestions.filter(isType)].filter(({ kind, text, label, count }) => {
    const words = new Set([wordsOf(text), wordsOf(label)]);
    const isKnown = [...words].some((one) => known.has(one)) && !(count > 1 && kind !== "semantic_type");
    words.forEach((one) => known.add(one));
    return !isKnown;
  });
  const option = ({ kind, text, label, count }) => ({
    text: label,
    note: count > 1 ? `${count} sites` : "",
    // a type is a filter: its name is no text that a person would write
    ...(kind === "semantic_type" ? { href: `/search?${new URLSearchParams({ semantic_type: text })}` } : { typed: text }),
  });
  return [...endpoint, ...kept.map(option)];
}

// The results that speak of the request, as options that open their page.
function shownResults(found) {
  const { results, relevant } = found ?? { results: [] };
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
      const results = shownResults(found);
      const options = [...shownSuggestions(typed, completed?.suggestions ?? [], results), ...results];
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
const NO_ANSWER = "No answer. Press Enter to try again.";

function instantResults(input) {
  let timer;
  let asking;
  let isTypingSession = false;
  const withoutHash = () => location.pathname + location.search;
  let shown = withoutHash();

  // A sentence in place of the results, which would be those of other words.
  const tell = (words) => {
    const line = document.createElement("p");
    line.className = "empty";
    line.textContent = words;
    document.querySelector("#found .list").replaceChildren(line);
    document.querySelector("#announced").textContent = words;
  };
  // `hasTyped` says whether the words in the box caused the request: operators in them are not kept as fields of the form, too.
  const show = async (url, hasTyped, signal) => {
    const response = await fetch(url, { headers: { accept: "text/html" }, signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = response.ok && page.querySelector("#found");
    const found = document.querySelector("#found");
    if (!fresh) return tell(page.querySelector("main .lead")?.textContent.trim() || NO_ANSWER);
    const isSheetOpen = found.querySelector("#filters")?.checked ?? false;
    const areLessShown = found.querySelector(".less")?.open ?? false;
    const hidden = (root) => root.querySelectorAll(".top .search input[type=hidden]");
    found.replaceChildren(...fresh.childNodes);
    found.querySelector("#filters").checked = isSheetOpen;
    if (areLessShown) found.querySelector(".less")?.setAttribute("open", "");
    if (!hasTyped) {
      hidden(document).forEach((field) => field.remove());
      input.after(...hidden(page));
      input.value = page.querySelector("#q").value;
    }
    shield(isSheetOpen);
    document.title = page.title;
    document.querySelector("#announced").textContent = found.querySelector(".list")?.dataset.count ?? "";
  };
  const clear = () => {
    asking?.abort();
    document.querySelector("#found .list").replaceChildren();
    document.querySelector("#announced").textContent = "No words to search for";
  };
  const replace = (url, hasTyped = false) => {
    shown = withoutHash();
    asking?.abort();
    asking = new AbortController();
    return show(url, hasTyped, asking.signal).catch((error) => {
      if (error.name !== "AbortError") tell(NO_ANSWER);
    });
  };

  // The sheet of filters on the phone stays open while filters are chosen, and what lies behind it cannot be reached.
  const isSheet = () => document.querySelector("#filters")?.checked && getComputedStyle(document.querySelector(".facets")).position === "fixed";
  const shield = (isOpen) => document.querySelectorAll(".skip, .top, .foot, #found .list").forEach((part) => (part.inert = isOpen));
  const closeSheet = () => {
    document.querySelector("#filters").checked = false;
    shield(false);
  };
  document.addEventListener("change", (event) => event.target.id === "filters" && shield(isSheet()));
  document.addEventListener("keydown", (event) => event.key === "Escape" && isSheet() && closeSheet());
  document.addEventListener("click", (event) => {
    if (!isSheet()) return;
    const link = event.target.closest(".facets a");
    if (event.target.classList.contains("results")) closeSheet();
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    replace(link.href);
  });

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // an empty box has no results: those of the words before would be wrong
      if (input.value.trim() === "") return clear();
      const url = `/search?${new URLSearchParams([...new FormData(input.form)].filter(([, value]) => value !== ""))}`;
      if (isTypingSession) history.replaceState(null, "", url);
      else history.pushState(null, "", url);
      isTypingSession = true;
      replace(url, true);
    }, RESULTS_PAUSE_MS);
  });
  input.addEventListener("blur", () => (isTypingSession = false));
  addEventListener("popstate", () => {
    // a link to a part of the page, such as the one that skips to the results, changes the history too
    if (withoutHash() === shown) return;
    clearTimeout(timer);
    isTypingSession = false;
    input.value = new URLSearchParams(location.search).getAll("q").join(" ");
    replace(location.href);
  });
}

// After a search from the home page, the keyboard stays in the box.
const isSearchFromHome = () =>
  document.referrer === `${location.origin}/` && performance.getEntriesByType("navigation")[0]?.type === "navigate" && matchMedia("(hover: hover)").matches;
if (box && isResultsPage && isSearchFromHome()) box.focus();

if (box && isResultsPage) instantResults(box);
else if (box) suggestions(box);
