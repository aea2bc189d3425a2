// Keeps the page of the crawl current for those who run scripts: whenever the server says that something has changed, the
// page is asked for again and its parts that live are exchanged. What was opened stays open.
const parts = () => [...document.querySelectorAll("[data-live]")];

async function refresh() {
  const response = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of parts()) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!next || part.innerHTML === next.innerHTML || part.contains(document.activeElement)) continue;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((details, index) => (details.open = open[index] ?? details.open));
  }
}

let source;
function follow() {
  source?.close();
  if (document.hidden) return;
  source = new EventSource("/crawl/stream");
  source.addEventListener("crawl", refresh);
}
document.addEventListener("visibilitychange", follow);
follow();
