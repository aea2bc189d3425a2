// Sends the request of an operation that reads, and shows the response. Without scripts the form opens the response.
const SHOWN_CHARS_MAX = 20_000;

function address(form) {
  let path = form.dataset.try;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.dataset.in === "path") path = field.value === "" ? path : path.replace(`{${field.name}}`, encodeURIComponent(field.value));
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

// The command follows the form; a parameter of the path that is still empty keeps its braces.
function showCommand(form) {
  const code = form.closest("details").querySelector("[data-copy] code");
  code.dataset.served ??= code.textContent;
  const isTouched = [...form.querySelectorAll("[data-in]")].some((field) => field.value !== "");
  code.textContent = isTouched ? `curl --globoff '${form.dataset.base}${address(form).replaceAll("'", "%27")}'` : code.dataset.served;
}

for (const form of document.querySelectorAll("form[data-try]")) {
  const answer = form.closest("details").querySelector(".answer");
  // a form alone cannot fill in a variable of the path
  form.querySelector("p[hidden]")?.removeAttribute("hidden");
  if (answer) form.addEventListener("input", () => showCommand(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (answer) send(form, answer).catch((error) => (answer.textContent = `No response: ${error.message}`));
  });
}
