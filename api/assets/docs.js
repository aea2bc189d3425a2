// Sends the request of an operation that reads, and shows the response. Without scripts the form opens the response.
const SHOWN_CHARS_MAX = 20_000;

function address(form) {
  let path = form.dataset.try;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.dataset.in === "query" && field.value !== "") query.append(field.name, field.value);
  }
  return query.size ? `${path}?${query}` : path;
}

async function send(form, answer) {
  const started = performance.now();
  const url = address(form);
  const response = await fetch(url, { headers: { accept: "application/json" } });
  let body = await response.text();
  try {
    body = JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    // not JSON: shown as it is
  }
  const line = document.createElement("p");
  line.textContent = `${response.status} ${response.statusText}, ${Math.round(performance.now() - started)} ms: GET ${url}`;
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", "Response");
  pre.textContent = body.length > SHOWN_CHARS_MAX ? `${body.slice(0, SHOWN_CHARS_MAX)}\n…` : body;
  answer.replaceChildren(line, pre);
}

for (const form of document.querySelectorAll("form[data-try]")) {
  const answer = form.closest("details").querySelector(".answer");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (answer) send(form, answer).catch((error) => (answer.textContent = `No response: ${error.message}`));
  });
}
