// Keeps the pages of the crawl and of a new site current for those who run scripts: whenever the server says that something has
// changed, the page is asked for again and its parts that live are exchanged. What was opened stays open, and a list under
// the pointer waits, so that nobody clicks the wrong row. Rows that are new are marked for a moment.
const parts = () => [...document.querySelectorAll("[data-live]")];
const keys = (part) => new Set([...part.querySelectorAll("[data-key]")].map((row) => row.dataset.key));
const inUse = (part) => part.contains(document.activeElement) || (part.querySelector("[data-key]") && part.matches(":hover"));

async function refresh() {
  const response = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of parts()) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!next || part.innerHTML === next.innerHTML || inUse(part)) continue;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    const known = keys(part);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((details, index) => (details.open = open[index] ?? details.open));
    if (known.size) part.querySelectorAll("[data-key]").forEach((row) => row.classList.toggle("new", !known.has(row.dataset.key)));
  }
  document.dispatchEvent(new Event("refreshed"));
}

const state = document.querySelector("[data-live-state]");
const showState = (isLive) => state && (state.hidden = !isLive);

let source;
function follow() {
  source?.close();
  showState(false);
  if (document.hidden) return;
  source = new EventSource("/crawl/stream");
  source.addEventListener("open", () => showState(true));
  source.addEventListener("error", () => showState(false));
  source.addEventListener("crawl", refresh);
}
document.addEventListener("visibilitychange", follow);
document.querySelector("[data-live=visits]")?.addEventListener("mouseleave", refresh);
follow();
