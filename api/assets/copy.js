// A button on each text that is made to be copied, the language and the client that were chosen last, and requests that are built while
// the form is filled in. Without scripts the text is selected by hand, and the form is submitted.

// navigator.clipboard is missing over plain HTTP from another machine; a selected text area can be copied there, too.
async function copy(text) {
  if (navigator.clipboard && isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not permitted: try the other way
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "copied-text";
  area.setAttribute("readonly", "");
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

for (const box of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    const copied = await copy(box.querySelector("code").textContent);
    button.textContent = copied ? "Copied" : "Press Ctrl+C";
    button.classList.toggle("done", copied);
    if (copied) button.focus();
    else getSelection().selectAllChildren(box.querySelector("code"));
    setTimeout(() => {
      button.textContent = "Copy";
      button.classList.remove("done");
    }, 2000);
  });
  box.append(button);
}

// The choice is kept in this browser. A browser that keeps nothing begins with the first tab.
for (const tab of document.querySelectorAll(".tabs > input[type=radio]")) {
  try {
    if (localStorage.getItem(tab.name) === tab.id) tab.checked = true;
    tab.addEventListener("change", () => localStorage.setItem(tab.name, tab.id));
  } catch {
    break;
  }
}

const PAUSE_MS = 250;
const form = document.querySelector("form[data-build]");
let timer;
let building;

async function build() {
  building?.abort();
  building = new AbortController();
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  try {
    const response = await fetch(`${form.action.split("#")[0]}?${query}`, { headers: { accept: "text/html" }, signal: building.signal });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const pane of document.querySelectorAll("[data-pane]")) {
      const codes = (root) => root?.querySelectorAll("pre code") ?? [];
      const fresh = codes(page.querySelector(`[data-pane="${pane.dataset.pane}"]`));
      codes(pane).forEach((code, index) => (code.textContent = fresh[index]?.textContent ?? code.textContent));
    }
  } catch {
    // typed on, or offline: the button still works
  }
}

form?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(build, PAUSE_MS);
});
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  build().then(() => document.querySelector("#use").scrollIntoView());
});

// "Check again" becomes possible when its time has come. The parts that live are exchanged with their buttons.
let possible;
function waitForButtons() {
  clearTimeout(possible);
  const buttons = [...document.querySelectorAll("button[data-possible-in]")];
  if (buttons.length === 0) return;
  possible = setTimeout(() => {
    buttons.forEach((button) => (button.disabled = false));
    for (const words of document.querySelectorAll("[data-possible]")) words.textContent = "now";
  }, Math.max(...buttons.map((button) => Number(button.dataset.possibleIn))) * 1000);
}
document.addEventListener("refreshed", waitForButtons);
waitForButtons();

// A link to a collapsed section, or to something inside, opens it and those around it.
function openFold() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  let fold = target?.closest("details");
  for (; fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  target?.scrollIntoView();
}
addEventListener("hashchange", openFold);
openFold();
