// Tests every page and the main user journeys in a real browser with the demo's data: at desktop and phone width, in both
// themes, with and without JavaScript, checked by axe-core.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startBrowser, startDemo } from "./demo.js";
import { reduced } from "./palette.js";
import { difference } from "./snapshots.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
// Of the content of a page, times and counts change up to a tenth within a quarter of an hour. A page without its style sheet, without its
// content, or in place of another page changes at least two fifths.
const DIFFERENCE_MAX = 0.3;
// The pages of the activity show times and the order of visits, which move lines. They have to differ less from their own picture than from
// the pictures of each other, too.
const LIVE = ["sites", "changes", "crawl", "stats"];
const LIVE_DIFFERENCE_MAX = 0.6;
const PICTURES = new URL("../../docs/pages/", import.meta.url).pathname;
const LOOKS = [["desktop", DESKTOP], ["phone", PHONE]].flatMap(([width, viewport]) => ["light", "dark"].map((colorScheme) => ({ width, viewport, colorScheme })));
const picture = (name, { width, colorScheme }) => `${name}-${width}-${colorScheme}.png`;

let demo, browser, pages;

before(async () => {
  [demo, browser] = await Promise.all([startDemo(), startBrowser()]);
  const found = await (await fetch(`${demo.url}/search?q=book+flight`)).json();
  pages = {
    home: "/",
    search: "/search?q=book+flight",
    empty: "/search?q=zzzqqqxxyy",
    capability: `/capabilities/${found.results[0].id}`,
    sites: "/sites",
    site: `/sites/${found.results[0].site}`,
    types: "/semantic-types",
    changes: "/changes",
    crawl: "/crawl",
    validate: "/validate",
    diff: `/manifests/${found.results[0].manifest_id}/diff`,
    stats: "/stats",
    docs: "/docs",
  };
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

// Opens a page and fails on console errors, page errors and requests to third parties.
// `refused` is a part of the message about a request that the test makes fail.
async function visit(path, { expected = 200, refused, ...options }, look) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  const page = await context.newPage();
  const complaints = [];
  // Chromium reports the status of a page that is meant to be missing
  const isExpected = (text) => (expected !== 200 && text.includes(`status of ${expected}`)) || (refused && text.includes(refused));
  page.on("console", (message) => message.type() === "error" && !isExpected(message.text()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(demo.url) || complaints.push(`asks a third party: ${request.url()}`));
  // the page of the crawl keeps an event stream open, so its network is never idle
  const response = await page.goto(demo.url + path, { waitUntil: path === pages.crawl ? "load" : "networkidle" });
  assert.equal(response.status(), expected, path);
  await look(page, response);
  assert.deepEqual(complaints, [], path);
  await context.close();
}

// The first test: the pictures show a demo to which nothing was added.
test("pages look like their pictures in the documentation, and not like another one", { skip: Boolean(process.env.SCREENSHOTS) }, async () => {
  const strangers = [];
  for (const [name, path] of Object.entries(pages)) {
    for (const look of LOOKS) {
      await visit(path, look, async (page) => {
        const seen = await page.screenshot();
        const share = (other) => difference(readFileSync(join(PICTURES, picture(other, look))), seen);
        const words = `in ${look.colorScheme} at ${look.viewport.width} px: ${Math.round(share(name) * 100)} %`;
        const isLive = LIVE.includes(name);
        if (share(name) > (isLive ? LIVE_DIFFERENCE_MAX : DIFFERENCE_MAX)) strangers.push(`${name} ${words}`);
        const others = isLive ? LIVE.filter((other) => other !== name) : [];
        for (const other of others) assert.ok(share(other) > share(name), `${name} looks like ${other} ${words}`);
        assert.ok(share(name === "stats" ? "types" : "stats") > DIFFERENCE_MAX, `${name} looks like another page ${words}`);
      });
    }
  }
  assert.deepEqual(strangers, [], "look at the pages, then renew the pictures: tests/browser/run screenshots docs/pages");
});

test("search to capability to site, with the keyboard alone", async () => {
  await visit("/", {}, async (page) => {
    await page.keyboard.type("book flight");
    await Promise.all([page.waitForURL(/q=book(\+|%20)flight/), page.keyboard.press("Enter")]);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.name), "q");
    const first = page.locator("main article h3 a").first();
    assert.equal((await first.innerText()).trim(), "Book seat");
    await page.keyboard.press("ArrowDown");
    assert.equal((await page.evaluate(() => document.activeElement.textContent)).trim(), "Book seat");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowDown");
    await Promise.all([page.waitForURL(/\/capabilities\//), page.keyboard.press("Enter")]);
    assert.match(await page.locator("h1").innerText(), /book/i);
    await page.keyboard.press("Control+k");
    assert.equal(await page.evaluate(() => document.activeElement.name), "q");
    await page.locator("main a[href^='/sites/']").first().click();
    await page.waitForURL(/\/sites\/skyhop\.example/);
    await page.locator("#crawl > summary").click();
    assert.match(await page.locator("#crawl").innerText(), /robots\.txt/i);
  });
});

test("ten presses of Tab at most lead to the first result of a search without filters", async () => {
  await visit(pages.search, {}, async (page) => {
    let presses = 0;
    const isThere = () => page.evaluate(() => document.activeElement === document.querySelector("#found .card h3 a"));
    while (!(await isThere()) && presses < 20) {
      await page.keyboard.press("Tab");
      presses += 1;
    }
    assert.ok(presses <= 10, `${presses} presses`);
  });
});

test("the skip link leads to the results without loading them again", async () => {
  await visit(pages.search, {}, async (page) => {
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#main$/);
    await page.keyboard.press("Tab");
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate(() => document.activeElement === document.querySelector("#found .card h3 a")), true);
    assert.deepEqual(asked.filter((url) => url.includes("/search")), []);
  });
});

test("operators that are typed are no fields of the form, too", async () => {
  await visit(pages.search, {}, async (page) => {
    await page.locator("#q").fill("");
    await page.locator("#q").pressSequentially("flight site:skyhop.example", { delay: 220 });
    await page.waitForURL(/site%3Askyhop\.example$/);
    await page.locator(".chip.on").waitFor();
    assert.equal(await page.locator(".chip.on").count(), 1);
    await page.locator("#q").fill("flight");
    await page.waitForURL(/\?q=flight$/);
    await page.locator(".chip.on").waitFor({ state: "detached" });
  });
});

test("words without an answer have no results of other words", async () => {
  await visit(pages.search, { expected: 200, refused: 400 }, async (page) => {
    await page.locator("#q").fill("weather format:nonsense");
    await page.waitForFunction(() => /nonsense/.test(document.querySelector("#announced").textContent));
    assert.equal(await page.locator("#found article").count(), 0);
    assert.match(await page.locator("#found .list").innerText(), /nonsense/);
  });
  await visit(pages.search, { refused: "ERR_FAILED" }, async (page) => {
    await page.route("**/search?**", (route) => route.abort());
    await page.locator("#q").fill("weather");
    await page.locator("#found .list", { hasText: "No answer. Press Enter to try again." }).waitFor();
    assert.equal(await page.locator("#found article").count(), 0);
  });
});

test("results change as one types, and Back leads to where one came from", async () => {
  await visit("/sites", {}, async (page) => {
    await page.goto(demo.url + pages.search);
    const first = page.locator("#found .card h3 a").first();
    await page.evaluate(() => (document.documentElement.dataset.same = "page"));
    await page.locator("#q").fill("");
    await page.locator("#q").pressSequentially("reserve a table");
    await page.waitForURL(/q=reserve(\+|%20)a(\+|%20)table/);
    await page.waitForFunction(() => /table/i.test(document.querySelector("#found .card h3 a")?.textContent ?? ""));
    assert.equal(await page.evaluate(() => document.documentElement.dataset.same), "page", "the page was loaded anew");
    assert.match(await page.title(), /reserve a table/);
    await page.goBack();
    await page.waitForURL(/q=book(\+|%20)flight/);
    await page.waitForFunction(() => /seat/i.test(document.querySelector("#found .card h3 a")?.textContent ?? ""));
    assert.equal(await page.inputValue("#q"), "book flight");
    assert.match(await first.innerText(), /seat/i);
    await page.goBack();
    await page.waitForURL(/\/sites$/);
  });
});

test("filters are chips that can be removed, and an empty result says which to drop", async () => {
  await visit("/search?q=weather&format=woa", {}, async (page) => {
    assert.match(await page.locator("#found").innerText(), /Nothing found/);
    assert.ok((await page.locator(".facets a").count()) > 3, "the filters are gone");
    const without = page.locator("#found .rows a").first();
    assert.match(await without.innerText(), /\d+ results?/);
    await Promise.all([page.waitForURL((url) => !url.search.includes("format")), page.locator(".chip.on").click()]);
    assert.ok((await page.locator("#found article").count()) > 0);
  });
});

test("the phone has its filters in a sheet", async () => {
  await visit("/search?q=book+flight&safety=read", { viewport: PHONE }, async (page) => {
    const sheet = page.locator(".facets");
    assert.equal(await sheet.isVisible(), false);
    const button = page.locator(".filter-button");
    assert.match(await button.innerText(), /Filters\s+1/);
    await button.click();
    assert.equal(await sheet.isVisible(), true);
    const box = await sheet.boundingBox();
    assert.ok(box.y + box.height <= PHONE.height + 1 && box.y > 0, "the sheet is not within the screen");
    await page.locator(".sheet-done").click();
    assert.equal(await sheet.isVisible(), false);
  });
});

test("the same journey without scripts", async () => {
  await visit("/", { javaScriptEnabled: false }, async (page) => {
    await page.fill("input[name=q]", "book flight");
    await page.press("input[name=q]", "Enter");
    await page.waitForURL(/q=book(\+|%20)flight/);
    assert.match(await page.locator("main article").first().innerText(), /skyhop\.example/);
    await page.goto(demo.url + pages.capability);
    await page.locator("label[for=use-python]").click();
    assert.match(await page.locator("[data-pane=python] pre").innerText(), /requests\.request/);
    await page.locator("#try > summary").click();
    await page.fill("input[name='v.flight_number']", "AB 12");
    await Promise.all([page.waitForURL(/\/try\?/), page.locator("#try button").click()]);
    assert.match(await page.locator("[data-pane=curl] pre").innerText(), /AB 12/);
  });
});

test("suggestions come as one types, and the keyboard takes one", async () => {
  await visit("/", {}, async (page) => {
    await page.locator("input[name=q]").pressSequentially("boo");
    const options = page.locator("#suggestions [role=option]");
    await options.first().waitFor();
    assert.ok((await options.count()) > 0);
    await page.keyboard.press("ArrowDown");
    assert.equal(await options.first().getAttribute("aria-selected"), "true");
    const chosen = await options.first().locator("span").first().innerText();
    await Promise.all([page.waitForURL(/\/search\?q=/), page.keyboard.press("Enter")]);
    assert.equal(await page.inputValue("input[name=q]"), chosen);
  });
});

test("a type is suggested by its words, and a result opens from the box", async () => {
  await visit("/", {}, async (page) => {
    await page.locator("input[name=q]").pressSequentially("hotel");
    const type = page.locator("#suggestions [data-href='/search?semantic_type=travel%3Ahotel-booking']");
    await type.waitFor();
    assert.equal((await type.innerText()).trim(), "Book a hotel");
    const results = page.locator("#suggestions [data-href^='/capabilities/']");
    assert.ok((await results.count()) > 0 && (await results.count()) <= 3);
    await Promise.all([page.waitForURL(/\/capabilities\//), results.first().click()]);
    assert.match(await page.locator("main").innerText(), /lindenhof\.example/);
  });
  await visit("/", {}, async (page) => {
    await page.locator("input[name=q]").pressSequentially("hotel");
    await page.locator("#suggestions [data-href^='/search?semantic_type']").first().click();
    await page.waitForURL(/semantic_type=/);
    assert.equal(await page.inputValue("#q"), "", "the box has the name of a type, which no person would write");
    assert.ok((await page.locator("#found article").count()) > 0);
  });
});

test("incomplete words suggest something, and nothing is suggested twice", async () => {
  const suggested = { restau: /restaurant/, "hotel i": /hotel/i, mcp: /Sites with an MCP server/, weath: /current weather/i };
  await visit("/", {}, async (page) => {
    for (const [typed, expected] of Object.entries(suggested)) {
      await page.locator("input[name=q]").fill("");
      await page.locator("#suggestions").waitFor({ state: "hidden" });
      await page.locator("input[name=q]").pressSequentially(typed);
      await page.locator("#suggestions [role=option]", { hasText: expected }).first().waitFor();
      const texts = await page.locator("#suggestions [role=option] > span:first-child").allInnerTexts();
      const words = texts.map((text) => text.toLowerCase());
      const completions = await page.locator("#suggestions [role=option]:not([data-href^='/capabilities/'])").count();
      assert.equal(new Set(words.slice(0, completions)).size, completions, texts.join(", "));
      assert.ok(!texts.some((text) => /^\w+:/.test(text)), texts.join(", "));
    }
    await Promise.all([page.waitForURL(/\/search\?/), page.keyboard.press("Enter")]);
  });
});

test("the pages of a site and of a capability have their parts", async () => {
  const headings = (page) => page.locator("main h2").allInnerTexts();
  await visit(pages.site, {}, async (page) => {
    const found = await headings(page);
    for (const part of ["What agents can do here", "How to authenticate", "Publisher"]) assert.ok(found.includes(part), `${part}: ${found}`);
    assert.ok((await page.locator(".quality > div").count()) >= 3);
  });
  await visit(pages.capability, {}, async (page) => {
    const found = await headings(page);
    for (const part of ["Use it", "Parameters", "Response", "Safety", "The call", "Also at skyhop.example"]) assert.ok(found.includes(part), `${part}: ${found}`);
    const source = page.locator("details.fold", { hasText: "Where this comes from" });
    assert.equal(await source.evaluate((details) => details.open), false);
    assert.match(await page.locator("section", { hasText: "The call" }).last().innerText(), /For\s+people who sign in and consent/);
    assert.ok((await page.locator("meta[property='og:description']").getAttribute("content")).length > 10);
  });
});

test("a site without scripts leads its owner into the collapsed section", async () => {
  await visit(pages.site, { javaScriptEnabled: false }, async (page) => {
    await page.getByRole("link", { name: "Is it yours?" }).click();
    await page.locator("#owner").waitFor({ state: "visible" });
  });
});

test("filters on the phone are chosen one after another, and what lies behind cannot be reached", async () => {
  await visit(pages.search, { viewport: PHONE }, async (page) => {
    await page.evaluate(() => (document.documentElement.dataset.same = "page"));
    await page.locator(".filter-button").click();
    assert.equal(await page.locator("#found .list").evaluate((list) => list.inert), true);
    const before = page.url();
    await page.locator(".facets section li a").first().click();
    await page.waitForFunction((url) => location.href !== url, before);
    await page.locator(".chip.on").waitFor({ state: "attached" });
    assert.equal(await page.locator(".facets").isVisible(), true, "the sheet was closed");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.same), "page", "the page was loaded anew");
    assert.equal(await page.locator("#found .list").evaluate((list) => list.inert), true);
    assert.ok((await page.locator("header form input[type=hidden]").count()) > 0, "the next search loses the filter");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".facets").isVisible(), false);
    assert.equal(await page.locator("#found .list").evaluate((list) => list.inert), false);
  });
});

test("the number of results is announced while one types, and an empty box has none", async () => {
  await visit(pages.search, {}, async (page) => {
    const announced = page.locator("#announced");
    await page.evaluate(() => (document.querySelector("#announced").dataset.same = "element"));
    await page.locator("#q").fill("reserve a table");
    await page.waitForFunction(() => /\d+ results?/.test(document.querySelector("#announced").textContent));
    assert.equal(await announced.getAttribute("data-same"), "element", "screen readers do not notice a new element");
    await page.locator("#q").fill("");
    await page.waitForFunction(() => document.querySelectorAll("#found article").length === 0);
  });
});

test("no pill is cut", async () => {
  for (const viewport of [DESKTOP, PHONE]) {
    for (const path of ["/sites", pages.search, pages.site]) {
      await visit(path, { viewport }, async (page) => {
        const cut = await page.locator(".tag").evaluateAll((tags) => tags.filter((tag) => tag.scrollWidth > tag.clientWidth).map((tag) => tag.textContent));
        assert.deepEqual(cut, [], `${path} at ${viewport.width} px`);
      });
    }
  }
});

test("the phone has the explanations of quality, and calls before and after as a list", async () => {
  await visit("/sites/halfbaked.example", { viewport: PHONE }, async (page) => {
    await page.locator(".quality a", { hasText: /\d+ findings/ }).click();
    await page.locator("#crawl .findings li").first().waitFor({ state: "visible" });
  });
  await visit(pages.capability, { viewport: PHONE }, async (page) => {
    assert.equal(await page.locator("svg.graph").isVisible(), false);
    assert.match(await page.locator(".graph-list").innerText(), /before[\s\S]*this call\s+Book seat/);
  });
});

test("a check becomes possible without the page being loaded again", async () => {
  await visit("/sites/single-page.test", {}, async (page) => {
    await page.clock.install();
    await page.reload();
    const button = page.locator("section[aria-label='Why nothing is found'] button");
    assert.equal(await button.isDisabled(), true);
    await page.clock.fastForward(11 * 60 * 1000);
    assert.equal(await button.isDisabled(), false);
    assert.match(await page.locator("section[aria-label='Why nothing is found']").innerText(), /possible now/);
  });
});

test("a command of the API reference follows its form, and an empty id is not sent", async () => {
  await visit("/docs#get-capabilities-id", {}, async (page) => {
    const operation = page.locator("#get-capabilities-id");
    await operation.getByRole("button", { name: "Send" }).click();
    assert.equal(await operation.locator(".answer").innerText(), "");
    await operation.locator("input[name=id]").fill("cabc");
    assert.match(await operation.locator("[data-copy] code").first().innerText(), /^curl --globoff 'http:.*\/capabilities\/cabc'$/);
  });
});

test("an MCP tool opens on the way to connect its server", async () => {
  const found = await (await fetch(`${demo.url}/search?agent_endpoint=mcp&limit=100&fields=id,protocol`)).json();
  const id = found.results.find((result) => result.protocol === "mcp")?.id;
  assert.ok(id, "no MCP tool in the demo");
  await visit(`/capabilities/${id}`, {}, async (page) => {
    assert.equal(await page.locator("[data-pane=mcp]").isVisible(), true);
    assert.doesNotMatch(await page.locator("[data-pane=mcp]").innerText(), /find and call/);
  });
});

test("the language and the client that were chosen last are chosen on the next page", async () => {
  await visit(pages.capability, {}, async (page) => {
    await page.locator("label[for=use-python]").click();
    await page.reload();
    assert.equal(await page.locator("#use-python").isChecked(), true);
    assert.equal(await page.locator("[data-pane=python] pre").isVisible(), true);
    await page.locator("label[for=use-mcp]").click();
    await page.locator("label[for=client-cursor]").click();
    await page.goto(`${demo.url}/#connect`);
    assert.equal(await page.locator("#client-cursor").isChecked(), true);
  });
});

test("words of the request are marked in names, but not inside of identifiers", async () => {
  await visit("/search?q=reserve+a+table", {}, async (page) => {
    const first = page.locator("#found .card h3").first();
    assert.deepEqual(await first.locator("mark").allInnerTexts(), ["Reserve", "table"]);
  });
});

test("an owner who has just been visited reads when the next check is possible", async () => {
  await visit("/sites/second-look.example", { expected: 404 }, async (page) => {
    await Promise.all([page.waitForURL(/\/sites\/second-look\.example$/), page.locator("main form button").click()]);
    await page.waitForFunction(() => /No visit has ended|1 visit/.test(document.body.textContent));
    await page.locator("section[aria-label='Why nothing is found']").waitFor({ timeout: 60_000 });
    await page.reload();
    const reason = page.locator("section[aria-label='Why nothing is found']");
    assert.equal(await reason.getByRole("button", { name: "Check again" }).isDisabled(), true);
    assert.match(await reason.innerText(), /possible in \d+ minutes?/);
  });
});

test("every tab of Use it has a text that can be copied", async () => {
  await visit(pages.capability, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const tabs = await page.locator("#snippets > label").allInnerTexts();
    assert.deepEqual(tabs, ["curl", "Python", "TypeScript", "MCP", "OpenAI", "Anthropic", "OpenAPI", "ARD"]);
    for (const tab of tabs) {
      await page.locator("#snippets > label", { hasText: new RegExp(`^${tab}$`) }).click();
      const pane = page.locator("#snippets > .pane:visible");
      const box = pane.locator(".copyable:visible").last();
      const shown = await box.locator("code").textContent();
      await box.locator("button.copy").click();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown, tab);
      assert.equal(await box.locator("button.copy").innerText(), "Copied");
    }
    const tool = JSON.parse(await page.locator("[data-pane=mcp] > .copyable code").textContent());
    assert.equal(tool.annotations.destructiveHint, true);
    assert.match(await page.locator(".use-it .callout").first().innerText(), /Ask the person before each call/);
  });
});

test("MCP clients have a link or a text each", async () => {
  await visit("/", {}, async (page) => {
    const panel = page.locator("section[aria-label='Connect your agent']");
    for (const [client, pattern] of [["Claude", /claude mcp add/], ["Cursor", /mcpServers/], ["VS Code", /"servers"/], ["Other", /"type": "http"/]]) {
      await panel.locator("label", { hasText: new RegExp(`^${client}$`) }).click();
      assert.match(await panel.locator(".pane:visible pre").innerText(), pattern, client);
    }
    assert.match(await panel.locator("a", { hasText: "Add to Cursor" }).getAttribute("href"), /^cursor:/);
    assert.match(await panel.locator("a", { hasText: "Add to VS Code" }).getAttribute("href"), /^vscode:mcp/);
  });
});

test("texts are copied without navigator.clipboard, as over plain HTTP from another machine", async () => {
  await visit(pages.capability, {}, async (page) => {
    await page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      document.body.append(Object.assign(document.createElement("textarea"), { id: "pasted" }));
    });
    const tabs = await page.locator("#snippets > label").allInnerTexts();
    for (const tab of tabs) {
      await page.locator("#snippets > label", { hasText: new RegExp(`^${tab}$`) }).click();
      const box = page.locator("#snippets > .pane:visible .copyable:visible").last();
      await box.locator("button.copy").click();
      assert.equal(await box.locator("button.copy").innerText(), "Copied");
      await page.fill("#pasted", "");
      await page.focus("#pasted");
      await page.keyboard.press("Control+v");
      assert.equal(await page.inputValue("#pasted"), await box.locator("code").textContent(), tab);
    }
  });
});

test("the request is built as one types, and nothing is sent to the site", async () => {
  await visit(pages.capability, {}, async (page) => {
    await page.locator("#try > summary").click();
    await page.fill("input[name='v.flight_number']", "XY 99");
    for (const pane of ["curl", "python", "typescript"]) {
      await page.waitForFunction((name) => document.querySelector(`[data-pane=${name}] pre`).textContent.includes("XY 99"), pane);
    }
  });
});

test("a submitted site shows its result without being loaded again", async () => {
  await visit("/sites/second-hand.example", { expected: 404 }, async (page) => {
    await Promise.all([page.waitForURL(/\/sites\/second-hand\.example$/), page.locator("main form button").click()]);
    await page.locator(".identity").waitFor();
    await page.evaluate(() => (document.documentElement.dataset.same = "page"));
    await page.waitForFunction(() => !document.querySelector("[data-live=site] .callout[role=status]"), null, { timeout: 60_000 });
    assert.equal(await page.evaluate(() => document.documentElement.dataset.same), "page", "the page was loaded anew");
    assert.match(await page.locator("main").innerText(), /1 visit/);
  });
});

test("a broken manifest is validated, with and without scripts", async () => {
  for (const javaScriptEnabled of [true, false]) {
    await visit("/validate", { javaScriptEnabled }, async (page) => {
      await page.fill("textarea[name=document]", '{\n  "awp_version": "0.1",\n  "actions": [{"id": "order"}]\n}');
      await page.click("main form button[type=submit]");
      await page.locator("#verdict").waitFor();
      assert.match(await page.locator("#verdict").innerText(), /AWP/);
      assert.ok((await page.locator(".lines .marked").count()) > 0, "no finding stands beside its line");
      assert.match(await page.inputValue("textarea[name=document]"), /awp_version/);
    });
  }
});

test("a file dropped on the validator is read into it", async () => {
  await visit("/validate", {}, async (page) => {
    await page.evaluate(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["{}"], "agent.json", { type: "application/json" }));
      document.querySelector("textarea").dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    });
    await page.waitForFunction(() => document.querySelector("textarea").value === "{}");
  });
});

test("the owner of a site reads how to opt out", async () => {
  await visit(pages.site, {}, async (page) => {
    await page.locator("details:has(> #owner) > summary").click();
    assert.match(await page.locator("main").innerText(), /User-agent: agentdex\s+Disallow: \//);
  });
});

test("the page of the crawl shows what happens without being asked again", async () => {
  await visit("/crawl", {}, async (page) => {
    const numbers = page.locator("[data-live=queue] dl");
    const before = await numbers.innerText();
    await page.evaluate(() => (document.documentElement.dataset.same = "page"));
    const submitted = await fetch(`${demo.url}/sites`, { method: "POST", body: JSON.stringify({ domain: "newcomer.example" }) });
    assert.equal(submitted.status, 202);
    await page.waitForFunction((text) => document.querySelector("[data-live=queue] dl").innerText !== text, before);
    await page.locator("[data-live=visits] li.new", { hasText: "newcomer.example" }).waitFor({ timeout: 60_000 });
    assert.equal(await page.locator("[data-live-state]").isVisible(), true);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.same), "page", "the page was loaded anew");
  });
});

test("the latest visits are a list without scripts", async () => {
  await visit("/crawl", { javaScriptEnabled: false }, async (page) => {
    const rows = page.locator("[data-live=visits] li");
    assert.ok((await rows.count()) >= 10);
    assert.match(await page.locator("[data-live=visits]").innerText(), /1 document fetched\s+(just now|\d+ minutes? ago)[\s·]+\d+ requests in/);
    assert.equal(await page.locator("[data-live-state]").isVisible(), false);
  });
});

test("filters begin with what the close results have, and their counts are kept", async () => {
  await visit(pages.search, {}, async (page) => {
    const group = page.locator(".facets section", { has: page.getByRole("heading", { name: "What it does" }) });
    const first = group.locator("a").first();
    assert.match(await first.innerText(), /flight/);
    const closest = await page.locator("#found .summary").innerText();
    assert.match(closest, /^\d+ results for book flight$/);
    const less = page.locator("#found .less");
    assert.equal(await less.locator("article").first().isVisible(), false, "less related results are collapsed");
    assert.match(await less.locator("> summary").innerText(), /^\d+ less related$/);
    await group.locator("summary").click();
    const other = group.locator("details a").first();
    const count = Number(await other.locator(".count").innerText());
    await Promise.all([page.waitForURL(/semantic_type=/), other.click()]);
    assert.match(await page.locator("#found").innerText(), /\d+ results?|No close match/);
    assert.equal(await page.locator("#found article").count(), count);
  });
});

test("the owner of a site finds it by its name", async () => {
  await visit("/", {}, async (page) => {
    await page.fill("input[name=q]", "drowsy.example");
    await Promise.all([page.waitForURL(/q=drowsy/), page.keyboard.press("Enter")]);
    await Promise.all([page.waitForURL(/\/sites\/drowsy\.example$/), page.locator(".callout a", { hasText: "drowsy.example" }).click()]);
    assert.match(await page.locator("main").innerText(), /delay/);
  });
});

test("the owner of a site that is not found reads why, and what to do", async () => {
  const reasons = {
    "keepout.example": [/reading is not allowed/, /robots\.txt forbids agentdex/, /User-agent: agentdex\s+Allow: \/\.well-known\//],
    "drowsy.example": [/no result yet/, /could not be read \(HTTP 503\)/, /status 200, or with 404/],
    "single-page.test": [/answers every path/, /also paths that do not exist/, /status 404/],
    "doublequote.example": [/fetched .*, not readable/, /cannot be read as a manifest/, /Correct the document/],
  };
  for (const javaScriptEnabled of [true, false]) {
    for (const [site, [status, why, step]] of Object.entries(reasons)) {
      await visit(`/sites/${site}`, { javaScriptEnabled }, async (page) => {
        assert.match(await page.locator(".identity").innerText(), status, site);
        assert.doesNotMatch(await page.locator("main").innerText(), /\bfresh\b(?! until)/i, site);
        const reason = page.locator("section[aria-label='Why nothing is found']");
        assert.match(await reason.innerText(), why, site);
        assert.match(await page.locator("main").innerText(), step, site);
        assert.equal(await reason.getByRole("button", { name: "Check again" }).isVisible(), true, site);
      });
    }
  }
});

test("the number of findings opens the list of them", async () => {
  await visit("/sites/halfbaked.example", {}, async (page) => {
    const finding = page.locator("#crawl .findings li").first();
    assert.equal(await finding.isVisible(), false);
    await page.locator(".quality a", { hasText: /\d+ findings/ }).click();
    await finding.waitFor({ state: "visible" });
  });
});

test("an address that was copied into the form adds its site", async () => {
  await visit("/", { expected: 200 }, async (page) => {
    await page.fill("#domain", "https://copied.example/");
    await Promise.all([page.waitForURL(/\/sites\/copied\.example$/), page.locator("form[action='/sites'] button").click()]);
    await page.locator(".identity").waitFor();
  });
});

test("a phone can search from every page, and zooming to 200 % loses nothing", async () => {
  for (const [name, path] of Object.entries(pages)) {
    await visit(path, { viewport: PHONE }, async (page) => {
      assert.equal(await page.locator("form[role=search] input").first().isVisible(), true, name);
    });
  }
  // 1440 by 900 pixels at 200 %
  await visit(pages.site, { viewport: { width: 720, height: 450 } }, async (page) => {
    assert.equal(await page.locator("form[role=search] input").first().isVisible(), true);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - globalThis.innerWidth)) <= 0);
  });
});

test("the API reference can be read and tried", async () => {
  await visit("/docs", {}, async (page) => {
    const operation = page.locator("#get-semantic-types");
    await operation.locator("summary").first().click();
    await operation.getByRole("button", { name: "Send" }).click();
    await operation.locator(".answer pre").waitFor();
    assert.match(await operation.locator(".answer").innerText(), /^200 .*GET \/semantic-types/);
    await page.goto(`${demo.url}/docs#get-sites-domain`);
    const site = page.locator("#get-sites-domain");
    await site.locator("input[name=domain]").fill("skyhop.example");
    await site.getByRole("button", { name: "Send" }).click();
    await site.locator(".answer pre").waitFor();
    assert.match(await site.locator(".answer").innerText(), /"site": "skyhop.example"/);
  });
});

test("without scripts, the API reference sends what a form can send", async () => {
  await visit("/docs", { javaScriptEnabled: false }, async (page) => {
    const operation = page.locator("#get-capabilities-id");
    await operation.locator("summary").first().click();
    assert.equal(await operation.getByRole("button", { name: "Send" }).count(), 0, "a form cannot fill in the path");
    assert.match(await operation.locator("noscript").innerText(), /\/capabilities\/\{id\}/);
    const search = page.locator("#get-search");
    await search.locator("summary").first().click();
    await Promise.all([page.waitForURL(/\/search\?q=book\+flight/), search.getByRole("button", { name: "Send" }).click()]);
    assert.ok((await page.locator("#found article").count()) > 0);
  });
});

test("a link to a collapsed section opens it", async () => {
  await visit(pages.site, {}, async (page) => {
    const fold = page.locator("#owner");
    assert.equal(await fold.isVisible(), false);
    await page.getByRole("link", { name: "Is it yours?" }).click();
    await fold.waitFor();
  });
  await visit("/docs#admin", {}, async (page) => {
    assert.equal(await page.locator("#admin > div").isVisible(), true);
  });
});

test("all of a text to copy is seen, beside no button", async () => {
  for (const viewport of [DESKTOP, PHONE]) {
    await visit(pages.capability, { viewport }, async (page) => {
      const pre = page.locator("[data-pane=curl] pre");
      assert.ok(await pre.evaluate((element) => element.scrollWidth <= element.clientWidth), "a part is seen by scrolling only");
      const button = await page.locator("[data-pane=curl] .copy").boundingBox();
      const code = await page.locator("[data-pane=curl] code").boundingBox();
      assert.ok(button.y + button.height <= code.y, "the button covers the text");
    });
  }
});

test("the phone says what a call does before it says how", async () => {
  await visit(pages.capability, { viewport: PHONE }, async (page) => {
    const words = await page.locator("p.phone-only").boundingBox();
    const use = await page.locator("#use").boundingBox();
    assert.ok(words.y < PHONE.height && words.y < use.y);
  });
});

test("a request from right to left does not turn the sentence around", async () => {
  await visit(`/search?q=${encodeURIComponent("weather طقس")}`, {}, async (page) => {
    const request = page.locator("#found bdi", { hasText: "طقس" }).first();
    assert.equal(await request.evaluate((element) => getComputedStyle(element).unicodeBidi), "isolate");
  });
});

test("a search without a good answer says so", async () => {
  await visit(pages.empty, {}, async (page) => {
    assert.match(await page.locator("main").innerText(), /nothing/i);
    assert.equal(await page.locator("main article").count(), 0);
  });
});

test("axe has no finding of any level on any page, in both themes", async () => {
  for (const [name, path] of Object.entries(pages)) {
    for (const colorScheme of ["light", "dark"]) {
      // The page's content security policy forbids other scripts, so axe is injected through the debugger.
      await visit(path, { colorScheme, bypassCSP: true }, async (page) => {
        await page.evaluate(AXE);
        // what is collapsed is checked, too
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        const more = { "color-contrast-enhanced": { enabled: true }, "target-size": { enabled: true } };
        const report = await page.evaluate((rules) => globalThis.axe.run({ rules }), more);
        const broken = report.violations.map((rule) => `${rule.id}: ${rule.nodes.map((node) => node.html).join(" ")}`);
        assert.deepEqual(broken, [], `${name} in ${colorScheme}`);
      });
    }
  }
});

test("axe has no finding on the pages of special cases", async () => {
  const unknown = "/sites/nobody-knows.example";
  const others = [["/nothing-here", 404], [unknown, 404], ["/sites/single-page.test", 200], ["/sites/skyhop.example/claim", 200], [`${pages.capability}/try?v.flight_number=XY+99`, 200]];
  for (const [path, expected] of others) {
    for (const colorScheme of ["light", "dark"]) {
      await visit(path, { expected, colorScheme, bypassCSP: true }, async (page) => {
        await page.evaluate(AXE);
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        const report = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(report.violations.map((rule) => rule.id), [], `${path} in ${colorScheme}`);
      });
    }
  }
});

test("no page is wider than a phone, and each has a title of its own", async () => {
  const titles = new Set();
  for (const [name, path] of Object.entries(pages)) {
    await visit(path, { viewport: PHONE }, async (page) => {
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - globalThis.innerWidth);
      assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
      const small = await page.evaluate(() =>
        [...document.querySelectorAll("svg.chart text")]
          .filter((text) => text.checkVisibility())
          .map((text) => Number(text.getAttribute("font-size")) * text.getScreenCTM().a)
          .filter((pixels) => pixels < 11),
      );
      assert.deepEqual(small, [], `${name} has labels below 11 pixels`);
      const rows = await page.locator("nav[aria-label=Main] a").evaluateAll((links) => new Set(links.map((link) => link.offsetTop)).size);
      assert.equal(rows, 1, `${name} has ${rows} rows of navigation`);
      const tables = await page.locator("table.stacks tr").evaluateAll((all) => all.filter((row) => getComputedStyle(row).display === "table-row").length);
      assert.equal(tables, 0, `${name} has a table`);
      titles.add(await page.title());
    });
  }
  assert.equal(titles.size, Object.keys(pages).length);
});

test("nothing moves while a page loads", async () => {
  for (const [name, path] of Object.entries(pages)) {
    for (const viewport of [DESKTOP, PHONE]) {
      await visit(path, { viewport }, async (page) => {
        const shifted = await page.evaluate(
          () =>
            new Promise((resolve) => {
              let sum = 0;
              new PerformanceObserver((list) => list.getEntries().forEach((entry) => (sum += entry.value))).observe({ type: "layout-shift", buffered: true });
              setTimeout(() => resolve(sum), 150);
            }),
        );
        assert.ok(shifted < 0.02, `${name} at ${viewport.width} px shifted by ${shifted}`);
      });
    }
  }
});

test("the first page comes in 60 KB", async () => {
  const compressed = async (path, accept) => {
    const headers = { "accept-encoding": "gzip", accept };
    const response = await new Promise((resolve, reject) => get(demo.url + path, { headers }, resolve).on("error", reject));
    let bytes = 0;
    for await (const chunk of response) bytes += chunk.length;
    assert.equal(response.headers["content-encoding"], "gzip", path);
    return bytes;
  };
  const page = await (await fetch(demo.url, { headers: { accept: "text/html" } })).text();
  const assets = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].map((match) => match[1]);
  assert.ok(assets.length >= 2, "no style sheet or no script");
  let bytes = await compressed("/", "text/html");
  for (const asset of new Set(assets)) bytes += await compressed(asset, "*/*");
  assert.ok(bytes <= 60_000, `the first page takes ${bytes} bytes`);
});

test("pages carry a strict policy and stay small", async () => {
  for (const path of Object.values(pages)) {
    const response = await fetch(demo.url + path, { headers: { accept: "text/html" } });
    const policy = response.headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'|default-src 'self'/);
    assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval/);
    assert.ok((await response.arrayBuffer()).byteLength < 400_000, `${path} is large`);
  }
});

test("pictures of the pages", { skip: !process.env.SCREENSHOTS }, async () => {
  mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  for (const [name, path] of Object.entries(pages)) {
    for (const look of LOOKS) {
      await visit(path, look, async (page) => {
        writeFileSync(join(process.env.SCREENSHOTS, picture(name, look)), reduced(await page.screenshot()));
      });
    }
  }
});
